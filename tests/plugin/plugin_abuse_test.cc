// SPDX-License-Identifier: Apache-2.0
// What people, schedulers and full disks do to a plugin. The job must not notice; the log must say what to do.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tests/plugin/box_reading.h"
#include "tests/plugin/hand_events.h"

namespace tacet::fake {
namespace {

namespace fs = std::filesystem;

// A process with one communicator, all events by hand.
struct Trainee {
  explicit Trainee(uint64_t hash = 0x77) : plugin(LoadedPlugin::Open(PluginPath(), 6)) {
    comm.plugin = &plugin;
    comm.pid = getpid();
    comm.hash = hash;
    int mask = 0;
    plugin.Init(&comm.context, &mask, {hash, "abused", 2, 4, 2});
  }
  void Run(int times) {
    for (int i = 0; i < times; ++i) comm.RunCollective({}, 2, true);
  }
  LoadedPlugin plugin;
  HandComm comm;
};

void Expect(bool truth, const char* what) {
  if (truth) return;
  std::fprintf(stderr, "not true: %s\n", what);
  _exit(1);
}
#define EXPECT_IN_CHILD(truth) Expect(truth, #truth)

bool WaitUntil(const std::function<bool()>& holds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    usleep(5000);
  }
  return true;
}

std::string RunLoudly(const BoxFolder& folder, Environment environment, const std::string& arguments = "--ranks 1") {
  environment["FAKE_NCCL_DEBUG"] = "1";
  return RunHost(arguments + " --steps 20", folder, environment);
}

size_t Count(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(Abuse, NonsenseInASettingIsSaidInOneLineAndTheNearestSaneValueIsTaken) {
  const struct {
    const char *name, *value, *said;
    uint64_t least_bytes, most_bytes;
  } kCases[] = {
      {"TACET_BOX_MB", "99999999", "TACET_BOX_MB=99999999 is too large, 256 is used", 48 << 10, 256 << 20},
      {"TACET_BOX_MB", "18446744073709551615", "is too large, 256 is used", 48 << 10, 256 << 20},
      {"TACET_BOX_MB", "-1", "TACET_BOX_MB=-1 is not a number, 8 is used", 48 << 10, 8 << 20},
      {"TACET_BOX_MB", "abc", "TACET_BOX_MB=abc is not a number, 8 is used", 48 << 10, 8 << 20},
      {"TACET_BOX_MB", "8MB", "TACET_BOX_MB=8MB is not a number, 8 is used", 48 << 10, 8 << 20},
      {"TACET_BOX_KB", "1", "TACET_BOX_KB=1 is too small, 48 is used", 48 << 10, 48 << 10},
      {"TACET_HEARTBEAT_MS", "-5", "TACET_HEARTBEAT_MS=-5 is not a number, 500 is used", 48 << 10, 8 << 20},
      {"TACET_EVENTS", "colls", "TACET_EVENTS=colls has unknown names; coll,p2p", 48 << 10, 8 << 20},
  };
  for (const auto& one : kCases) {
    const BoxFolder folder;
    const std::string said = RunLoudly(folder, {{one.name, one.value}});
    EXPECT_NE(said.find("healthy, worst exit 0"), std::string::npos) << said;
    EXPECT_NE(said.find(std::string("NCCL WARN PROFILER/Tacet: ")), std::string::npos) << said;
    EXPECT_NE(said.find(one.said), std::string::npos) << said;
    const auto boxes = ReadBoxes(folder.path());
    ASSERT_EQ(boxes.size(), 1u) << one.value;
    EXPECT_GE(fs::file_size(boxes[0].path), one.least_bytes) << one.value;
    EXPECT_LE(fs::file_size(boxes[0].path), one.most_bytes) << one.value;
    EXPECT_EQ(boxes[0].stream().calls.size(), 20u) << one.value;
  }
}

TEST(Abuse, WhatIsSaneIsTakenWithoutAWord) {
  for (const Environment& sane : {Environment{},
                                  {{"TACET_BOX_MB", ""}},
                                  {{"TACET_BOX_MB", "1"}},
                                  {{"TACET_EVENTS", "coll,p2p"}},
                                  {{"TACET_BOX_MB", "0"}}}) {
    const BoxFolder folder;
    EXPECT_EQ(Count(RunLoudly(folder, sane), "WARN"), 0u);
  }
}

// Any text may be a job's name. Boxes stay in folders right below the box folder, and different names stay different.
TEST(Abuse, JobNamesAreTamed) {
  const std::string longest(300, 'x');
  const std::vector<std::string> names = {"..",         ".",          "a/b c",       "../../etc",   "/abs",     "-rf",
                                          "学習ジョブ", "訓練ジョブ", longest + "1", longest + "2", "tab\there"};
  const BoxFolder folder;
  for (const std::string& name : names)
    EXPECT_NE(RunHost("--ranks 1 --steps 4", folder, {{"TACET_JOB", name}, {"TACET_BOX_KB", "64"}}).find("healthy"),
              std::string::npos)
        << name;
  std::set<std::string> jobs;
  for (const ReadBox& read : ReadBoxes(folder.path())) {
    const fs::path job = fs::path(read.path).parent_path();
    EXPECT_EQ(job.parent_path(), folder.path());
    EXPECT_EQ(job.filename(), read.box.header.job);
    EXPECT_EQ(job.filename().string().find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                        "0123456789-_."),
              std::string::npos)
        << job;
    jobs.insert(job.filename().string());
  }
  EXPECT_EQ(jobs.size(), names.size());
}

TEST(Abuse, TwoJobsOfOneNameAtTheSameTimeKeepTheirOwnBoxes) {
  const BoxFolder folder;
  const Environment environment = {{"TACET_JOB", "same"}, {"TACET_BOX_KB", "256"}};
  std::string first, second;
  std::thread other([&] { first = RunHost("--ranks 3 --steps 40", folder, environment); });
  second = RunHost("--ranks 3 --steps 40", folder, environment);
  other.join();
  EXPECT_NE(first.find("healthy, worst exit 0"), std::string::npos) << first;
  EXPECT_NE(second.find("healthy, worst exit 0"), std::string::npos) << second;
  const auto boxes = ReadBoxes(folder.path());
  ASSERT_EQ(boxes.size(), 6u);
  for (const ReadBox& read : boxes) EXPECT_EQ(read.stream().calls.size(), 40u);
}

// A memory file system of this size in place of the box folder, for this process only.
void MountSmall(const std::string& path, const char* size) {
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", path.c_str(), "tmpfs", 0, size) != 0)
    _exit(77);
}
void Fill(const std::string& file) {
  std::ofstream out(file, std::ios::binary);
  const std::string block(4096, 'x');
  while (out.write(block.data(), 4096) && out.flush()) continue;
}
#define SKIP_UNLESS_MOUNTED(status) \
  if ((status) == 77 << 8) GTEST_SKIP() << "may not mount here"

TEST(Abuse, AMemoryFileSystemThatIsFullBeforeTheJobBeginsMeansNoBoxAndOneLine) {
  const BoxFolder folder;
  const int status = RunInChild(folder, [&] {
    MountSmall(folder.path(), "size=1m");
    Fill(folder.path() + "/rest");
    const std::string said = RunLoudly(folder, {}, "--ranks 2");
    EXPECT_IN_CHILD(said.find("healthy, worst exit 0") != std::string::npos);
    EXPECT_IN_CHILD(Count(said, "WARN") == 2);
    EXPECT_IN_CHILD(said.find("No space left on device; free space there, or set TACET_BOX_DIR") != std::string::npos);
    EXPECT_IN_CHILD(ReadBoxes(folder.path()).empty());
  });
  SKIP_UNLESS_MOUNTED(status);
  EXPECT_EQ(status, 0);
}

// Every store hits a page that is already there, or the kernel kills with SIGBUS.
TEST(Abuse, AMemoryFileSystemThatFillsUpLaterKillsNobody) {
  const BoxFolder folder;
  const int status = RunInChild(folder, [&] {
    MountSmall(folder.path(), "size=32m");
    Trainee trainee;
    EXPECT_IN_CHILD(trainee.comm.context != nullptr);
    const auto boxes = ReadBoxes(folder.path());
    EXPECT_IN_CHILD(boxes.size() == 1 && boxes[0].box.header.file_bytes <= 2 << 20);  // it leaves room for others
    Fill(folder.path() + "/rest");
    trainee.Run(40000);  // more than the ring holds
    EXPECT_IN_CHILD(ReadBoxes(folder.path())[0].box.header.ring_head >= 40000);
  });
  SKIP_UNLESS_MOUNTED(status);
  EXPECT_EQ(status, 0);
}

TEST(Abuse, FoldersThatCannotBeWrittenAreNamedInOneLine) {
  const BoxFolder folder;
  const std::string file = folder.path() + "/file";
  std::ofstream(file) << "no folder";
  const std::string said = RunLoudly(folder, {{"TACET_JSON_DIR", "/proc/nowhere"}, {"TACET_PROM_DIR", file}});
  EXPECT_NE(said.find("healthy, worst exit 0"), std::string::npos) << said;
  EXPECT_EQ(Count(said, "WARN"), 1u) << said;
  EXPECT_NE(said.find("TACET_JSON_DIR=/proc/nowhere: No such file or directory, so nothing is written there"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("TACET_PROM_DIR=" + file + ": Not a directory"), std::string::npos) << said;
}

TEST(Abuse, OutputsOnAFullDiskAreLostAndCountedAndSaidOnce) {
  const BoxFolder folder;
  const std::string out = folder.path() + "/out";
  fs::create_directory(out);
  const Environment environment = {{"TACET_JSON_DIR", out}, {"TACET_PROM_DIR", out}, {"TACET_BOX_KB", "256"}};
  const int status = RunInChild(folder, [&] {
    MountSmall(out, "size=64k");
    Fill(out + "/rest");
    const std::string said = RunLoudly(folder, environment);
    EXPECT_IN_CHILD(said.find("healthy, worst exit 0") != std::string::npos);
    EXPECT_IN_CHILD(Count(said, "WARN") == 1);
    EXPECT_IN_CHILD(said.find("TACET_JSON_DIR=" + out + ": No space left on device") != std::string::npos);
  });
  SKIP_UNLESS_MOUNTED(status);
  EXPECT_EQ(status, 0);
  const auto boxes = ReadBoxes(folder.path());
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_GE(boxes[0].box.header.drops[static_cast<int>(box::Drop::output_lost)], 20u);
}

size_t LinesIn(const std::string& folder) {
  size_t lines = 0;
  if (!fs::exists(folder)) return 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) ++lines;
  }
  return lines;
}

