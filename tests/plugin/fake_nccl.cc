// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/fake_nccl.h"

#include <time.h>
#include <unistd.h>

namespace tacet::fake {

static constexpr uint64_t kMarks = 64;  // MAX_PROFILER_EVENTS_PER_CHANNEL

bool PluginOfProcess::Acquire() {
  if (references == 0) plugin = LoadedPlugin::Open(path, api);
  if (!plugin.ok()) return false;
  ++references;
  return true;
}

void PluginOfProcess::Release() {
  if (--references == 0) plugin.Close();
}

Comm::Comm(PluginOfProcess& process, SharedArena& arena, CommOptions options)
    : process_(process), arena_(arena), options_(std::move(options)) {
  if (!process_.Acquire()) std::abort();
  api_ = process_.plugin.api();
  const CommIdentity identity{options_.hash, options_.name.empty() ? nullptr : options_.name.c_str(),
                              options_.network ? options_.size : 1, options_.size, options_.rank};
  process_.plugin.Init(&context_, &process_.mask, identity);
  const auto channels = static_cast<size_t>(options_.first_channel + options_.channels);
  work_counter_.assign(channels, 0);
  for (size_t i = 0; i < channels; ++i) {
    device_started_.emplace_back(kMarks);
    device_stopped_.emplace_back(kMarks);
  }
  gpu_ = std::thread([this] { RunGpu(); });
  proxy_ = std::thread([this] { RunProxy(); });
  if (options_.kernel_thread) kernel_thread_ = std::thread([this] { RunKernelThread(); });
}

void Comm::Stop() {
  stop_ = true;
  gpu_wake_.notify_all();
  for (std::thread* thread : {&gpu_, &proxy_, &kernel_thread_})
    if (thread->joinable()) thread->join();
}

void Comm::Destroy() {
  if (context_ == nullptr && !gpu_.joinable()) return;
  if (gpu_.joinable()) Synchronize();
  Abort();
}

void Comm::Abort() {
  if (!gpu_.joinable()) return;
  Stop();
  if (context_ != nullptr) process_.plugin.Finalize(context_);
  context_ = nullptr;
  process_.Release();
}

Comm::~Comm() { Destroy(); }

// NCCL opens the group event with the first call inside the group, and reads the mask then.
void Comm::OpenGroupApi(bool captured) {
  mask_ = __atomic_load_n(&process_.mask, __ATOMIC_RELAXED);
  if (api_ < 5 || wip_.group_api_handle != nullptr || (mask_ & ~kProxyCtrl) == 0) return;
  EventDescriptor descr(api_, kGroupApi, nullptr, 0);
  process_.plugin.Start(context_, &wip_.group_api_handle, descr.GroupApi(captured, depth_));
  if (wip_.group_api_handle != nullptr) process_.plugin.Record(wip_.group_api_handle, 23, nullptr);
}

void Comm::GroupStart() { ++depth_; }

std::shared_ptr<Task> Comm::Append(const CollFacts& facts, bool p2p, bool send) {
  auto task = std::make_shared<Task>();
  task->facts = facts;
  task->p2p = p2p;
  task->send = send;
  task->number = ++issued_;
  task->facts.channels = static_cast<uint8_t>(options_.channels);
  OpenGroupApi(facts.captured);
  if (api_ >= 5 && mask_ != 0) {
    // `rank` stays 0 here: NCCL does not set it for API events.
    EventDescriptor descr(api_, p2p ? kP2pApi : kCollApi, wip_.group_api_handle, 0);
    process_.plugin.Start(context_, &task->api_handle, p2p ? descr.P2pApi(facts) : descr.CollApi(facts));
    if (task->api_handle != nullptr) process_.plugin.Stop(task->api_handle);
  }
  wip_.tasks.push_back(task);
  return task;
}

std::shared_ptr<Task> Comm::Collective(const CollFacts& facts) {
  GroupStart();
  auto task = Append(facts, false, false);
  GroupEnd();
  return task;
}

std::shared_ptr<Task> Comm::Transfer(bool send, int peer, uint64_t count) {
  CollFacts facts;
  facts.func = send ? "Send" : "Recv";
  facts.func_code = send ? 6 : 7;
  facts.count = count;
  facts.peer = peer;
  GroupStart();
  auto task = Append(facts, true, send);
  GroupEnd();
  return task;
}

void Comm::GroupEnd() {
  if (--depth_ > 0) return;
  if (wip_.tasks.empty()) return;
  if (wip_.group_api_handle != nullptr) process_.plugin.Record(wip_.group_api_handle, 24, nullptr);
  void* group_api = wip_.group_api_handle;
  Plan plan = std::move(wip_);
  wip_ = {};
  if (!plan.tasks.front()->facts.captured) Launch(std::move(plan), false);
  if (group_api != nullptr) process_.plugin.Stop(group_api);
}

// The kernel goes to its stream first; only then the host tells of its tasks and hands the proxy its work.
void Comm::Launch(Plan plan, bool on_callback_thread) {
  for (auto& task : plan.tasks) {
    task->work.clear();
    for (int c = 0; c < options_.channels; ++c)
      task->work.push_back(++work_counter_[static_cast<size_t>(options_.first_channel + c)]);
  }
  if (!on_callback_thread) {
    void* launch = nullptr;
    if (api_ >= 5 && (mask_ & kKernelLaunch) != 0) {
      EventDescriptor descr(api_, kKernelLaunch, plan.group_api_handle, 0);
      process_.plugin.Start(context_, &launch, descr.KernelLaunch(plan.tasks.front()->facts.stream));
    }
    for (auto& task : plan.tasks)
      while (task->number == faults.launch_never_returns.load()) usleep(1000);
    if (launch != nullptr) process_.plugin.Stop(launch);
  }
  for (auto& task : plan.tasks) task->transfers_left = 0;
  TellPlan(plan);
}

void Comm::TellPlan(Plan& plan) {
  const LoadedPlugin& plugin = process_.plugin;
  void* group = nullptr;
  if (mask_ != 0) {
    EventDescriptor descr(api_, kGroup, nullptr, 0);
    plugin.Start(context_, &group, descr);
  }
  for (auto& task : plan.tasks) {
    task->handle = nullptr;
    CollFacts& facts = task->facts;
    facts.seq = func_seq_[facts.func]++;
    facts.parent_group = group;
    void* parent = api_ >= 5 ? task->api_handle : group;
    if (task->copy_engine && api_ >= 6) {
      EventDescriptor descr(api_, kCeColl, parent, options_.rank);
      plugin.Start(context_, &task->handle, descr.CeColl(facts));
    } else if (!task->symmetric && task->told && mask_ != 0) {
      EventDescriptor descr(api_, task->p2p ? kP2p : kColl, parent, options_.rank);
      // NCCL runs AllGather and Broadcast as bytes.
      CollFacts internal = facts;
      const std::string func = facts.func;
      if (func == "AllGather" || func == "Broadcast")
        internal.count *= 4, internal.datatype = "ncclInt8", internal.datatype_code = 0;
      const char* name = options_.name.c_str();
      plugin.Start(context_, &task->handle,
                   task->p2p ? descr.P2p(internal, name, options_.hash) : descr.Coll(internal, name, options_.hash));
    }
  }
  Upload(plan);
  for (auto& task : plan.tasks)
    if (task->handle != nullptr) plugin.Stop(task->handle);
  if (group != nullptr) plugin.Stop(group);
}

Plan Comm::Capture(const CollFacts& facts) {
  CollFacts captured = facts;
  captured.captured = true;
  GroupStart();
  Plan plan;
  plan.tasks.push_back(Append(captured, false, false));
  plan.group_api_handle = wip_.group_api_handle;
  GroupEnd();
  --issued_;  // capturing runs nothing
  return plan;
}

void Comm::Replay(const Plan& plan) {
  Plan run;
  for (const auto& captured : plan.tasks) {
    auto task = std::make_shared<Task>();
    task->facts = captured->facts;
    task->api_handle = captured->api_handle;
    task->number = ++issued_;
    run.tasks.push_back(task);
  }
  std::thread([this, &run] { Launch(std::move(run), true); }).join();
}

void Comm::Wait(const Task& task) {
  for (Doze doze; !task.started || task.transfers_left > 0;) doze.Nap();
}

void Comm::Synchronize() {
  for (Doze doze; finished_plans_.load() < launched_plans_;) doze.Nap();
  if ((process_.mask & kKernelCh) == 0 || api_ < 3) return;
  for (;;) {  // the last kernel events may still be due
    std::lock_guard held(lock_);
    if (watches_.empty() && new_watches_.empty()) return;
  }
}

uint64_t Comm::ExpectedSum(const Task& task) const {
  uint64_t sum = 0;
  for (int rank = 0; rank < options_.size; ++rank) sum += static_cast<uint64_t>(rank + 1) * task.number;
  return sum * static_cast<uint64_t>(options_.channels);
}

}  // namespace tacet::fake
