// SPDX-License-Identifier: Apache-2.0
#include "live/server/judge_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "evidence/black_box/black_box_parse.h"
#include "render/report/json_render.h"
#include "render/report/text_render.h"

extern "C" char** environ;

namespace tacet {
namespace {

constexpr size_t kMostVerdictBytes = size_t{64} << 20, kMostTaskBytes = size_t{512} << 20;
constexpr int kLookMs = 100, kMostCores = 4;
constexpr int kBadTask = 2, kOutOfMemory = 12, kNotLimited = 13;  // exit codes of the judging process

// What a patrol may say of a job that runs: its boxes were read at different moments, so only what holds at any moment,
// and that is what ranks issued at the same place of a group's order.
bool IsWrong(const Report& report) {
  return !report.findings.empty() && report.verdict.cause.starts_with("collective-") &&
         report.findings[0].cause == report.verdict.cause && report.verdict.confidence == Confidence::certain;
}

// The rules see operations in flight and speak of a hang; the watch knows that the job runs on.
void SayThatItRunsOn(Report& report) {
  report.verdict.status = Status::corrupt;
  for (ReportFinding& finding : report.findings)
    if (finding.cause == report.verdict.cause) finding.status = Status::corrupt;
}

// The judge's process with both of its pipes.
class JudgeChild {
 public:
  ~JudgeChild() {
    CloseInput();
    if (output_ >= 0) ::close(output_);
    if (pid_ > 0) ::kill(pid_, SIGKILL), Wait();
  }

  bool Start(std::vector<std::string> words) {
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    if (::pipe2(in, O_CLOEXEC) != 0) return false;
    if (::pipe2(out, O_CLOEXEC) != 0) return ::close(in[0]), ::close(in[1]), false;
    input_ = in[1];
    output_ = out[0];
    ::fcntl(input_, F_SETFL, O_NONBLOCK);
    ::fcntl(output_, F_SETFL, O_NONBLOCK);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::vector<char*> arguments, variables;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    // One pool of memory for all threads: each further one reserves address space, which is what is limited.
    std::string arenas = "MALLOC_ARENA_MAX=1";
    for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
    variables.push_back(arenas.data());
    variables.push_back(nullptr);
    const int error = ::posix_spawn(&pid_, arguments[0], &actions, nullptr, arguments.data(), variables.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    if (error != 0) pid_ = -1, errno = error;
    return error == 0;
  }

  void CloseInput() {
    if (input_ >= 0) ::close(std::exchange(input_, -1));
  }
  int Wait() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    return status;
  }
  int input() const { return input_; }
  int output() const { return output_; }

 private:
  pid_t pid_ = -1;
  int input_ = -1, output_ = -1;
};

// Feeds the pieces one after the other and takes what comes back, neither waiting for the other.
class JudgeTalk {
 public:
  JudgeTalk(JudgeChild& child, JudgeTask task) : child_(child), task_(std::move(task)), piece_(WriteJudgeHead(task_)) {}

  // False when the time is over, or somebody wants to end.
  bool Run(int64_t limit_ms, const std::atomic<bool>& stop) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
    for (bool open = true; open;) {
      if (stop || std::chrono::steady_clock::now() > until || answer.size() > kMostVerdictBytes) return false;
      pollfd entries[2] = {{child_.output(), POLLIN, 0}, {child_.input(), POLLOUT, 0}};
      if (::poll(entries, child_.input() >= 0 ? 2 : 1, kLookMs) <= 0) continue;
      if (child_.input() >= 0 && entries[1].revents != 0) Feed();
      if (entries[0].revents != 0) open = Take();
    }
    return true;
  }
  std::string answer;

 private:
  bool NextPiece() {
    sent_ = 0;
    if (!ras_sent_) return ras_sent_ = true, piece_ = std::move(task_.ras), true;
    if (next_box_ == task_.boxes.size()) return false;
    piece_ = std::move(task_.boxes[next_box_++].bytes);
    return true;
  }

  void Feed() {
    while (sent_ == piece_.size())
      if (!NextPiece()) return child_.CloseInput();
    const ssize_t put = ::write(child_.input(), piece_.data() + sent_, piece_.size() - sent_);
    if (put > 0) sent_ += static_cast<size_t>(put);
    if (put < 0 && errno != EAGAIN && errno != EINTR) child_.CloseInput();  // it ended; its exit says why
  }

  bool Take() {
    char bytes[65536];
    const ssize_t got = ::read(child_.output(), bytes, sizeof bytes);
    if (got > 0) answer.append(bytes, static_cast<size_t>(got));
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
  }

