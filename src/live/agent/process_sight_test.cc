// SPDX-License-Identifier: Apache-2.0
#include "live/agent/process_sight.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tacet {
namespace {

namespace fs = std::filesystem;

// A folder that plays /proc.
class FakeProc {
 public:
  FakeProc() {
    char name[] = "/tmp/tacet-proc-XXXXXX";
    path_ = ::mkdtemp(name);
    fs::create_directories(path_ + "/sys/kernel/random");
    std::ofstream(path_ + "/sys/kernel/random/boot_id") << "boot-1\n";
  }
  ~FakeProc() { fs::remove_all(path_); }
  void Add(int pid, const std::string& name, char state, int start) const {
    fs::create_directories(path_ + "/" + std::to_string(pid));
    std::ofstream(path_ + "/" + std::to_string(pid) + "/stat")
        << pid << " (" << name << ") " << state << " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 " << start
        << " 99 98\n";
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(ProcessSight, TellsTheStatesApart) {
  const FakeProc proc;
  const std::pair<char, ProcessSight> states[] = {
      {'R', ProcessSight::running}, {'S', ProcessSight::running},         {'T', ProcessSight::stopped},
      {'t', ProcessSight::stopped}, {'D', ProcessSight::uninterruptible}, {'Z', ProcessSight::zombie},
      {'X', ProcessSight::gone},    {'I', ProcessSight::running}};
  ProcessLooker looker(proc.path());
  for (const auto& [state, sight] : states) {
    proc.Add(7, "python train", state, 555);
    EXPECT_EQ(looker.Look({7, 555, "boot-1"}), sight) << state;
    EXPECT_EQ(ParseProcessSight(Name(sight)), sight);
  }
}

TEST(ProcessSight, APidThatWentToAnotherProcessIsGone) {
  const FakeProc proc;
  proc.Add(7, "python", 'R', 556);
  ProcessLooker looker(proc.path());
  EXPECT_EQ(looker.Look({7, 555, "boot-1"}), ProcessSight::gone);
  EXPECT_EQ(looker.Look({8, 555, "boot-1"}), ProcessSight::gone);
  EXPECT_EQ(looker.Look({7, 0, "boot-1"}), ProcessSight::running) << "an unknown start does not exclude it";
}

TEST(ProcessSight, ABoxOfAnotherBootSaysNothingOfTheProcessesHere) {
  const FakeProc proc;
  ProcessLooker looker(proc.path());
  EXPECT_EQ(looker.Look({7, 555, "boot-2"}), ProcessSight::unknown);
  EXPECT_EQ(looker.Look({7, 555, ""}), ProcessSight::unknown);
  EXPECT_EQ(looker.Look({-1, 555, "boot-1"}), ProcessSight::unknown);
}

// A pod has its own numbers: its 7 is not the 7 here, and that there is no 7 here does not mean that it is dead.
TEST(ProcessSight, APidOfAnotherNamespaceSaysNothing) {
  const FakeProc proc;
  fs::create_directories(proc.path() + "/self/ns");
  fs::create_symlink("pid:[42]", proc.path() + "/self/ns/pid");
  proc.Add(7, "python", 'T', 555);
  ProcessLooker looker(proc.path());
  EXPECT_EQ(looker.Look({7, 555, "boot-1", 42}), ProcessSight::stopped);
  EXPECT_EQ(looker.Look({8, 555, "boot-1", 42}), ProcessSight::gone);
  EXPECT_EQ(looker.Look({7, 555, "boot-1", 43}), ProcessSight::unknown);
  EXPECT_EQ(looker.Look({8, 555, "boot-1", 43}), ProcessSight::unknown);
  EXPECT_EQ(looker.Look({8, 555, "boot-1", 0}), ProcessSight::unknown) << "the plugin could not tell";
}

// The agent of a node sees the processes of pods under numbers of its own: "NSpid: 17620 7".
TEST(ProcessSight, AProcessOfAPodIsFoundWhereTheNodeShowsIt) {
  const FakeProc proc;
  fs::create_directories(proc.path() + "/self/ns");
  fs::create_symlink("pid:[42]", proc.path() + "/self/ns/pid");
  proc.Add(7, "other", 'S', 555);
  const auto add_inner = [&](int pid, char state, const std::string& inner) {
    proc.Add(pid, "python", state, 555);
    std::ofstream(proc.path() + "/" + std::to_string(pid) + "/status")
        << "Name:\tpython\nNSpid:\t" << pid << inner << "\nX:\n";
  };
  add_inner(17620, 'T', "\t7");
  add_inner(17630, 'S', "\t8");
  add_inner(17631, 'S', "\t8");  // another pod, started in the same moment
  add_inner(17640, 'S', "");
  ProcessLooker looker(proc.path());
  EXPECT_EQ(looker.Look({7, 555, "boot-1", 43}), ProcessSight::stopped);
  EXPECT_EQ(looker.Look({8, 555, "boot-1", 44}), ProcessSight::unknown) << "either of two";
  EXPECT_EQ(looker.Look({17640, 555, "boot-1", 45}), ProcessSight::unknown) << "it is in no namespace of its own";
  EXPECT_EQ(looker.Look({9, 555, "boot-1", 46}), ProcessSight::unknown) << "never seen, so not missed";
  fs::remove_all(proc.path() + "/17620");
  EXPECT_EQ(looker.Look({7, 555, "boot-1", 43}), ProcessSight::gone);
  for (const int pid : {17630, 17631}) {
    fs::create_directories(proc.path() + "/" + std::to_string(pid) + "/ns");
    fs::create_symlink("pid:[" + std::to_string(pid) + "]", proc.path() + "/" + std::to_string(pid) + "/ns/pid");
  }
  ProcessLooker with_right(proc.path());
  EXPECT_EQ(with_right.Look({8, 555, "boot-1", 17631}), ProcessSight::running) << "namespaces can be read";
}

TEST(ProcessSight, InnerPidsAreReadFromStatus) {
  EXPECT_EQ(ParseInnerPid("Name:\tx\nNSpid:\t17620\t5\t2\nNSpgid:\t1\n"), 2);
  EXPECT_EQ(ParseInnerPid("Name:\tx\nNSpid:\t17620\nNSpgid:\t1\t3\n"), 0);
  EXPECT_EQ(ParseInnerPid("Name:\tx\nNSpid:\t1\t"), 0);
  EXPECT_EQ(ParseInnerPid("NSpid"), 0);
  EXPECT_EQ(ParseInnerPid(""), 0);
}

TEST(ProcessSight, NamesWithBracketsAndBlanksDoNotShiftTheFields) {
  const FakeProc proc;
  proc.Add(7, "a) R 1 (b c", 'T', 555);
  EXPECT_EQ(ProcessLooker(proc.path()).Look({7, 555, "boot-1"}), ProcessSight::stopped);
}

TEST(ProcessSight, EveryPrefixOfAStatLineIsReadWithoutHarm) {
  const std::string line = "7 (python) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 555 99";
  for (size_t size = 0; size < line.size(); ++size) {
    char state = 0;
    uint64_t start = 0;
    const bool whole = ParseProcStat(line.substr(0, size), &state, &start);
    EXPECT_TRUE(!whole || state == 'S') << size;
  }
}

}  // namespace
}  // namespace tacet
