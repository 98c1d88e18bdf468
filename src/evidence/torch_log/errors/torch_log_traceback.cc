// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/errors/torch_log_traceback.h"

#include <algorithm>
#include <cctype>

#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_chain.h"

namespace tacet {
namespace {

// Messages without a rank before each line have no marked end.
constexpr int kMaxLooseLines = 12;
constexpr int kMaxStrangeLines = 6;

// What these words say has a reader of its own. With its traceback an error is an exception all the same; alone it is
// only what they say.
constexpr Keyword kToldElsewhere[] = {
    Keyword::work,           Keyword::nccl_error,         Keyword::other_library,
    Keyword::known_line,     Keyword::worker_ended,       Keyword::mismatch,
    Keyword::peer_gone,      Keyword::monitored_barrier,  Keyword::client_timeout,
    Keyword::wait_timeout,   Keyword::store_barrier,      Keyword::waiting_clients,
    Keyword::socket_timeout, Keyword::rendezvous_timeout, Keyword::rendezvous_connection,
    Keyword::on_socket};

constexpr std::string_view kPaused = "Exception has occurred: ";

bool IsNameCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; }

// "torch.distributed.DistBackendError: text", "KeyboardInterrupt". A name without a capital letter or a dot is no type.
std::string_view TypeOf(std::string_view body) {
  size_t end = 0;
  bool typed = false;
  for (; end < body.size() && IsNameCharacter(body[end]); ++end)
    typed = typed || (body[end] >= 'A' && body[end] <= 'Z') || body[end] == '.';
  if (end == 0 || !typed || end > 200 || (body[0] >= '0' && body[0] <= '9')) return {};
  if (end < body.size() && body[end] != ':') return {};
  return body.substr(0, end);
}

// The operation that a function of torch.distributed is; empty: none.
std::string_view CallOf(std::string_view function) {
  for (const std::string_view one : {"send", "isend", "send_object_list"})
    if (function == one) return "send";
  for (const std::string_view one : {"recv", "irecv", "recv_object_list", "batch_isend_irecv"})
    if (function == one) return "recv";
  for (const std::string_view begin : {"barrier", "monitored_barrier", "all_reduce", "all_gather", "all_to_all",
                                       "broadcast", "reduce", "gather", "scatter"})
    if (function.starts_with(begin)) return function;
  return {};
}

// mp.spawn, and programs that start others and wait until they end.
bool IsWaitForChildren(std::string_view file, std::string_view function) {
  if (file.ends_with("torch/multiprocessing/spawn.py")) return function == "join" || function == "start_processes";
  return (file.ends_with("/subprocess.py") &&
          (function == "wait" || function == "communicate" || function == "call")) ||
         (file.ends_with("multiprocessing/process.py") && function == "join");
}

// Code that runs where several processes work on one job.
bool IsFileOfAJob(std::string_view file) {
  return ContainsAny(file, {"torch/distributed/", "torch/nn/parallel/", "deepspeed/", "megatron/", "horovod/", "ray/",
                            "accelerate/", "lightning/strategies/", "colossalai/", "fairscale/", "mpi4py/"});
}

// "process 3 terminated with signal SIGKILL": torch.multiprocessing.spawn before 1.6.
bool IsSpawnsMessage(std::string_view message) {
  int64_t process = 0;
  return TakeLiteral(message, "process ") && TakeNumber(message, &process) &&
         (message.starts_with(" terminated with signal SIG") || message.starts_with(" terminated with exit code "));
}

// The launcher raises when a worker failed; what the worker raised is told elsewhere.
bool IsLaunchersOwn(const RaisedException& raised) {
  // RuntimeError: Horovod detected that one or more processes exited with non-zero status, ...
  if (raised.type == "RuntimeError" && raised.message.starts_with("Horovod detected that one or more processes exited"))
    return true;
  return raised.type.ends_with("ChildFailedError") || raised.type.ends_with("ProcessRaisedException") ||
         raised.type.ends_with("ProcessExitedException") || raised.type.ends_with("api.SignalException") ||
         (raised.type.ends_with("CalledProcessError") && raised.file.empty() &&
          !IsBuildTool(After(raised.message, "Command ").value_or(""))) ||
         (raised.type == "Exception" && (raised.in_spawn || IsSpawnsMessage(raised.message))) ||
         (raised.type == "RuntimeError" && raised.message.starts_with("Engine core initialization failed"));
}

}  // namespace

// ValueError: Caught ValueError in DataLoader worker process 0.
// Original Traceback (most recent call last):
// What a worker or a replica raised is raised again where its result was asked for, with its own traceback as message.
static bool IsOriginalOf(const RaisedException& raised, std::string_view text) {
  return Trim(text).starts_with("Original Traceback") && raised.message.starts_with("Caught ");
}

