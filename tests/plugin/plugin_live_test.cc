// SPDX-License-Identifier: Apache-2.0
// Boxes read while they are written, and after the writer was killed at an arbitrary moment: every record is whole or
// recognised as torn.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "tests/plugin/box_reading.h"
#include "tests/plugin/marked_ops.h"

namespace tacet::fake {
namespace {

// A child that writes at full speed until it is killed, from two threads.
pid_t StartWriter(const BoxFolder& folder) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a test that is itself killed must not leave a writer behind
  setenv("TACET_BOX_DIR", folder.path().c_str(), 1);
  setenv("TACET_BOX_KB", "128", 1);
  const LoadedPlugin plugin = LoadedPlugin::Open(PluginPath(), 7);
  MarkedComm first(plugin, 1), second(plugin, 2);
  std::thread other([&] {
    for (;;) second.RunOne();
  });
  for (;;) first.RunOne();
}

std::string WaitForBox(const BoxFolder& folder) {
  for (int i = 0; i < 2000; ++i, usleep(1000))
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder.path()))
      if (entry.path().extension() == ".box" && ReadOneBox(entry.path().string()).box.ops.size() > 50)
        return entry.path().string();
  return "";
}

TEST(Live, CopiesOfALiveBoxHoldOnlyWholeOrTornRecords) {
  const BoxFolder folder;
  const pid_t writer = StartWriter(folder);
  const std::string path = WaitForBox(folder);
  ASSERT_FALSE(path.empty());
  uint64_t whole = 0, torn = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (int i = 0; i < 400 && (i < 20 || std::chrono::steady_clock::now() < end); ++i) {
    const ReadBox read = ReadOneBox(path);
    ASSERT_EQ(read.box.trouble, BoxTrouble::none);
    torn += read.box.torn;
    for (const BlackBoxOp& op : read.box.ops) {
      if (op.in_table()) continue;
      ASSERT_TRUE(IsWellMarked(op.op)) << "record " << op.op.serial << " in copy " << i;
      ++whole;
    }
  }
  kill(writer, SIGKILL);
  waitpid(writer, nullptr, 0);
  EXPECT_GT(whole, 1000u);
  RecordProperty("whole", static_cast<int>(whole));
  RecordProperty("torn", static_cast<int>(torn));
}

TEST(Live, KilledWritersLeaveReadableBoxes) {
  uint64_t torn = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  for (int i = 0; i < 40 && (i < 4 || std::chrono::steady_clock::now() < end); ++i) {
    const BoxFolder folder;
    const pid_t writer = StartWriter(folder);
    const std::string path = WaitForBox(folder);
    ASSERT_FALSE(path.empty());
    usleep(static_cast<useconds_t>(i * 37));
    kill(writer, SIGKILL);
    waitpid(writer, nullptr, 0);
    const ReadBox read = ReadOneBox(path);
    ASSERT_EQ(read.box.trouble, BoxTrouble::none);
    uint64_t whole = 0;
    for (const BlackBoxOp& op : read.box.ops) {
      ASSERT_TRUE(IsWellMarked(op.op)) << op.op.serial;
      whole += !op.in_table();
    }
    // Two threads: at most two records, two slots and two groups can be half done.
    EXPECT_LE(read.box.torn, 6u);
    EXPECT_GE(whole + 2, std::min<uint64_t>(read.box.header.ring.count, read.box.header.ring_head));
    torn += read.box.torn;
    EXPECT_EQ(read.fragment.bytes.understood + read.fragment.bytes.ignored + read.fragment.bytes.not_understood,
              read.fragment.bytes.total);
  }
  RecordProperty("torn", static_cast<int>(torn));
}

TEST(Live, PlaceHeldByAStalledWriterIsPassedOverAndCounted) {
  const BoxFolder folder;
  EXPECT_EQ(
      RunInChild(folder,
                 [&] {
                   const LoadedPlugin plugin = LoadedPlugin::Open(PluginPath(), 7);
                   MarkedComm comm(plugin, 1);
                   comm.RunOne();
                   const std::string path = ReadBoxes(folder.path()).at(0).path;
                   const int fd = open(path.c_str(), O_RDWR);
                   const box::Header header = ReadOneBox(path).box.header;
                   auto* memory =
                       static_cast<char*>(mmap(nullptr, header.file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
                   auto* third = reinterpret_cast<box::Record*>(memory + header.ring.offset + 3 * sizeof(box::Record));
                   third->seq = 7;  // a thread that stopped for good in the middle of record 3
                   for (uint32_t i = 0; i < 3 * header.ring.count; ++i) comm.RunOne();
                   _exit(0);
                 },
                 {{"TACET_BOX_KB", "64"}}),
      0);
  const auto boxes = ReadBoxes(folder.path());
  ASSERT_EQ(boxes.size(), 1u);
  const ReadBox& read = boxes[0];
  EXPECT_EQ(read.box.header.drops[static_cast<int>(box::Drop::ring_busy)], 3u);
  EXPECT_EQ(read.box.torn, 1u);
  EXPECT_EQ(read.box.ops.size(), read.box.header.ring.count - 1);
}

}  // namespace
}  // namespace tacet::fake
