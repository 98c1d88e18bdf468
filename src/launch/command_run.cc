// SPDX-License-Identifier: Apache-2.0
#include "launch/command_run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/text_scan.h"

namespace tacet {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kErrorTail = 4096;
constexpr int64_t kSilenceMs = 1000;

struct ChildPipes {
  int out[2] = {-1, -1}, error[2] = {-1, -1}, failure[2] = {-1, -1};

  bool Open() {
    return ::pipe2(out, O_CLOEXEC) == 0 && ::pipe2(error, O_CLOEXEC) == 0 && ::pipe2(failure, O_CLOEXEC) == 0;
  }
  static void Close(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  ~ChildPipes() {
    for (int* pair : {out, error, failure}) {
      Close(pair[0]);
      Close(pair[1]);
    }
  }
};

// Only calls that are safe between fork and exec in a program with threads.
[[noreturn]] void BecomeProgram(ChildPipes& pipes, char* const* arguments) {
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, 0);
  ::dup2(pipes.out[1], 1);
  ::dup2(pipes.error[1], 2);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execvp(arguments[0], arguments);
  const int why = errno;
  [[maybe_unused]] const ssize_t written = ::write(pipes.failure[1], &why, sizeof why);
  ::_exit(127);
}

int64_t LeftMs(Clock::time_point until) {
  return std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count());
}

// False at the end of the stream.
bool ReadSome(int fd, const std::function<void(std::string_view)>& take) {
  char buffer[1 << 16];
  const ssize_t got = ::read(fd, buffer, sizeof buffer);
  if (got > 0) take({buffer, static_cast<size_t>(got)});
  return got > 0 || (got < 0 && (errno == EINTR || errno == EAGAIN));
}

// It stays a child that can be waited for.
bool HasEnded(pid_t pid) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid;
}

// Both streams until they end or the time is up. Who holds a stream open after the program has ended and says nothing
// (the connection that ssh keeps for its next call) is not waited for.
bool ReadStreams(ChildPipes& pipes, pid_t pid, Clock::time_point until,
                 const std::function<void(std::string_view)>& on_out,
                 const std::function<void(std::string_view)>& on_error) {
  pollfd streams[2] = {{pipes.out[0], POLLIN, 0}, {pipes.error[0], POLLIN, 0}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    const int64_t left = LeftMs(until);
    if (left == 0) return false;
    const int ready = ::poll(streams, 2, static_cast<int>(std::min(left, kSilenceMs)));
    if (ready < 0 && errno != EINTR) return false;
    if (ready == 0 && HasEnded(pid)) return true;
    if (ready <= 0) continue;
    if (streams[0].fd >= 0 && streams[0].revents != 0 && !ReadSome(streams[0].fd, on_out)) streams[0].fd = -1;
    if (streams[1].fd >= 0 && streams[1].revents != 0 && !ReadSome(streams[1].fd, on_error)) streams[1].fd = -1;
  }
  return true;
}

// False when it had to be killed.
bool WaitForEnd(pid_t pid, Clock::time_point until, bool kill_now, int* status) {
  bool in_time = !kill_now;
  while (in_time && ::waitpid(pid, status, WNOHANG) == 0) {
    if (LeftMs(until) == 0)
      in_time = false;
    else
      ::usleep(2000);
  }
  if (in_time) return true;
  ::kill(-pid, SIGKILL);
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, status, 0) < 0 && errno == EINTR) {
  }
  return false;
}

std::string DescribeProblem(const CommandOutcome& outcome, const std::string& program, const CommandLimits& limits) {
  if (!outcome.started) return outcome.problem.empty() ? program + " cannot be started" : outcome.problem;
  if (outcome.timed_out) return "took longer than " + std::to_string(limits.time_ms / 1000) + " s and was ended";
  if (outcome.exit_code == 0) return "";
  std::string_view last = Trim(std::string_view(outcome.error).substr(0, outcome.error.find_last_not_of("\n ") + 1));
  if (const size_t line = last.rfind('\n'); line != std::string_view::npos) last = last.substr(line + 1);
  // ssh answers 255 for its own failures, which is no signal.
  std::string text = outcome.exit_code > 128 && outcome.exit_code <= 128 + SIGRTMAX
                         ? "was ended by signal " + std::to_string(outcome.exit_code - 128)
                         : "ended with exit code " + std::to_string(outcome.exit_code);
  return last.empty() ? text : text + ": " + std::string(last);
}

}  // namespace

CommandOutcome RunCommand(const std::vector<std::string>& command, const CommandLimits& limits,
                          const std::function<void(std::string_view)>& sink) {
  CommandOutcome outcome;
  ChildPipes pipes;
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t pid = pipes.Open() ? ::fork() : -1;
  if (pid == 0) BecomeProgram(pipes, arguments.data());
  if (pid < 0) {
    outcome.problem = std::string("no process can be started: ") + std::strerror(errno);
    return outcome;
  }
  ChildPipes::Close(pipes.out[1]);
  ChildPipes::Close(pipes.error[1]);
  ChildPipes::Close(pipes.failure[1]);
  int why = 0;
  outcome.started = ::read(pipes.failure[0], &why, sizeof why) != sizeof why;
  if (!outcome.started)
    outcome.problem = command[0] + (why == ENOENT ? " is not installed" : std::string(": ") + std::strerror(why));

  const Clock::time_point until = Clock::now() + std::chrono::milliseconds(limits.time_ms);
  uint64_t taken = 0;
  const auto on_out = [&](std::string_view bytes) {
    const size_t room = static_cast<size_t>(std::min<uint64_t>(bytes.size(), limits.most_bytes - taken));
    outcome.cut |= room < bytes.size();
    taken += room;
    if (sink)
      sink(bytes.substr(0, room));
    else
      outcome.out.append(bytes.substr(0, room));
  };
  const auto on_error = [&](std::string_view bytes) {
    outcome.error.append(bytes);
    if (outcome.error.size() > kErrorTail) outcome.error.erase(0, outcome.error.size() - kErrorTail);
  };
  const bool read_all = ReadStreams(pipes, pid, until, on_out, on_error);
  int status = 0;
  outcome.timed_out = !WaitForEnd(pid, until, !read_all, &status) && outcome.started;
  outcome.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  outcome.problem = DescribeProblem(outcome, command[0], limits);
  return outcome;
}

std::string FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return ::access(name.c_str(), X_OK) == 0 ? name : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path != nullptr ? path : "/usr/bin:/bin";
  while (true) {
    const std::string_view folder = TakeUntil(rest, ':');
    std::string full = (folder.empty() ? std::string(".") : std::string(folder)) + "/" + name;
    if (::access(full.c_str(), X_OK) == 0) return full;
    if (rest.empty()) return "";
    rest.remove_prefix(1);
  }
}

std::string QuoteForShell(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

std::string ShowCommand(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + QuoteForShell(word);
  return text;
}

}  // namespace tacet