TEST(Abuse, FoldersThatVanishWhileItRunsAreMadeAgain) {
  const BoxFolder folder;
  const std::string json = folder.path() + "/json", prom = folder.path() + "/prom";
  const Environment environment = {{"TACET_JSON_DIR", json},
                                   {"TACET_PROM_DIR", prom},
                                   {"TACET_HEARTBEAT_MS", "20"},
                                   {"TACET_BOX_KB", "256"},
                                   {"TACET_PROM_INTERVAL_MS", "100"}};
  EXPECT_EQ(RunInChild(
                folder,
                [&] {
                  Trainee trainee;
                  for (int round = 0; round < 3; ++round) {
                    trainee.Run(7);
                    EXPECT_IN_CHILD(WaitUntil([&] { return LinesIn(json) == 7 && LinesIn(prom) > 7; }));
                    fs::remove_all(json);
                    fs::remove_all(prom);
                  }
                },
                environment),
            0);
}

// A cancelled thread must leave no lock behind: the next communicator would wait for it for ever.
TEST(Abuse, ThreadsThatAreCancelledInsideTheSetUpLeaveNoLockBehind) {
  const BoxFolder folder;
  const auto make_and_end = [](void*) -> void* {
    for (;;) {
      Trainee trainee;
      trainee.Run(1);
      trainee.plugin.Finalize(trainee.comm.context);
      pthread_testcancel();
    }
  };
  const Environment environment = {{"TACET_JSON_DIR", folder.path() + "/json"}, {"TACET_BOX_KB", "256"}};
  EXPECT_EQ(RunInChild(
                folder,
                [&] {
                  alarm(120);
                  for (int i = 0; i < 30; ++i) {
                    pthread_t thread;
                    EXPECT_IN_CHILD(pthread_create(&thread, nullptr, make_and_end, nullptr) == 0);
                    usleep(static_cast<useconds_t>(500 + 731 * i));
                    pthread_cancel(thread);
                    pthread_join(thread, nullptr);
                  }
                  Trainee last;
                  last.Run(3);
                  last.plugin.Finalize(last.comm.context);
                },
                environment),
            0);
}

