// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "evidence/torch_log/torch_log_activity.h"
#include "evidence/torch_log/torch_log_line.h"

namespace tacet {

// Not Python's own, not an installed package, not a launcher's script.
bool IsUserFile(std::string_view file);
// horovodrun, torchrun, deepspeed and accelerate launch: what they raise tells of a process that they watch.
bool IsLaunchersFile(std::string_view file);

// "RuntimeError: text" at the front, or behind a logger's prefix ("ERROR 04-16 01:01:44 [worker.py:620] "): the message
// of an exception whose traceback was not pasted. Empty where the line is nothing of the kind.
std::string_view FindBareError(std::string_view text);
// Of a class that is an error, by its name or by the module it is in: "torch._dynamo.exc.Unsupported".
bool IsErrorName(std::string_view type);
// "['ninja', '-v']' returned non-zero exit status 1": a compiler or a tool that builds, and no process of the job.
bool IsBuildTool(std::string_view command);
// Word of TorchLogRecord::subject: the file ends, or other lines begin, before the traceback names its error.
inline constexpr std::string_view kCutException = "an exception whose name is cut off";
// ... where the statement that raises it still names its type.
inline constexpr std::string_view kCutWords = "the traceback is cut before its message";
// Word of TorchLogRecord::object: ... where it is the launcher that raises it.
inline constexpr std::string_view kLauncherCut = "the launcher raised an error, and the lines that name it are missing";

// What stands behind words of another script that nothing parts from the error: "总是报错RuntimeError: ...".
std::string_view WithoutGluedWords(std::string_view text);

// "  File "/srv/train.py", line 286, in <module>"
bool IsTracebackFrame(std::string_view text);

// How Python joins two exceptions: "The above exception was the direct cause of ..." (raise ... from error) or
// "During handling of the above exception, another exception occurred".
enum class ChainLink : uint8_t { none, handling, direct_cause };

// object address  : 0x7fefad13c7c0
// object repr     : RuntimeError('[./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:35208')
// lost sys.stderr
// What Python prints of an error that comes up while it ends already.
bool IsObjectDump(std::string_view text);

struct RaisedException {
  std::string type, message;
  std::string function, file;  // innermost frame in the user's own code
  uint32_t code_line = 0;
  bool in_spawn = false;       // raised by torch.multiprocessing.spawn for a process of its own
  bool in_rendezvous = false;  // raised while the job's store was being set up
  bool in_collective = false;  // raised below a call of torch.distributed
  std::string call;            // "send", "all_reduce": ... which one
  bool watches = false;        // a process that waits for its children
  bool of_job = false;         // a frame is of code that several processes run together
  int32_t origin = -1;         // the rank that raised it, where another one prints it
  bool of_server = false;
  bool mixed = false;  // frames of two processes stand between each other: whose place it is nobody can tell
  Activity during = Activity::not_told;
  // The frames at which the traceback begins and ends, and whether it ends at a raise statement.
  std::string outermost_file, outermost_function, innermost_file, innermost_function;
  bool by_statement = false;
  std::string statement;  // "assert world == 8", "raise ValueError(": the last such line of code
  std::string thread;     // "Thread-4 (_pin_memory_loop)" where it ended a thread
  LogLine line;           // where its type and message stand; its text is not valid any more
};

// Follows one voice through a Python traceback: frames, the message, and exceptions raised while handling others.
class TracebackReader {
 public:
  // not_understood: the line is no part of a traceback.
  LineUse Read(const LogLine& line, RecordList& out);
  // A line that ends any message: a log line, a step. Blank lines do not.
  void End(RecordList& out);
  // The voice is heard no more.
  void Finish(RecordList& out);
  bool in_message() const { return phase_ == Phase::message; }
  bool is_open() const { return phase_ != Phase::idle; }
  // The rank that raised what is being read, where another one passes it on; else -1.
  int32_t origin() const { return is_open() ? raised_.origin : -1; }

 private:
  enum class Phase : uint8_t { idle, frames, framed, message };

  void Begin(const LogLine& line, int64_t highest_step);
  void WriteWrapper(RecordList& out);
  void TakeStatement(std::string_view code);
  LineUse ReadFrame(const LogLine& line);
  LineUse ReadFramed(const LogLine& line);
  LineUse ReadMessage(const LogLine& line, RecordList& out);
  LineUse ReadPaused(const LogLine& line, RecordList& out);
  // The type and the message of the traceback that another process's began in the middle of.
  bool TakeGluedType(LogLine& line);
  bool TakeLateMessage(const LogLine& line, RecordList& out);
  LineUse ReadPausedFrame(const LogLine& line);
  // What stands behind the logger's head that all lines of this traceback have.
  std::string_view WithoutHead(std::string_view text) const;
  bool TakeType(std::string_view body, const LogLine& line);
  void Write(RecordList& out);

  Phase phase_ = Phase::idle;
  ChainLink link_ = ChainLink::none;  // what joins root_ to the traceback that is read
  bool chained_ = false;              // the next traceback belongs to the same chain
  bool disregard_ = false;            // "Exception ignored in": printed at the end of a program, of no consequence
  bool disregard_next_ = false;
  bool indent_known_ = false;
  bool frame_closed_ = false;  // the frame that rich draws around it
  bool of_backward_ = false;   // the frames are those of a forward call
  bool in_launcher_ = false;   // the innermost frame is of horovodrun, torchrun or their like
  bool interleaved_ = false;   // two processes without labels print their tracebacks at the same time
  bool in_debugger_ = false;   // pdb answers a wrong command with "*** NameError: ..."
  bool message_next_ = false;  // "RuntimeError: " with nothing behind it: its words are in the next line
  bool paused_ = false;        // a debugger shows it: the frames stand below the message
  bool paragraph_ = false;     // an empty line stood behind the message
  size_t indent_ = 0;          // what stands before "File" in a frame, less its own two blanks
  size_t frame_at_ = 2;        // the column of "File" in the frames; 0 where the paste lost all indentation
  std::string head_;           // of the line with the type, where a logger puts one before every line
  int message_lines_ = 0;
  int strange_lines_ = 0;
  int64_t step_ = -1;  // the highest step before it
  int32_t origin_next_ = -1;
  std::string thread_next_;
  Activity shared_activity_ = Activity::not_told;  // of what called the handler of the exception before
  // The newest, and of those before it in the chain the one that tells most.
  RaisedException raised_, root_;
  RaisedException notebook_;  // named above its frames, and not yet below them
  RaisedException wrapper_;   // passed on from a worker: the original follows
  RaisedException unended_;   // its frames stand before the head of another process's traceback, its type does not
};

}  // namespace tacet
