// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "launch/output_log.h"
#include "launch/output_sense.h"
#include "launch/run_settings.h"

namespace tacet {

// What the watch may know of a job's output, from another thread.
struct JobActivity {
  std::atomic<int64_t> last_output_ns{0};  // monotonic; of output that shows work (OutputSense)
  std::atomic<uint64_t> output_bytes{0};
  std::atomic<bool> watchdog_spoke{false};  // PyTorch's watchdog gave up waiting
};

// How a job ended.
struct RunEnd {
  int exit_code = -1;  // 128 + n after signal n, as a shell says it
  int signal = 0;      // that ended it, 0 none
  int asked_by = 0;    // the signal by which somebody asked us, and so the job, to end; 0 nobody did
  int64_t asked_wall_ns = 0;  // when the first such signal arrived
};

// The signals that a run passes on, held back from the moment this is made. To be made before any thread.
class HeldSignals {
 public:
  HeldSignals();
  const sigset_t& before() const { return before_; }
  const sigset_t& held() const { return held_; }

 private:
  sigset_t held_, before_;
};

// The job's launcher as a child: its output goes on to our own standard output and standard error as it comes and as it
// is, and into the log. It gets a pseudo-terminal where ours is a terminal, and one stream for both where ours are one.
class JobProcess {
 public:
  // An Error where the program cannot be run; `exit_code` then is 127 (not found) or 126, as a shell has it.
  static Result<std::unique_ptr<JobProcess>> Start(const std::vector<std::string>& command,
                                                   const Environment& environment, const HeldSignals& signals,
                                                   int* exit_code);
  ~JobProcess();

  pid_t pid() const { return pid_; }
  // Until the child has ended and its output is passed on. Signals are passed on once each.
  RunEnd Serve(OutputLog& log, JobActivity& activity);

 private:
  struct Stream {
    int source = -1;
    int target = -1;
    OutputStream name = OutputStream::out;
    bool terminal = false;  // the source is our side of a pseudo-terminal
    size_t most_at_once = 0;
    std::string waiting;  // read, not yet passed on
    OutputSense sense{};
  };
  JobProcess() = default;
  bool ReadFrom(Stream& stream, OutputLog& log, JobActivity& activity);
  void PassOn(Stream& stream);
  void CloseSource(Stream& stream);
  void HandleSignals();
  void CopyWindowSize();
  bool HasEnded();

  pid_t pid_ = -1;
  int signals_ = -1;
  bool own_group_ = false;
  bool ended_ = false;
  int status_ = 0, asked_by_ = 0;
  int64_t asked_wall_ns_ = 0;
  std::vector<Stream> streams_;
};

// Ends this process as the job ended: by the same signal, or with the same code.
[[noreturn]] void EndLike(const RunEnd& end);

}  // namespace tacet
