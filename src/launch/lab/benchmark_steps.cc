// SPDX-License-Identifier: Apache-2.0
#include "launch/lab/benchmark_steps.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <thread>

#include "launch/command_run.h"

extern "C" char** environ;

namespace tacet {
namespace {

using namespace std::chrono_literals;

// A server that runs until its client has come and gone, or until it is stopped.
class BenchmarkServer {
 public:
  explicit BenchmarkServer(const std::vector<std::string>& command) {
    if (command.empty()) return;
    std::vector<char*> words;
    for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    // A group of its own, so that what it starts ends with it.
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    posix_spawnattr_setpgroup(&attributes, 0);
    if (posix_spawnp(&pid_, words[0], &files, &attributes, words.data(), environ) != 0) pid_ = -1;
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  ~BenchmarkServer() {
    if (pid_ <= 0) return;
    for (int i = 0; i < 20; ++i) {
      if (waitpid(pid_, nullptr, WNOHANG) == pid_) return;
      if (i == 5) kill(-pid_, SIGTERM);
      std::this_thread::sleep_for(100ms);
    }
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  BenchmarkServer(const BenchmarkServer&) = delete;
  BenchmarkServer& operator=(const BenchmarkServer&) = delete;

 private:
  pid_t pid_ = -1;
};

// The client may come before the server listens: a few tries, as long as it fails at once.
CommandOutcome RunStep(const BenchmarkStep& step, int64_t limit_ms) {
  const BenchmarkServer server(step.server);
  CommandOutcome outcome;
  for (int attempt = 0; attempt < 5; ++attempt) {
    if (!step.server.empty()) std::this_thread::sleep_for(attempt == 0 ? 300ms : 1000ms);
    const auto started = std::chrono::steady_clock::now();
    outcome = RunCommand(step.command, {limit_ms, uint64_t{256} << 20});
    const bool at_once = std::chrono::steady_clock::now() - started < 3s;
    if (outcome.ok() || step.server.empty() || !at_once) break;
  }
  return outcome;
}

BenchmarkOutcome SaveStep(const BenchmarkStep& step, const std::string& folder, int64_t limit_ms) {
  const CommandOutcome ran = RunStep(step, limit_ms);
  BenchmarkOutcome outcome{step.file, ran.problem};
  std::ofstream file(folder + "/" + step.file, std::ios::binary);
  if (!step.head.empty()) file << step.head << "\n";
  file << ran.out;
  // What NCCL or the program said last explains a failure.
  if (!ran.ok()) file << ran.error;
  if (!file.flush()) outcome.problem = "cannot be written to " + folder;
  return outcome;
}

}  // namespace

std::vector<BenchmarkOutcome> RunBenchmarks(const std::vector<BenchmarkRound>& rounds, const std::string& folder,
                                            int64_t limit_ms,
                                            const std::function<void(size_t, size_t, const BenchmarkStep&)>& progress) {
  std::vector<BenchmarkOutcome> outcomes;
  size_t total = 0, done = 0;
  for (const BenchmarkRound& round : rounds) total += round.size();
  std::mutex lock;
  for (const BenchmarkRound& round : rounds) {
    constexpr size_t kAtOnce = 64;
    for (size_t from = 0; from < round.size(); from += kAtOnce) {
      std::vector<std::thread> threads;
      for (size_t i = from; i < std::min(round.size(), from + kAtOnce); ++i)
        threads.emplace_back([&, i] {
          BenchmarkOutcome outcome = SaveStep(round[i], folder, limit_ms);
          const std::lock_guard guard(lock);
          progress(++done, total, round[i]);
          outcomes.push_back(std::move(outcome));
        });
      for (std::thread& thread : threads) thread.join();
    }
  }
  std::sort(outcomes.begin(), outcomes.end(), [](const auto& a, const auto& b) { return a.file < b.file; });
  return outcomes;
}

}  // namespace tacet
