// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/plugin/loaded_plugin.h"
#include "tests/plugin/shared_arena.h"

// A stand-in for NCCL that moves real numbers between processes and calls a profiler plugin as NCCL does: the same
// events, in the same order, from the same threads, with the same lifetimes of handles (children after their parent's
// stop, captured handles for ever, contexts shared through the proxy). There is an application thread, a "GPU" that
// runs kernels in stream order, and a proxy thread that moves the data and polls the kernels' counters.
namespace tacet::fake {

// NCCL's threads spin; a test machine has others to serve, so whoever finds nothing to do waits longer and longer.
struct Doze {
  unsigned us = 20;
  void Nap() {
    usleep(us);
    if (us < 2000) us *= 2;
  }
};

// The plugin of a process: loaded with the first communicator, closed with the last.
struct PluginOfProcess {
  std::string path;
  int api = 0;
  LoadedPlugin plugin;
  int references = 0;
  int mask = 0;  // one for all communicators
  bool Acquire();
  void Release();
};

// What goes wrong, by number of the operation on the communicator (from 1). 0: nothing.
struct Faults {
  std::atomic<uint64_t> gpu_never_starts{0};  // its kernel stays behind other work
  std::atomic<uint64_t> launch_never_returns{0};
  std::atomic<uint64_t> data_never_arrives{0};  // the network loses what this rank sends
  std::atomic<uint64_t> no_credit{0};           // this rank never readies a receive buffer
};

struct CommOptions {
  int index = 0;  // in the arena
  int rank = 0, size = 1;
  int first = 0, stride = 1;  // member r is rank first + r * stride of the job
  uint64_t hash = 0;
  std::string name;
  bool network = false;  // several nodes: network events are told
  int channels = 2, first_channel = 0;
  bool kernel_thread = false;  // kernel events from a thread of their own (NCCL 2.31)
};

struct Task {
  CollFacts facts;
  bool p2p = false, send = false, symmetric = false, copy_engine = false, told = true;
  uint64_t number = 0;  // of the operation on its communicator
  void* api_handle = nullptr;
  void* group_handle = nullptr;
  void* handle = nullptr;      // Coll or P2p
  std::vector<uint64_t> work;  // device work number by channel
  std::atomic<int> transfers_left{0};
  std::atomic<bool> started{false};
  uint64_t sum = 0;  // result
};
struct Plan {
  std::vector<std::shared_ptr<Task>> tasks;
  void* group_api_handle = nullptr;
};

class Comm {
 public:
  Comm(PluginOfProcess& process, SharedArena& arena, CommOptions options);
  ~Comm();
  void Destroy();  // waits for all work, then finalizes
  void Abort();    // finalizes with work in flight

  void GroupStart();
  void GroupEnd();
  // Each rank contributes rank + 1 times the operation's number. Returns the operation.
  std::shared_ptr<Task> Collective(const CollFacts& facts);
  std::shared_ptr<Task> Transfer(bool send, int peer, uint64_t count);
  void Wait(const Task& task);
  void Synchronize();

  Plan Capture(const CollFacts& facts);
  void Replay(const Plan& plan);  // from another thread, as CUDA does

  uint64_t operations() const { return issued_; }
  const void* context() const { return context_; }
  const LoadedPlugin& plugin() const { return process_.plugin; }
  Faults faults;
  uint64_t ExpectedSum(const Task& task) const;

 private:
  struct DeviceMark {
    std::atomic<uint64_t> counter, ns;
  };
  struct Watch;      // one channel of a kernel, watched for start and stop
  struct Transfers;  // one channel's traffic with one peer

  void OpenGroupApi(bool captured);
  std::shared_ptr<Task> Append(const CollFacts& facts, bool p2p, bool send);
  void Launch(Plan plan, bool on_callback_thread);
  void TellPlan(Plan& plan);
  void Upload(Plan& plan);
  void RunGpu();
  void RunProxy();
  void RunKernelThread();
  bool PollWatches();
  bool PollTransfers();
  bool AdvanceSend(Transfers& t);
  bool AdvanceRecv(Transfers& t);
  void Stop();

  PluginOfProcess& process_;
  SharedArena& arena_;
  CommOptions options_;
  void* context_ = nullptr;
  int api_ = 0;
  uint64_t issued_ = 0;
  std::map<std::string, uint64_t> func_seq_;
  int depth_ = 0, mask_ = 0;
  Plan wip_;
  std::vector<uint64_t> work_counter_;

  std::mutex lock_;
  std::condition_variable gpu_wake_;
  std::deque<Plan> stream_;
  std::deque<std::shared_ptr<Watch>> watches_, new_watches_;
  std::deque<std::shared_ptr<Transfers>> transfers_, new_transfers_;
  std::atomic<uint64_t> finished_plans_{0};
  uint64_t launched_plans_ = 0;
  std::atomic<bool> stop_{false};
  std::vector<std::vector<DeviceMark>> device_started_, device_stopped_;  // by channel, 64 deep as in NCCL
  std::map<Mailbox*, uint64_t> sent_, received_;                          // messages so far
  std::thread gpu_, proxy_, kernel_thread_;
};

}  // namespace tacet::fake