// pytorch_lightning.utilities.exceptions.DeadlockDetectedException: DeadLock detected from rank: 1
//  Traceback (most recent call last):
// Lightning on the rank that failed, as it ends the others: what it raised follows. -1: this is another error.
static int32_t RankOfDeadlock(const RaisedException& raised) {
  if (!raised.type.ends_with("DeadlockDetectedException")) return -1;
  return IntAfter<int32_t>(raised.message, "detected from rank: ").value_or(-1);
}

// "in DataLoader worker process 0" of "Caught ValueError in DataLoader worker process 0."
static std::string_view PlaceOfWorker(std::string_view message) {
  message = message.substr(0, message.find('\n'));
  const size_t at = message.find(" in ");
  if (at == std::string_view::npos) return {};
  message.remove_prefix(at + 1);
  return message.ends_with('.') ? message.substr(0, message.size() - 1) : message;
}

// "[ERROR]  RuntimeError: ...", "root - ERROR - ValueError: ...", "ERROR | __main__:72 - KeyError: ...", as loggers of
// Python print what was caught, and pytest with its "E   ".
static std::string_view WithoutLogHead(std::string_view text) {
  if (text.starts_with("E   ")) return Trim(text.substr(1));
  const size_t at = text.substr(0, 80).find("ERROR");
  if (at == std::string_view::npos || (at > 0 && std::string_view("[ |/").find(text[at - 1]) == std::string_view::npos))
    return text;
  std::string_view rest = text.substr(at + 5);
  if (rest.empty() || std::string_view("] :-|").find(rest[0]) == std::string_view::npos) return text;
  rest = rest.substr(std::min(rest.find_first_not_of("] :-|"), rest.size()));
  if (const size_t place = rest.find(" - "); place < 60) rest = rest.substr(place + 3);  // the place of the call
  return rest;
}

std::string_view FindBareError(std::string_view text) {
  TakeLiteral(text, "*** ");  // pdb, where the program stopped
  if (const std::string_view rest = WithoutLogHead(text); rest.data() != text.data() && !TypeOf(rest).empty())
    text = rest;
  if (text.starts_with("ERROR ") || text.starts_with("(")) {
    const size_t close = text.substr(0, 160).rfind("] ");
    if (close == std::string_view::npos) return {};
    text = text.substr(close + 2);
  }
  if (Contains(text, "Call to CUDA function failed")) return {};  // what NCCL's result means, cut at its front
  const std::string_view type = TypeOf(text);
  if (type.starts_with("nccl")) return {};  // "ncclRemoteError: ...", a part of PyTorch's message
  // "torch.distributed.elastic.rendezvous.api.RendezvousClosedError": it may have no words.
  if (type.size() == text.size())
    return std::count(type.begin(), type.end(), '.') >= 2 && IsErrorName(type) ? text : std::string_view();
  if (!text.substr(type.size()).starts_with(": ")) return {};
  if (type == "LustreError") return {};  // the kernel's, whose own head was not pasted
  // "Exception: Current loss scale already at minimum - cannot decrease scale anymore.": a sentence of the program's
  // own
  const std::string_view words = text.substr(type.size() + 2);
  if (type == "Exception" && words.size() > 12 && words[0] >= 'A' && words[0] <= 'Z' && Contains(words, " "))
    return text;
  return IsErrorName(type) ? text : std::string_view();
}

std::string_view WithoutGluedWords(std::string_view text) {
  for (const std::string_view end : {"Error: ", "Exception: "}) {
    const size_t at = text.find(end);
    if (at == std::string_view::npos) continue;
    size_t begin = at;
    while (begin > 0 && IsNameCharacter(text[begin - 1])) --begin;
    if (begin > 0 && begin < at && static_cast<unsigned char>(text[begin - 1]) >= 0x80) return text.substr(begin);
  }
  return text;
}

bool IsTracebackFrame(std::string_view text) {
  size_t at = text.find_first_not_of(' ');
  // A logger puts its head before every line of an error: "ERROR 12-19 01:22:33 worker_utils.py:229]   File ...".
  if (const size_t headed = text.substr(0, 200).find("]   File \"");
      headed != std::string_view::npos && Contains(text.substr(0, headed), "ERROR"))
    at = headed + 4;
  if (at == std::string_view::npos || !text.substr(at).starts_with("File \"")) return false;
  const size_t line = text.find("\", line ");
  if (line == std::string_view::npos) return false;
  std::string_view number = text.substr(line + 8);
  int value = 0;
  return TakeNumber(number, &value) && number.starts_with(", in ");
}