  JudgeChild& child_;
  JudgeTask task_;
  std::string piece_;
  size_t sent_ = 0, next_box_ = 0;
  bool ras_sent_ = false;
};

// Each thread takes address space, and a judge must not take all cores from the jobs of its host.
void UseFewCores() {
  cpu_set_t cores, few;
  CPU_ZERO(&few);
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return;
  for (int core = 0, taken = 0; core < CPU_SETSIZE && taken < kMostCores; ++core)
    if (CPU_ISSET(core, &cores)) CPU_SET(core, &few), ++taken;
  ::sched_setaffinity(0, sizeof few, &few);
}

// A limit that is lower already stays.
bool Limit(int resource, uint64_t most) {
  const auto which = static_cast<__rlimit_resource>(resource);
  rlimit limit{};
  if (::getrlimit(which, &limit) != 0) return false;
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, most);
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  return ::setrlimit(which, &limit) == 0;
}

// A judge without its limits is no safer than the server itself, so it does not begin.
bool LimitJudge([[maybe_unused]] uint64_t most_memory, uint64_t cpu_seconds) {
  bool ok =
      Limit(RLIMIT_CPU, cpu_seconds) && Limit(RLIMIT_NOFILE, 64) && Limit(RLIMIT_FSIZE, 0) && Limit(RLIMIT_CORE, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which reserve terabytes
  ok = ok && Limit(RLIMIT_AS, most_memory);
#endif
  return ok;
}

std::string WhyItFailed(int exit_code, uint64_t most_memory) {
  if (exit_code == kOutOfMemory)
    return "the judging process needs more than the " + std::to_string(most_memory >> 20) + " MiB that it may use";
  if (exit_code == kNotLimited)
    return "the judging process could not be limited in memory and time, and was not started";
  return "the judging process failed with exit code " + std::to_string(exit_code);
}

int JudgeStandardInput() {
  std::string bytes;
  char piece[65536];
  for (ssize_t got = 1; got > 0 && bytes.size() < kMostTaskBytes;) {
    got = ::read(STDIN_FILENO, piece, sizeof piece);
    if (got > 0) bytes.append(piece, static_cast<size_t>(got));
  }
  auto task = ReadJudgeTask(bytes);
  if (!task) return kBadTask;
  bytes = std::string();
  const std::string verdict = WriteJudged(JudgeHere(std::move(*task)));
  for (size_t sent = 0; sent < verdict.size();) {
    const ssize_t put = ::write(STDOUT_FILENO, verdict.data() + sent, verdict.size() - sent);
    if (put <= 0) return kBadTask;
    sent += static_cast<size_t>(put);
  }
  return 0;
}

}  // namespace

JudgedReport JudgeHere(JudgeTask task) {
  // Agents send boxes. What is anything else is not read: every further format would be one more way in.
  std::erase_if(task.boxes, [](const FetchedBox& box) { return !LooksLikeBlackBox(box.bytes); });
  const auto began = std::chrono::steady_clock::now();
  Report report = JudgeJob(std::move(task.boxes), task.suspicions, task.ras);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  JudgedReport judged;
  judged.wrong = task.runs_on && IsWrong(report);
  if (judged.wrong) SayThatItRunsOn(report);
  judged.status = Name(report.verdict.status);
  judged.cause = report.verdict.cause;
  judged.headline = report.verdict.headline;
  for (const auto& rank : report.verdict.ranks) judged.ranks.push_back(static_cast<int>(rank));
  judged.json = RenderJson(report);
  judged.text = RenderText(report, TextOptions());
  return judged;
}

Result<JudgedReport> JudgeApart(JudgeTask task, const JudgeOptions& options, const std::atomic<bool>& stop) {
  if (options.program.empty()) return JudgeHere(std::move(task));
  ::signal(SIGPIPE, SIG_IGN);
  uint64_t bytes = task.ras.size();
  for (const FetchedBox& box : task.boxes) bytes += box.bytes.size();
  std::vector<std::string> words = options.program;
  const uint64_t most_memory = options.least_memory + 8 * bytes;
  words.push_back(std::to_string(most_memory));
  words.push_back(std::to_string(2 * options.limit_ms / 1000 + 1));
  JudgeChild child;
  if (!child.Start(std::move(words))) return Error{std::string("cannot start a process: ") + std::strerror(errno), ""};
  JudgeTalk talk(child, std::move(task));
  if (!talk.Run(options.limit_ms, stop))
    return Error{"no verdict within " + std::to_string(options.limit_ms / 1000) + " s", ""};
  child.CloseInput();
  const int status = child.Wait();
  if (WIFSIGNALED(status))
    return Error{std::string("the judging process was ended by signal ") + std::to_string(WTERMSIG(status)) +
                     (WTERMSIG(status) == SIGABRT ? " (out of its memory?)" : ""),
                 ""};
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return Error{WhyItFailed(WEXITSTATUS(status), most_memory), ""};
  return ReadJudged(talk.answer);
}

int RunJudge(uint64_t most_memory, uint64_t cpu_seconds) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_DUMPABLE, 0);
  UseFewCores();
  if (!LimitJudge(most_memory, cpu_seconds)) return kNotLimited;
  try {
    return JudgeStandardInput();
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  }
}

}  // namespace tacet
