// SPDX-License-Identifier: Apache-2.0
// The plugin linked into this program, so that ThreadSanitizer sees all of it: pairs of threads race through operations
// the way NCCL's application and proxy threads do, while another reads the box. What is lost must be counted to the
// last one.
#include <gtest/gtest.h>

#include <atomic>

#include "evidence/black_box/black_box_parse.h"
#include "plugin/nccl_profiler_abi.h"
#include "plugin/record/open_box.h"
#include "tests/plugin/box_folder.h"
#include "tests/plugin/marked_ops.h"

extern "C" tacet::nccl::Profiler<tacet::nccl::InitV5, tacet::nccl::DescrV7, tacet::nccl::ArgsV4> ncclProfiler_v7;

namespace tacet::fake {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kOpsEach = 20'000;
#else
constexpr uint64_t kOpsEach = 60'000;
#endif
constexpr int kPairs = 2;

// A copy of the live box, word by word: a plain memcpy of what others write would be a race by the book.
std::string CopyBox(const plugin::OpenBox& box) {
  std::string copy(box.header->file_bytes, 0);
  const auto* from = reinterpret_cast<const plugin::Word*>(box.header);
  for (size_t i = 0; i < copy.size() / 8; ++i) {
    const uint64_t word = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    std::memcpy(copy.data() + i * 8, &word, 8);
  }
  return copy;
}

// One pair: the application's thread issues, the proxy's sees the kernel while the host is still telling of the task.
struct Pair {
  struct Handed {
    void* task;
    uint64_t tag;
  };
  std::atomic<uint64_t> written{0}, read{0};
  Handed queue[16];

  void Push(Handed handed) {
    while (written.load() - read.load(std::memory_order_acquire) >= 16) std::this_thread::yield();
    queue[written.load() % 16] = handed;
    written.fetch_add(1, std::memory_order_release);
  }
  bool Pop(Handed* handed, const std::atomic<bool>& done) {
    while (read.load() == written.load(std::memory_order_acquire)) {
      if (done.load() && read.load() == written.load()) return false;
      std::this_thread::yield();
    }
    *handed = queue[read.load() % 16];
    read.fetch_add(1, std::memory_order_release);
    return true;
  }
};

TEST(Stress, EveryOperationIsRecordedOnceOrCounted) {
  const BoxFolder folder;
  setenv("TACET_BOX_DIR", folder.path().c_str(), 1);
  setenv("TACET_BOX_KB", "512", 1);
  setenv("TACET_HEARTBEAT_MS", "5", 1);  // the keeper races, too
  const LoadedPlugin plugin = LoadedPlugin::Linked(&ncclProfiler_v7, 7);
  std::vector<std::unique_ptr<MarkedComm>> comms;
  for (int i = 0; i < kPairs; ++i) comms.push_back(std::make_unique<MarkedComm>(plugin, static_cast<uint64_t>(i + 1)));
  std::vector<Pair> pairs(kPairs);
  std::vector<std::thread> threads;
  std::atomic<bool> done[kPairs] = {}, all_done{false};
  for (int i = 0; i < kPairs; ++i) {
    threads.emplace_back([&, i] {
      for (uint64_t n = 0; n < kOpsEach; ++n) {
        void* task = comms[static_cast<size_t>(i)]->Begin();
        pairs[static_cast<size_t>(i)].Push({task, comms[static_cast<size_t>(i)]->tag()});
        comms[static_cast<size_t>(i)]->Enqueue(task);
      }
      done[i] = true;
    });
    threads.emplace_back([&, i] {
      for (Pair::Handed handed; pairs[static_cast<size_t>(i)].Pop(&handed, done[i]);)
        comms[static_cast<size_t>(i)]->RunKernel(handed.task, handed.tag);
    });
  }
  uint64_t whole = 0, torn = 0, wrong = 0;
  std::thread reader([&] {
    while (!all_done.load()) {
      const BlackBox box = ParseBlackBox(CopyBox(*plugin::g_box));
      torn += box.torn;
      for (const BlackBoxOp& op : box.ops) {
        if (op.in_table()) continue;
        ++whole;
        wrong += !IsWellMarked(op.op);
      }
    }
  });
  for (std::thread& thread : threads) thread.join();
  all_done = true;
  reader.join();

  const BlackBox box = ParseBlackBox(CopyBox(*plugin::g_box));
  const auto drops = [&](box::Drop why) { return box.header.drops[static_cast<int>(why)]; };
  uint64_t issued = 0, in_flight = 0;
  for (const BlackBoxComm& comm : box.comms) issued += comm.comm.collectives;
  for (const BlackBoxOp& op : box.ops) in_flight += op.in_table();
  EXPECT_EQ(wrong, 0u) << "of " << whole;
  EXPECT_GT(whole, 0u);
  EXPECT_EQ(issued, kOpsEach * kPairs);
  EXPECT_EQ(in_flight, 0u);
  EXPECT_EQ(drops(box::Drop::op_table_full) + box.header.ring_head, issued);
  EXPECT_EQ(box.torn, 0u);
  EXPECT_EQ(drops(box::Drop::contended), 0u);
  EXPECT_EQ(drops(box::Drop::stale_handle), 0u);
  std::printf("%llu operations, %llu without a slot, %llu without a ring place; %llu records read whole, %llu torn\n",
              static_cast<unsigned long long>(issued), static_cast<unsigned long long>(drops(box::Drop::op_table_full)),
              static_cast<unsigned long long>(drops(box::Drop::ring_busy)), static_cast<unsigned long long>(whole),
              static_cast<unsigned long long>(torn));
  for (auto& comm : comms) comm.reset();
}

}  // namespace
}  // namespace tacet::fake
