// SPDX-License-Identifier: Apache-2.0
// The process that judges: its limits are in force, and what a box does to it, it does to it alone.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>

#include "live/server/judge_process.h"

namespace tacet {
namespace {

std::string BoxBytes(const std::string& name) {
  std::ifstream in(TACET_SOURCE_DIR "/src/evidence/black_box/samples/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

JudgeTask SampleTask() {
  JudgeTask task;
  for (const char* name : {"hang_waiting_rank0.box", "hang_stuck_rank1.box"})
    task.boxes.push_back({std::string("node/") + name, BoxBytes(name), ProcessSight::running, 0});
  return task;
}

std::string TextOf(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The value behind a name in a table of /proc.
std::string ValueOf(const std::string& table, const std::string& name) {
  const size_t at = table.find(name);
  if (at == std::string::npos) return "";
  std::istringstream rest(table.substr(at + name.size()));
  std::string value;
  rest >> value;
  return value;
}

TEST(LiveJudge, ItsLimitsAreInForceBeforeItReadsAnything) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t judge = ::fork();
  if (judge == 0) {
    ::dup2(ends[0], STDIN_FILENO);
    ::execl(TACET_FILE, TACET_FILE, "serve", "--judge", "300000000", "77", nullptr);
    ::_exit(127);
  }
  const std::string folder = "/proc/" + std::to_string(judge);
  std::string limits;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)  // which reserve more than any limit
  const std::string last = "Max file size", wanted = "0";
#else
  const std::string last = "Max address space", wanted = "300000000";
#endif
  while (ValueOf(limits, last) != wanted && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    limits = TextOf(folder + "/limits");
  }
  EXPECT_EQ(ValueOf(limits, "Max cpu time"), "77");
  EXPECT_EQ(ValueOf(limits, "Max file size"), "0");
  EXPECT_EQ(ValueOf(limits, "Max open files"), "64");
  EXPECT_EQ(ValueOf(limits, "Max core file size"), "0");
  EXPECT_EQ(ValueOf(limits, last), wanted);
  EXPECT_EQ(ValueOf(TextOf(folder + "/status"), "NoNewPrivs:"), "1");
  ::close(ends[0]);
  ::close(ends[1]);  // no task: it ends by itself, with the exit code of a bad one
  int status = 0;
  ASSERT_EQ(::waitpid(judge, &status, 0), judge);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2);
}

TEST(LiveJudge, ATaskThatTakesMoreThanItsMemoryEndsThatJudgementAlone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers reserve more than any limit";
#endif
  const std::atomic<bool> go_on{false};
  JudgeOptions options{.program = {TACET_FILE, "serve", "--judge"}};
  auto judged = JudgeApart(SampleTask(), options, go_on);
  ASSERT_TRUE(judged.ok()) << judged.error().message;
  EXPECT_NE(judged->json.find("hang_stuck_rank1.box"), std::string::npos);
  // As if boxes of these few megabytes needed hundreds: the program alone is larger than this.
  options.least_memory = 1 << 20;
  const auto refused = JudgeApart(SampleTask(), options, go_on);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("MiB that it may use"), std::string::npos) << refused.error().message;
  options.least_memory = JudgeOptions().least_memory;
  EXPECT_TRUE(JudgeApart(SampleTask(), options, go_on).ok()) << "the next one is judged as ever";
}

// A unit's or a batch system's own limits may be lower than the judge's.
TEST(LiveJudge, ALimitThatIsLowerAlreadyStays) {
  const std::atomic<bool> go_on{false};
  JudgeOptions options{
      .program = {"/bin/sh", "-c", "ulimit -n 16; exec \"$0\" \"$@\"", TACET_FILE, "serve", "--judge"}};
  EXPECT_TRUE(JudgeApart(SampleTask(), options, go_on).ok());
}

}  // namespace
}  // namespace tacet