void TracebackReader::Begin(const LogLine& line, int64_t highest_step) {
  phase_ = Phase::frames;
  if (!chained_) link_ = ChainLink::none;
  shared_activity_ = Activity::not_told;
  std::string thread = chained_ ? root_.thread : std::move(thread_next_);
  chained_ = false;
  indent_known_ = false;
  frame_closed_ = of_backward_ = in_launcher_ = false;
  indent_ = 0;
  message_lines_ = strange_lines_ = 0;
  message_next_ = paused_ = paragraph_ = false;
  disregard_ = disregard_next_;
  thread_next_.clear();
  disregard_next_ = false;
  head_.clear();
  raised_ = RaisedException();
  raised_.thread = std::move(thread);
  raised_.line = line;
  // "[rank3]: Traceback (most recent call last): (RANK 2)": torch.distributed.checkpoint passes on what rank 2 raised.
  raised_.origin = IntAfter<int32_t>(line.text, "(most recent call last): (RANK ").value_or(origin_next_);
  origin_next_ = -1;
  step_ = highest_step;
}

//   File "/srv/train/train.py", line 286, in <module>
LineUse TracebackReader::ReadFrame(const LogLine& line) {
  const size_t at = line.text.find("File \"");
  if (at == std::string_view::npos || at > 400) return LineUse::not_understood;
  if (!indent_known_) {
    // A logger may put its own prefix before every line: "2024-08-22 ERROR [worker.py:148]   File ...".
    indent_known_ = true;
    indent_ = at >= 2 ? at - 2 : 0;
    frame_at_ = at;
  } else if (at != frame_at_) {
    return LineUse::not_understood;
  }
  std::string_view rest = line.text.substr(at + 6);
  const size_t quote = rest.find('"');
  if (quote == std::string_view::npos) return LineUse::not_understood;
  const std::string_view file = rest.substr(0, quote);
  const auto number = IntAfter<uint32_t>(rest.substr(quote), ", line ");
  if (!number) return LineUse::not_understood;
  raised_.in_rendezvous = raised_.in_rendezvous || file.ends_with("torch/distributed/rendezvous.py");
  raised_.in_collective = raised_.in_collective || file.ends_with("torch/distributed/distributed_c10d.py");
  raised_.of_job = raised_.of_job || IsFileOfAJob(file);
  raised_.in_spawn = file.ends_with("torch/multiprocessing/spawn.py");  // the innermost frame counts
  in_launcher_ = IsLaunchersFile(file);
  const auto function = After(rest.substr(quote), ", in ");
  if (file.ends_with("torch/distributed/distributed_c10d.py"))
    if (const std::string_view call = CallOf(function.value_or("")); !call.empty()) raised_.call = call;
  raised_.watches = raised_.watches || IsWaitForChildren(file, function.value_or(""));
  raised_.innermost_file = Capped(file, 500);
  raised_.innermost_function = Capped(function.value_or(""), 200);
  raised_.by_statement = false;
  if (raised_.outermost_file.empty()) {
    raised_.outermost_file = raised_.innermost_file;
    raised_.outermost_function = raised_.innermost_function;
  }
  raised_.of_server = raised_.of_server || IsServersFile(file);
  // Above its handler the frames of both exceptions are the same.
  if (link_ != ChainLink::none && file == root_.outermost_file && function.value_or("") == root_.outermost_function)
    shared_activity_ = raised_.during;
  raised_.during = JoinActivities(raised_.during, ActivityOfFrame(file, function.value_or("")));
  if (!IsUserFile(file)) return LineUse::understood;
  // A comprehension has no name of its own: the function around it, whose frame is the one above, does.
  if (!function || !function->ends_with("comp>") || raised_.file != file)
    raised_.function = Capped(function.value_or(""), 200);
  raised_.file = Capped(file, 500);
  raised_.code_line = *number;
  return LineUse::understood;
}