TEST(Abuse, ExitInTheMiddleOfACollectiveKeepsItsStatus) {
  const BoxFolder folder;
  const int status = RunInChild(folder, [] {
    std::atomic<bool> runs{false};
    std::thread busy([&] {
      Trainee trainee;
      for (;;) trainee.Run(1), runs = true;
    });
    while (!runs) usleep(1000);
    std::exit(3);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 3);
  const auto boxes = ReadBoxes(folder.path());
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0].box.header.end_state, box::EndState::exited);
}

TEST(Abuse, ExecLeavesTheBoxAndNothingElseBehind) {
  const BoxFolder folder;
  const int status = RunInChild(folder, [&] {
    Trainee trainee;
    trainee.Run(5);
    // The box must not be open in the new program.
    execl("/bin/sh", "sh", "-c", ("! ls -l /proc/self/fd | grep -q " + folder.path()).c_str(), nullptr);
    _exit(99);
  });
  EXPECT_EQ(status, 0);
  const auto boxes = ReadBoxes(folder.path());
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0].stream().calls.size(), 5u);
  EXPECT_EQ(boxes[0].box.header.end_state, box::EndState::running);
}

// All at once, in one folder that none of them has made yet.
TEST(Abuse, TwoHundredProcessesOfOneJobGetABoxEach) {
  const BoxFolder folder;
  constexpr int kProcesses = 200;
  EXPECT_EQ(RunInChild(folder,
                       [] {
                         for (int i = 0; i < kProcesses; ++i) {
                           if (fork() != 0) continue;
                           Trainee(static_cast<uint64_t>(i) + 1).Run(3);
                           std::exit(0);
                         }
                         int failed = 0;
                         for (int status = 0; wait(&status) > 0;) failed += status != 0;
                         EXPECT_IN_CHILD(failed == 0);
                       },
                       {{"TACET_BOX_KB", "64"}}),
            0);
  const auto boxes = ReadBoxes(folder.path());
  ASSERT_EQ(boxes.size(), static_cast<size_t>(kProcesses));
  for (const ReadBox& read : boxes) EXPECT_EQ(read.stream().calls.size(), 3u);
}

}  // namespace
}  // namespace tacet::fake
