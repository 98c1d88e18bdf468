// SPDX-License-Identifier: Apache-2.0
// What the keeper notes of siblings whose heartbeats stopped. The siblings are boxes made from the test's own, with
// real processes behind them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "plugin/process_stat.h"
#include "tests/plugin/box_reading.h"
#include "tests/plugin/marked_ops.h"

namespace tacet::fake {
namespace {

struct Child {
  pid_t pid = 0;
  uint64_t start = 0;
};

// A process that sleeps, or stops itself at once.
Child Spawn(bool stops) {
  Child child;
  child.pid = fork();
  if (child.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (stops) raise(SIGSTOP);
    for (;;) pause();
  }
  if (stops) waitpid(child.pid, nullptr, WUNTRACED);
  child.start = plugin::ReadProcessStat(std::to_string(child.pid).c_str()).start_jiffies;
  return child;
}

void End(const Child& child) {
  kill(child.pid, SIGKILL);
  waitpid(child.pid, nullptr, 0);
}

class Ward {
 public:
  Ward() : plugin_(LoadedPlugin::Open(PluginPath(), 7)), comm_(plugin_, 1) {
    comm_.RunOne();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(getenv("TACET_BOX_DIR")))
      if (entry.path().extension() == ".box") own_ = entry.path();
    template_ = ReadOneBox(own_.string()).box.header;
  }

  // A sibling whose last beat was just after this process began. Of a dead one there may be several: all are another.
  box::Header Sibling(const Child& child, int rank) const {
    box::Header header = template_;
    header.pid = child.pid;
    header.process_start_jiffies = child.start;
    header.rank = rank;
    if (plugin::ReadProcessStat(std::to_string(child.pid).c_str()).pid == 0)
      header.process_start_jiffies += static_cast<uint64_t>(rank);
    header.heartbeat_ms = 50;
    header.latest[0] = header.latest[1] = header.first;
    header.latest[0].monotonic_ns = header.latest[1].monotonic_ns = header.first.monotonic_ns + 1000;
    return header;
  }
  // The name does not matter, so the rank serves.
  void Write(const box::Header& header) const {
    const auto path = own_.parent_path() / ("x-" + std::to_string(header.rank) + ".box");
    std::ofstream(path.string() + ".new", std::ios::binary)
        .write(reinterpret_cast<const char*>(&header), sizeof header);
    std::filesystem::rename(path.string() + ".new", path);
  }

  // What was noted of a rank so far: the last state, and how many entries.
  std::pair<box::SightState, int> Noted(int rank) const {
    std::pair<box::SightState, int> noted{box::SightState::none, 0};
    for (const box::Sight& sight : ReadOneBox(own_.string()).box.header.sights)
      if (sight.state != box::SightState::none && sight.rank == rank) noted = {sight.state, noted.second + 1};
    return noted;
  }
  bool WaitFor(int rank, box::SightState state) const {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < limit) {
      if (Noted(rank).first == state) return true;
      usleep(20000);
    }
    return false;
  }
  const box::Header& own() const { return template_; }

 private:
  LoadedPlugin plugin_;
  MarkedComm comm_;
  std::filesystem::path own_;
  box::Header template_{};
};

#define EXPECT_IN_CHILD(truth) \
  if (!(truth)) std::fprintf(stderr, "not true: %s\n", #truth), _exit(1)

const Environment kBeating = {{"TACET_BOX_KB", "64"}, {"TACET_HEARTBEAT_MS", "50"}};

void WatchEverybody() {
  using box::SightState;
  const Child dead = Spawn(false), stopped = Spawn(true), alive = Spawn(false), zombie = Spawn(false);
  End(dead);
  kill(zombie.pid, SIGKILL);  // and not collected
  Child reused = alive;
  reused.start += 1;
  const Ward ward;
  ward.Write(ward.Sibling(dead, 1));
  ward.Write(ward.Sibling(stopped, 2));
  ward.Write(ward.Sibling(reused, 3));
  ward.Write(ward.Sibling(zombie, 4));
  ward.Write(ward.Sibling(alive, 10));  // silent, but there: merely late
  box::Header header = ward.Sibling(dead, 11);
  header.end_state = box::EndState::exited;
  ward.Write(header);
  header = ward.Sibling(dead, 12);
  header.heartbeat_ms = 0;
  ward.Write(header);
  header = ward.Sibling(dead, 13);
  header.pid_namespace += 1;
  ward.Write(header);
  header = ward.Sibling(dead, 14);
  header.boot_id[0] = header.boot_id[0] == 'x' ? 'y' : 'x';
  ward.Write(header);
  header = ward.Sibling(dead, 15);  // of an earlier attempt
  header.heartbeats = 9;
  header.latest[0].monotonic_ns = header.latest[1].monotonic_ns = header.first.monotonic_ns - 1;
  ward.Write(header);
  header = ward.Sibling(dead, 16);  // beats slowly: three beats are not yet over
  header.heartbeat_ms = 3'600'000;
  ward.Write(header);
  header = ward.Sibling(dead, 17);
  header.version = 99;
  ward.Write(header);
  EXPECT_IN_CHILD(ward.WaitFor(2, SightState::stopped));  // takes two looks, so all others were looked at
  EXPECT_IN_CHILD(ward.Noted(1).first == SightState::gone);
  EXPECT_IN_CHILD(ward.Noted(3).first == SightState::gone);
  EXPECT_IN_CHILD(ward.Noted(4).first == SightState::zombie);
  for (int rank = 10; rank <= 17; ++rank) EXPECT_IN_CHILD(ward.Noted(rank).first == SightState::none);
  // Continued: it beats again.
  header = ward.Sibling(stopped, 2);
  header.latest[0].monotonic_ns = header.latest[1].monotonic_ns = INT64_MAX / 2;
  ward.Write(header);
  EXPECT_IN_CHILD(ward.WaitFor(2, SightState::running));
  EXPECT_IN_CHILD(ward.Noted(2).second == 2);
  EXPECT_IN_CHILD(ward.Noted(1).second == 1);
  for (const Child& child : {stopped, alive, zombie}) End(child);
}

TEST(Sibling, WhatBecameOfSilentOnesIsNotedAndHealthyOnesAreNot) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(folder, WatchEverybody, kBeating), 0);
  const auto boxes = ReadBoxes(folder.path());
  for (const ReadBox& read : boxes) {
    if (read.path.find("/x-") != std::string::npos) continue;
    ASSERT_EQ(read.fragment.sights.size(), 5u);
    EXPECT_EQ(read.fragment.sights[0].rank.known(), true);
    EXPECT_GE(read.fragment.sights[0].seen_wall_ns, read.fragment.sights[0].since_wall_ns);
  }
}

TEST(Sibling, ATableFullOfThemHoldsNoMore) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(
                folder,
                [] {
                  const Child dead = Spawn(false);
                  End(dead);
                  const Ward ward;
                  for (int rank = 0; rank < 2 * box::kSights; ++rank) {
                    ward.Write(ward.Sibling(dead, rank));
                  }
                  const auto count = [&] {
                    int all = 0;
                    for (int rank = 0; rank < 2 * box::kSights; ++rank) all += ward.Noted(rank).second;
                    return all;
                  };
                  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
                  while (count() < box::kSights && std::chrono::steady_clock::now() < limit) usleep(50000);
                  EXPECT_IN_CHILD(count() == box::kSights);
                },
                kBeating),
            0);
}

}  // namespace
}  // namespace tacet::fake