// As the package rich draws it:
// ╭───────────────────── Traceback (most recent call last) ──────────────────────╮
// │ /workspace/src/trainer.py:203 in train                                       │
// │ ❱ 203 │   loss = self.model(batch["labels"])                                 │
// ╰──────────────────────────────────────────────────────────────────────────────╯
// KeyError: 'labels'
LineUse TracebackReader::ReadFramed(const LogLine& line) {
  std::string_view text = Trim(line.text);
  if (text.starts_with("╰")) {
    frame_closed_ = true;
    return LineUse::understood;
  }
  if (frame_closed_) {
    if (TakeType(text, line)) return LineUse::understood;
    if (++strange_lines_ > kMaxStrangeLines) phase_ = Phase::idle;
    return LineUse::not_understood;
  }
  if (!TakeLiteral(text, "│ ")) {
    if (++strange_lines_ > kMaxStrangeLines) phase_ = Phase::idle;
    return LineUse::not_understood;
  }
  const size_t in = text.find(" in ");
  const std::string_view place = text.substr(0, in);
  const size_t colon = place.rfind(':');
  if (in == std::string_view::npos || colon == std::string_view::npos || !place.substr(0, colon).ends_with(".py"))
    return LineUse::understood;  // a line of code
  std::string_view digits = place.substr(colon + 1);
  uint32_t number = 0;
  if (!TakeNumber(digits, &number) || !IsUserFile(place.substr(0, colon))) return LineUse::understood;
  std::string_view rest = text.substr(in + 4);
  raised_.file = Capped(place.substr(0, colon), 500);
  raised_.function = Capped(TakeWord(rest), 200);
  raised_.code_line = number;
  return LineUse::understood;
}

//     assert torch.cuda.device_count() > opt.local_rank
//     raise RendezvousConnectionError(
// What the line of code itself tells of the error.
void TracebackReader::TakeStatement(std::string_view code) {
  const bool raises = code.starts_with("raise ");
  raised_.by_statement = raised_.by_statement || raises;
  if (raises || code.starts_with("assert ")) raised_.statement = Capped(code, 300);
}

// "RendezvousConnectionError" of "raise RendezvousConnectionError(": what a traceback that ends in it
// would have named; empty where the statement raises a variable.
static std::string_view TypeOfStatement(std::string_view statement) {
  if (!TakeLiteral(statement, "raise ")) return {};
  const std::string_view type = statement.substr(0, statement.find_first_of("( :"));
  return statement.substr(type.size()).starts_with('(') && IsErrorName(type) ? type : std::string_view();
}

// "self.comm: ncclComm_t = ..." is a line of code that lost its indentation. Names of exceptions begin with a capital,
// but for a few old ones: socket.timeout, socket.gaierror.
static bool IsNameOfException(std::string_view type) {
  const size_t dot = type.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? type : type.substr(dot + 1);
  if (last.empty()) return false;
  // "WARNING:torch.distributed.run:" of a logger
  if (std::none_of(last.begin(), last.end(), [](char c) { return c >= 'a' && c <= 'z'; })) return false;
  if ((last[0] >= 'A' && last[0] <= 'Z') || last[0] == '_') return true;
  return last.ends_with("error") || last.ends_with("timeout") || last.ends_with("exit");
}

bool TracebackReader::TakeType(std::string_view body, const LogLine& line) {
  TakeLiteral(body, "*** ");
  const std::string_view type = TypeOf(body);
  if (type.empty() || !IsNameOfException(type)) return false;
  if (line.unfinished && type.size() == body.size()) return false;  // "Runtim": the rest of the name may be lost
  // Two processes print the same at the same moment: "ValueErrorValueError: : bad shape".
  const std::string_view half = type.substr(0, type.size() / 2);
  const bool twice = half.size() * 2 == type.size() && type.substr(half.size()) == half;
  raised_.type = std::string(twice ? half : type);
  std::string_view message = body.substr(type.size());
  TakeLiteral(message, ":");
  if (twice) TakeLiteral(message, " : ");
  raised_.message = Capped(Trim(message));
  message_next_ = raised_.message.empty() && body.size() > type.size();
  raised_.line = line;
  phase_ = Phase::message;
  return true;
}

// Two heads of one logger differ in nothing but digits: "ERROR 09-05 21:10:38 [core.py:702] ".
static bool IsSameHead(std::string_view a, std::string_view b) {
  a = Trim(a);
  b = Trim(b);
  if (a.size() != b.size() || a.empty()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i] && !(IsDigit(a[i]) && IsDigit(b[i]))) return false;
  return true;
}

std::string_view TracebackReader::WithoutHead(std::string_view text) const {
  if (head_.empty() || !IsSameHead(text.substr(0, head_.size()), head_)) return text;
  return text.substr(std::min(head_.size(), text.size()));
}

