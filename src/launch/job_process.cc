// SPDX-License-Identifier: Apache-2.0
#include "launch/job_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/text_scan.h"
#include "launch/job_streams.h"

namespace tacet {
namespace {

constexpr int kPassedOn[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGTSTP};
constexpr int kOurs[] = {SIGCHLD, SIGWINCH};
// Who stays behind with the job's output open is given so long to say its last words.
constexpr auto kLastWords = std::chrono::milliseconds(300);
constexpr auto kLongestLastWords = std::chrono::seconds(3);

struct ChildPlan {
  std::vector<char*> arguments, environment;
  const std::vector<ChildStream>* streams;
  const sigset_t* mask;
  int failure;
  bool own_group;
  pid_t parent;
};

// Only calls that are safe between fork and exec.
[[noreturn]] void BecomeJob(const ChildPlan& plan) {
  // Killing `tacet run`, however hard, ends the job in order: its output has no reader any more.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != plan.parent) ::_exit(143);
  if (plan.own_group) ::setpgid(0, 0);
  for (const ChildStream& stream : *plan.streams)
    for (const int fd : stream.stands_for) ::dup2(stream.childs, fd);
  ::signal(SIGPIPE, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, plan.mask, nullptr);
  ::execvpe(plan.arguments[0], plan.arguments.data(), plan.environment.data());
  const int why = errno;
  [[maybe_unused]] const ssize_t written = ::write(plan.failure, &why, sizeof why);
  ::_exit(127);
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A pipe takes PIPE_BUF bytes without blocking once it is writable; a file takes all.
size_t MostAtOnce(int target) {
  struct stat what {};
  if (::fstat(target, &what) == 0 && S_ISREG(what.st_mode)) return SIZE_MAX;
  return PIPE_BUF;
}

}  // namespace

HeldSignals::HeldSignals() {
  sigemptyset(&held_);
  for (const int number : kPassedOn) {
    struct sigaction current {};
    // What was ignored when we were started (nohup, a background job) stays so for both of us.
    if (::sigaction(number, nullptr, &current) == 0 && current.sa_handler == SIG_IGN) continue;
    sigaddset(&held_, number);
  }
  for (const int number : kOurs) sigaddset(&held_, number);
  ::pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

Result<std::unique_ptr<JobProcess>> JobProcess::Start(const std::vector<std::string>& command,
                                                      const Environment& environment, const HeldSignals& signals,
                                                      int* exit_code) {
  *exit_code = 126;
  std::unique_ptr<JobProcess> job(new JobProcess());
  // On a terminal the job stays in our group: Ctrl-C, Ctrl-Z and reading the terminal work as they always do.
  job->own_group_ = !::isatty(0);
  job->signals_ = ::signalfd(-1, &signals.held(), SFD_CLOEXEC | SFD_NONBLOCK);
  std::vector<ChildStream> streams = OpenChildStreams();
  int failure[2];
  if (job->signals_ < 0 || streams.empty() || ::pipe2(failure, O_CLOEXEC) != 0)
    return Error{std::string("cannot start the job: ") + std::strerror(errno), ""};
  std::vector<std::string> words = command, variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  const ChildPlan plan{Pointers(words), Pointers(variables), &streams,  &signals.before(),
                       failure[1],      job->own_group_,     ::getpid()};
  job->pid_ = ::fork();
  if (job->pid_ == 0) BecomeJob(plan);
  ::close(failure[1]);
  int why = job->pid_ < 0 ? errno : 0;
  if (job->pid_ > 0 && ::read(failure[0], &why, sizeof why) != sizeof why) why = 0;
  ::close(failure[0]);
  if (why != 0) {
    if (job->pid_ > 0) ::waitpid(job->pid_, nullptr, 0);
    job->pid_ = -1;
    CloseChildStreams(streams);
    if (why == ENOENT) *exit_code = 127;
    return Error{"cannot run '" + command[0] + "': " + std::strerror(why),
                 why == ENOENT ? "check the name and PATH" : ""};
  }
  for (ChildStream& stream : streams) {
    ::close(stream.childs);
    ::fcntl(stream.ours, F_SETFL, ::fcntl(stream.ours, F_GETFL) | O_NONBLOCK);
    const int target = stream.stands_for.front();
    job->streams_.push_back({stream.ours, target, target == 1 ? OutputStream::out : OutputStream::error,
                             stream.terminal, MostAtOnce(target), ""});
  }
  return job;
}

JobProcess::~JobProcess() {
  for (Stream& stream : streams_) CloseSource(stream);
  if (signals_ >= 0) ::close(signals_);
}

RunEnd JobProcess::Serve(OutputLog& log, JobActivity& activity) {
  using Clock = std::chrono::steady_clock;
  activity.last_output_ns = MonotonicNs();
  Clock::time_point quiet_until{}, last_until{};
  while (true) {
    std::vector<pollfd> polled = {{signals_, POLLIN, 0}};
    bool open = false;
    for (const Stream& stream : streams_) {
      const bool full = !stream.waiting.empty();
      polled.push_back({full ? stream.target : stream.source, static_cast<short>(full ? POLLOUT : POLLIN), 0});
      open |= full || stream.source >= 0;
    }
    if (HasEnded()) {
      if (last_until == Clock::time_point{}) last_until = Clock::now() + kLongestLastWords;
      if (quiet_until == Clock::time_point{}) quiet_until = Clock::now() + kLastWords;
      const bool waiting =
          std::any_of(streams_.begin(), streams_.end(), [](auto& one) { return !one.waiting.empty(); });
      if (!open || (!waiting && Clock::now() > std::min(quiet_until, last_until))) break;
    }
    ::poll(polled.data(), polled.size(), ended_ ? 50 : -1);
    if (polled[0].revents != 0) HandleSignals();
    for (size_t i = 0; i < streams_.size(); ++i) {
      if (polled[i + 1].revents == 0) continue;
      if (streams_[i].waiting.empty() && ReadFrom(streams_[i], log, activity)) quiet_until = {};
      PassOn(streams_[i]);
    }
  }
  RunEnd end;
  end.signal = WIFSIGNALED(status_) ? WTERMSIG(status_) : 0;
  end.exit_code = end.signal != 0 ? 128 + end.signal : WEXITSTATUS(status_);
  end.asked_by = asked_by_;
  end.asked_wall_ns = asked_wall_ns_;
  return end;
}

bool JobProcess::HasEnded() {
  if (!ended_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
  return ended_;
}

bool JobProcess::ReadFrom(Stream& stream, OutputLog& log, JobActivity& activity) {
  if (stream.source < 0) return false;
  char buffer[1 << 16];
  const ssize_t got = ::read(stream.source, buffer, sizeof buffer);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0) {  // a pseudo-terminal that nobody holds any more says EIO
    CloseSource(stream);
    return false;
  }
  stream.waiting.assign(buffer, static_cast<size_t>(got));
  activity.output_bytes += static_cast<uint64_t>(got);
  if (stream.sense.ShowsWork(stream.waiting)) activity.last_output_ns = MonotonicNs();
  // Every rank that waits says it, so that one line cut in two between reads does not matter.
  if (Contains(stream.waiting, kWatchdogTimeoutWords)) activity.watchdog_spoke = true;
  log.Add(stream.name, stream.waiting, WallNs());
  return true;
}

void JobProcess::PassOn(Stream& stream) {
  while (!stream.waiting.empty()) {
    const size_t piece = std::min(stream.waiting.size(), stream.most_at_once);
    const ssize_t written = ::write(stream.target, stream.waiting.data(), piece);
    if (written > 0) {
      stream.waiting.erase(0, static_cast<size_t>(written));
      if (stream.most_at_once != SIZE_MAX) return;  // asked again whether it is writable
      continue;
    }
    if (written < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // Nobody reads us any more. Without us the job would have been told so: it is told so now.
    stream.waiting.clear();
    CloseSource(stream);
  }
}

void JobProcess::CloseSource(Stream& stream) {
  if (stream.source >= 0) ::close(stream.source);
  stream.source = -1;
}

void JobProcess::HandleSignals() {
  signalfd_siginfo info{};
  while (::read(signals_, &info, sizeof info) == sizeof info) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) continue;
    if (number == SIGWINCH) {
      CopyWindowSize();
      continue;
    }
    if (number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT) {
      asked_by_ = number;
      if (asked_wall_ns_ == 0) asked_wall_ns_ = WallNs();
    }
    // The terminal sends to the whole group, so a job in our group has it already.
    const bool from_terminal = info.ssi_code == SI_KERNEL && !own_group_;
    if (!from_terminal && !HasEnded()) ::kill(pid_, number);
    if (number == SIGTSTP) ::raise(SIGSTOP);
  }
}

void JobProcess::CopyWindowSize() {
  for (const Stream& stream : streams_) {
    winsize size{};
    if (stream.terminal && stream.source >= 0 && ::ioctl(stream.target, TIOCGWINSZ, &size) == 0)
      ::ioctl(stream.source, TIOCSWINSZ, &size);  // the kernel tells the job
  }
}

void EndLike(const RunEnd& end) {
  if (end.signal != 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);  // the core that matters is the job's
    ::signal(end.signal, SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, end.signal);
    ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
    ::kill(::getpid(), end.signal);
    ::usleep(100'000);
  }
  std::_Exit(end.exit_code);
}

}  // namespace tacet