LineUse TracebackReader::ReadMessage(const LogLine& line, RecordList& out) {
  const std::string_view text = WithoutHead(line.text);
  if (const ChainLink link = ChainLinkOf(text); link != ChainLink::none) {
    if (root_.type.empty() || !FirstTellsMore(root_, link_, raised_)) root_ = raised_;
    link_ = link;
    chained_ = true;
    phase_ = Phase::idle;
    return LineUse::understood;
  }
  // The rest of the traceback of the other process.
  if (interleaved_ && !line.tagged && IsTracebackFrame(text)) {
    End(out);
    Begin(line, out.highest_step());
    return ReadFrame(line);
  }
  // "[rank3]: " marks every line of it; otherwise take few, and leave the rest to others.
  if (!line.tagged && ++message_lines_ > kMaxLooseLines) {
    End(out);
    return LineUse::not_understood;
  }
  if (Trim(text).empty()) {
    paragraph_ = !message_next_;
    return LineUse::ignored;
  }
  // What follows behind an empty line, at the margin, is somebody's sentence or the next lines of the log.
  if (paragraph_ && !line.tagged && !paused_ && Trim(head_).empty() && text[0] != ' ' && text[0] != '\t') {
    End(out);
    return LineUse::not_understood;
  }
  if (paused_ && IsTracebackFrame(text)) return ReadPausedFrame(line);
  // A frame behind the message: two processes print their lines between each other.
  if (!line.tagged && IsTracebackFrame(text)) {
    raised_.mixed = true;
    return LineUse::understood;
  }
  if (paused_ && indent_known_ && text.starts_with("    ")) return LineUse::understood;  // a line of code
  // A logger that marks every line of the traceback marks those of its message, too.
  if (!Trim(head_).empty() && text.data() == line.text.data()) return LineUse::not_understood;
  if (Trim(text).starts_with("```")) {  // the end of what was pasted
    End(out);
    return LineUse::ignored;
  }
  if (text.starts_with("frame #") || text.starts_with("Exception raised from ")) {
    message_lines_ = 0;  // the C++ stack of a long error
    return LineUse::ignored;
  }
  // "RuntimeError: " and its words below it
  if (message_next_) {
    message_next_ = false;
    raised_.message = Capped(Trim(text));
    return LineUse::understood;
  }
  AppendCapped(raised_.message, "\n");
  AppendCapped(raised_.message, text);
  return LineUse::understood;
}

// Exception has occurred: KeyError
// 'RANK'
//   File "/srv/train.py", line 31, in setup
// As debuggers of editors show it where they hold the program: the innermost frame is the first.
LineUse TracebackReader::ReadPaused(const LogLine& line, RecordList& out) {
  std::string_view rest = line.text.substr(kPaused.size());
  const std::string_view type = TakeWord(rest);
  End(out);
  Begin(line, out.highest_step());
  if (!IsErrorName(type) || !TakeType(type, line)) {
    phase_ = Phase::idle;
    return LineUse::not_understood;
  }
  message_next_ = paused_ = true;
  return LineUse::understood;
}

// The frames of a held program stand below its message.
LineUse TracebackReader::ReadPausedFrame(const LogLine& line) {
  RaisedException kept = raised_;
  indent_known_ = false;
  ReadFrame(line);
  if (!kept.file.empty()) raised_ = std::move(kept);
  message_next_ = false;
  return LineUse::understood;
}

// RuntimeError                              Traceback (most recent call last)
// Notebooks name the error above its frames, too.
static std::string_view TypeBeforeTraceback(std::string_view text) {
  const std::string_view type = text.substr(0, text.find(' '));
  return IsErrorName(type) && Trim(text.substr(type.size())).starts_with("Traceback (most recent") ? type
                                                                                                   : std::string_view();
}

// Traceback (most recent call last):
// RuntimeError  File "/srv/train.py", line 1069, in <module>
// : [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:62382
// Python writes an error piece by piece, and two processes at once: the type is that of the traceback before this head,
// and its message is the next line that begins with a colon.
bool TracebackReader::TakeGluedType(LogLine& line) {
  const std::string_view type = line.text.substr(
      0, line.text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_.0123456789"));
  if (unended_.file.empty() || !unended_.type.empty() || !IsErrorName(type) ||
      !line.text.substr(type.size()).starts_with("  File \""))
    return false;
  unended_.type = Capped(type, 160);
  unended_.line = line;
  line.text.remove_prefix(type.size());
  return true;
}

bool TracebackReader::TakeLateMessage(const LogLine& line, RecordList& out) {
  if (unended_.type.empty() || !line.text.starts_with(": ")) return false;
  unended_.message = Capped(Trim(line.text.substr(2)));
  std::swap(raised_, unended_);
  Write(out);
  std::swap(raised_, unended_);
  unended_ = RaisedException();
  return true;
}

bool IsObjectDump(std::string_view text) {
  if (text == "lost sys.stderr") return true;
  if (!TakeLiteral(text, "object ")) return false;
  for (const std::string_view what : {"address  : ", "refcount : ", "type     : ", "type name: ", "repr     : "})
    if (text.starts_with(what)) return true;
  return false;
}

LineUse TracebackReader::Read(const LogLine& line, RecordList& out) {
  if (phase_ == Phase::frames && !unended_.file.empty() && !line.tagged) {
    LogLine rest = line;
    if (TakeGluedType(rest)) return Read(rest, out);
    if (TakeLateMessage(line, out)) return LineUse::understood;
  }
  if (line.has(Keyword::notebook_traceback))
    if (const std::string_view type = TypeBeforeTraceback(line.text); !type.empty()) {
      notebook_.type = Capped(type, 160);
      notebook_.line = line;
      return LineUse::understood;
    }
  if (line.has(Keyword::traceback)) {
    if (phase_ == Phase::message && IsOriginalOf(raised_, line.text)) {
      WriteWrapper(out);
      wrapper_ = raised_;
      root_ = RaisedException();
      phase_ = Phase::idle;
    } else if (phase_ == Phase::message && RankOfDeadlock(raised_) >= 0) {
      origin_next_ = RankOfDeadlock(raised_);
      phase_ = Phase::idle;
    } else {
      if (phase_ == Phase::message && !chained_) End(out);
      if (!chained_) WriteWrapper(out);
    }
    // Two heads without a frame between them.
    const bool twice = phase_ == Phase::frames && !indent_known_ && !line.tagged;
    interleaved_ = twice || (interleaved_ && phase_ == Phase::frames);
    unended_ = phase_ == Phase::frames && indent_known_ && !line.tagged && !chained_ ? raised_ : RaisedException();
    Begin(line, out.highest_step());
    raised_.mixed = interleaved_;
    return LineUse::understood;
  }
  if (line.has(Keyword::framed_traceback) && Contains(line.text, "╭")) {
    if (phase_ == Phase::message && !chained_) End(out);
    if (!chained_) WriteWrapper(out);
    Begin(line, out.highest_step());
    phase_ = Phase::framed;
    return LineUse::understood;
  }
  if (line.text.starts_with("Exception ignored in") || line.text.starts_with("--- Logging error ---")) {
    End(out);
    disregard_next_ = true;
    return LineUse::ignored;
  }
  if (line.text.starts_with("Exception in thread ")) {
    End(out);
    thread_next_ = Capped(line.text.substr(20), 100);
    return LineUse::understood;
  }
  if (line.text.starts_with(kPaused)) return ReadPaused(line, out);
  if (phase_ == Phase::message) return ReadMessage(line, out);
  if (phase_ == Phase::framed) return ReadFramed(line);
  if (phase_ == Phase::idle) {
    // The head of the traceback was not pasted, or nothing but its last line.
    if (IsTracebackFrame(line.text)) {
      Begin(line, out.highest_step());
      return ReadFrame(line);
    }
    const bool told_elsewhere = std::any_of(std::begin(kToldElsewhere), std::end(kToldElsewhere),
                                            [&](Keyword keyword) { return line.has(keyword); });
    if (line.text.starts_with("(Pdb)") || line.text.starts_with("ipdb>")) in_debugger_ = true;
    const bool answer = in_debugger_ && line.text.starts_with("*** ");
    const bool may_be_bare = line.severity == 0 && !chained_ && !told_elsewhere && !answer;
    const std::string_view error = may_be_bare ? FindBareError(line.text) : std::string_view();
    if (error.empty()) return LineUse::not_understood;
    End(out);
    Begin(line, out.highest_step());
    return TakeType(error, line) ? LineUse::understood : LineUse::not_understood;
  }
  if (ReadFrame(line) == LineUse::understood) return LineUse::understood;
  // autograd's anomaly mode shows the forward call of what fails in backward(); the error itself comes behind it.
  if (Contains(line.text, "python_anomaly_mode.cpp")) {
    of_backward_ = true;
    return LineUse::understood;
  }
  const std::string_view body = line.text.size() > indent_ ? line.text.substr(indent_) : std::string_view();
  if (body.starts_with(' ') || body.empty()) {  // a line of code, or marks under it
    TakeStatement(Trim(body));
    return LineUse::understood;
  }
  // Message: 'Received sigquit from a child process.': the frames were those of a call of a logger that could not
  // write.
  if (indent_known_ && body.starts_with("Message: '")) {
    phase_ = Phase::idle;
    return LineUse::understood;
  }
  if (indent_known_ && TakeType(body, line)) {
    head_ = Capped(line.text.substr(0, indent_), 200);
    return LineUse::understood;
  }
  // Another process's line in between, or the process died while it printed.
  if (++strange_lines_ > kMaxStrangeLines) phase_ = Phase::idle;
  return LineUse::not_understood;
}

void TracebackReader::End(RecordList& out) {
  if (phase_ == Phase::frames || phase_ == Phase::framed)
    return;  // a log line of another thread may fall between two frames
  if (phase_ == Phase::idle && !root_.type.empty()) {
    raised_ = root_;  // the second traceback of a chain never came, or not whole
    phase_ = Phase::message;
  }
  if (phase_ == Phase::message) Write(out);
  WriteWrapper(out);
  phase_ = Phase::idle;
  chained_ = false;
  root_ = RaisedException();
}

// The original is cut off, or strange lines fell into it: what it was raised again as is all there is.
void TracebackReader::WriteWrapper(RecordList& out) {
  if (wrapper_.type.empty()) return;
  raised_ = std::move(wrapper_);
  wrapper_ = root_ = RaisedException();
  Write(out);
}

void TracebackReader::Finish(RecordList& out) {
  const bool open = (phase_ == Phase::frames || phase_ == Phase::framed) && (indent_known_ || !raised_.file.empty()) &&
                    !disregard_ && root_.type.empty() && wrapper_.type.empty();
  const bool cut = open && !in_launcher_;
  if (phase_ == Phase::frames || phase_ == Phase::framed) phase_ = Phase::idle;
  End(out);
  if (!notebook_.type.empty() && !cut) {  // the last line, which names it again, was not pasted
    TorchLogRecord& record = out.Add(TorchLogKind::exception, notebook_.line);
    record.subject = notebook_.type;
    record.value2 = step_;
  }
  // Nobody catches what a launcher raises; whether a worker failed, or the launcher itself, stands in the lines that
  // are missing.
  if (open && in_launcher_) {
    TorchLogRecord& record = out.Add(TorchLogKind::abort_signal, raised_.line);
    record.subject = "launcher";
    record.object = kLauncherCut;
  }
  if (!cut) return;
  TorchLogRecord& record = out.Add(TorchLogKind::exception, raised_.line);
  record.rank = raised_.origin;
  record.subject = of_backward_ ? "RuntimeError" : kCutException;
  if (of_backward_) record.text = "the backward pass of this call failed";
  if (const std::string_view type = TypeOfStatement(raised_.statement); !of_backward_ && !type.empty()) {
    record.subject = type;
    record.text = kCutWords;
  }
  record.function = raised_.function;
  record.file = raised_.file;
  record.code_line = raised_.code_line;
  record.during = static_cast<uint8_t>(raised_.during);
  record.of_server = raised_.of_server;
  record.value2 = step_;
}

namespace {

// RuntimeError: Connection timed out
// Before 1.10 the store said no more than this.
bool IsStoreOutOfReach(const RaisedException& raised) {
  if (!raised.in_rendezvous || raised.type != "RuntimeError") return false;
  const std::string_view message = raised.message;
  return message.starts_with("Connection timed out") || message.starts_with("Connection refused") ||
         message.starts_with("connect() timed out") || message.starts_with("No route to host");
}

// RuntimeError: Wait timeout
// What torch's stores said before 1.5 where a key never came: the rank that should have set it did not join.
bool IsStoreWait(const RaisedException& raised) {
  return raised.type == "RuntimeError" && raised.message.substr(0, raised.message.find('\n')) == "Wait timeout";
}

// TimeoutError: RPC call to execute_model timed out.
// Who gives up after waiting for its workers is vLLM's engine; it is they who do not answer.
std::string_view CallWithoutAnswer(const RaisedException& raised) {
  std::string_view message = raised.message;
  if (!raised.type.ends_with("TimeoutError") || !TakeLiteral(message, "RPC call to ")) return {};
  const size_t end = message.find(" timed out");
  return end == std::string_view::npos ? std::string_view() : message.substr(0, std::min<size_t>(end, 80));
}

// AssertionError: Rank 11: found NaN in local grad norm ...
// RuntimeError: Rank 12, node n-041, device 4, iteration 80122: Unexpected result nan ...
// RuntimeError: [Rank:6] FATAL ERROR :: MODULE:PT_BRIDGE ...
int32_t RankInMessage(std::string_view message) {
  const bool bracket = TakeLiteral(message, "[Rank:");
  if (!bracket && !TakeLiteral(message, "Rank ") && !TakeLiteral(message, "rank ")) return -1;
  int32_t rank = -1;
  if (!TakeNumber(message, &rank) || rank < 0) return -1;
  return message.starts_with(bracket ? "]" : ":") || message.starts_with(", node ") ? rank : -1;
}

// self = reduction.pickle.load(from_parent)
// EOFError: Ran out of input
// A child that multiprocessing starts reads from its parent what to run. Where that ends too early the parent failed
// while it pickled, or is gone: what it raised itself is the reason.
bool IsUnreadParent(const RaisedException& raised) {
  const std::string_view file = raised.innermost_file;
  return ContainsAny(file,
                     {"multiprocessing/spawn.py", "multiprocessing\\spawn.py", "multiprocessing/forkserver.py"}) &&
         raised.innermost_function == "_main" &&
         (raised.type.ends_with("EOFError") || raised.message.starts_with("pickle data was truncated"));
}

}  // namespace

void TracebackReader::Write(RecordList& out) {
  notebook_ = RaisedException();
  const RaisedException wrapper = std::move(wrapper_);
  wrapper_ = RaisedException();
  if (disregard_ || IsLaunchersOwn(raised_)) return;
  const bool first = !root_.type.empty() && FirstTellsMore(root_, link_, raised_);
  const RaisedException& told = first ? root_ : raised_;
  const RaisedException& other = first ? raised_ : root_;
  if (IsStoreOutOfReach(told)) out.Add(TorchLogKind::store_unreachable, told.line).text = told.message;
  if (IsStoreWait(told)) out.Add(TorchLogKind::rendezvous_incomplete, told.line).text = told.message;
  if (const std::string_view call = CallWithoutAnswer(told); !call.empty()) {
    TorchLogRecord& stuck = out.Add(TorchLogKind::heartbeat_stuck, told.line);
    stuck.subject = "did not answer " + std::string(call);
    stuck.object = "engine";
    stuck.text = told.message;
  }
  TorchLogRecord& record = out.Add(TorchLogKind::exception, told.line);
  if (!told.line.tagged) record.rank = RankInMessage(told.message);
  if (raised_.origin >= 0) record.rank = raised_.origin;
  record.subject = told.type;
  record.value2 = step_;
  record.in_thread = !told.thread.empty();
  record.in_collective = told.in_collective;
  record.op = told.call;
  record.of_job = raised_.of_job || root_.of_job;
  if (!told.thread.empty()) record.text = "in thread " + told.thread + " ";
  // An assertion without words of its own: its condition is all that it says.
  if (told.type == "AssertionError" && Trim(told.message.substr(0, told.message.find('\n'))).empty() &&
      told.statement.starts_with("assert "))
    AppendCapped(record.text, told.statement);
  AppendCapped(record.text, told.message);
  const RaisedException& place = !told.file.empty() ? told : !other.file.empty() ? other : wrapper;
  // Where Ctrl-C meets a process that only watches others tells nothing of them.
  const bool elsewhere = told.watches && told.type == "KeyboardInterrupt";
  if (!told.mixed && !elsewhere) {
    record.function = place.function;
    record.file = place.file;
    record.code_line = place.code_line;
  }
  // What nobody catches begins in the program's module, or where a thread or a process begins.
  record.caught_there = link_ == ChainLink::none && told.thread.empty() && !told.mixed && !told.function.empty() &&
                        told.function != "<module>" && told.outermost_file == told.file &&
                        told.outermost_function == told.function;
  record.during = static_cast<uint8_t>(first ? JoinActivities(shared_activity_, told.during) : told.during);
  if (!wrapper.type.empty()) {
    if (wrapper.during != Activity::not_told) record.during = static_cast<uint8_t>(wrapper.during);
    const std::string worker =
        (record.text.empty() ? "raised " : "\nraised ") + std::string(PlaceOfWorker(wrapper.message));
    if (record.text.size() + worker.size() > kMaxRecordText)
      record.text.resize(std::min(record.text.size(), kMaxRecordText - worker.size()));
    AppendCapped(record.text, worker);
  }
  record.of_server = raised_.of_server || told.of_server;
  record.of_launcher = in_launcher_;
  record.of_parent = IsUnreadParent(told);
  const auto first_line = [](const std::string& text) { return std::string_view(text).substr(0, text.find('\n')); };
  if (other.type.empty() || (other.type == told.type && first_line(other.message) == first_line(told.message))) return;
  const std::string beside = std::string(first ? kChainLedTo : "\nwhile handling ") + other.type + ": " + other.message;
  // Room for the other: it may say most.
  if (record.text.size() + beside.size() > kMaxRecordText)
    record.text.resize(std::min(record.text.size(), kMaxRecordText / 2));
  AppendCapped(record.text, beside);
}

}  // namespace tacet
