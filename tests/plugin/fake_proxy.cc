// SPDX-License-Identifier: Apache-2.0
// The GPU and the proxy of the stand-in.
#include <time.h>
#include <unistd.h>

#include <set>

#include "tests/plugin/fake_nccl.h"

namespace tacet::fake {

static constexpr uint64_t kMarks = 64;
static constexpr int kDepth = 4;  // steps posted ahead

static uint64_t GpuNs() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return (static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec)) & ~uint64_t{31};
}

struct Comm::Watch {
  std::shared_ptr<Task> task;
  int channel = 0;
  uint64_t work = 0;
  void* handle = nullptr;
  bool started = false;
};

struct Comm::Transfers {
  std::shared_ptr<Task> task;
  Mailbox* box = nullptr;
  int channel = 0, peer = 0;
  bool send = false, told = false;
  int steps = 0;
  uint64_t base = 0;  // message number of the first step
  int posted = 0, moved = 0, done = 0;
  void* handle = nullptr;
  void* step_handles[8] = {};
  // Messages on their way round the ring: what came in at step s goes out at step s + 1.
  std::shared_ptr<std::vector<uint64_t>> passing;
};

// A collective goes round a ring in size - 1 steps; a send or receive takes one.
void Comm::Upload(Plan& plan) {
  const bool events = options_.network && (mask_ & (kProxyOp | kProxyStep)) != 0;
  std::deque<std::shared_ptr<Transfers>> ready;
  std::deque<std::shared_ptr<Watch>> watched;
  for (auto& task : plan.tasks) {
    for (int c = 0; c < options_.channels; ++c) {
      const int next = (options_.rank + 1) % options_.size,
                previous = (options_.rank + options_.size - 1) % options_.size;
      auto passing =
          std::make_shared<std::vector<uint64_t>>(1, static_cast<uint64_t>(options_.rank + 1) * task->number);
      for (const bool send : {true, false}) {
        if (task->p2p && send != task->send) continue;
        auto transfer = std::make_shared<Transfers>();
        transfer->task = task;
        transfer->channel = options_.first_channel + c;
        transfer->send = send;
        transfer->peer = task->p2p ? task->facts.peer : send ? next : previous;
        transfer->steps = task->p2p ? 1 : options_.size - 1;
        const auto in_job = [&](int member) { return options_.first + member * options_.stride; };
        transfer->box = &arena_.Box(options_.index, in_job(send ? options_.rank : transfer->peer),
                                    in_job(send ? transfer->peer : options_.rank), c);
        auto& so_far = (send ? sent_ : received_)[transfer->box];
        transfer->base = so_far;
        so_far += static_cast<uint64_t>(transfer->steps);
        transfer->passing = passing;
        transfer->told = events && task->handle != nullptr;
        task->transfers_left.fetch_add(1);
        ready.push_back(std::move(transfer));
      }
      if ((mask_ & kKernelCh) != 0 && api_ >= 3 && task->handle != nullptr && !task->copy_engine) {
        auto watch = std::make_shared<Watch>();
        watch->task = task;
        watch->channel = options_.first_channel + c;
        watch->work = task->work[static_cast<size_t>(c)];
        watched.push_back(std::move(watch));
      }
    }
  }
  std::lock_guard held(lock_);
  for (auto& transfer : ready) new_transfers_.push_back(std::move(transfer));
  for (auto& watch : watched) new_watches_.push_back(std::move(watch));
  stream_.push_back(plan);
  ++launched_plans_;
  gpu_wake_.notify_one();
}

void Comm::RunGpu() {
  while (!stop_) {
    Plan plan;
    {
      std::unique_lock held(lock_);
      gpu_wake_.wait(held, [&] { return stop_ || !stream_.empty(); });
      if (stop_) return;
      plan = stream_.front();
      stream_.pop_front();
    }
    const auto mark = [&](std::vector<std::vector<DeviceMark>>& marks, const Task& task) {
      for (int c = 0; c < options_.channels; ++c) {
        const uint64_t work = task.work[static_cast<size_t>(c)];
        DeviceMark& place = marks[static_cast<size_t>(options_.first_channel + c)][work % kMarks];
        place.ns.store(GpuNs());
        place.counter.store(work);
      }
    };
    for (auto& task : plan.tasks) {
      while (task->number == faults.gpu_never_starts.load() && !stop_) usleep(1000);
      if (stop_) return;
      mark(device_started_, *task);
      task->started = true;
    }
    for (auto& task : plan.tasks) {
      for (Doze doze; task->transfers_left.load() > 0 && !stop_;) doze.Nap();
      if (stop_) return;
      mark(device_stopped_, *task);
    }
    finished_plans_.fetch_add(1);
  }
}

bool Comm::PollWatches() {
  {
    std::lock_guard held(lock_);
    while (!new_watches_.empty()) {
      watches_.push_back(std::move(new_watches_.front()));
      new_watches_.pop_front();
    }
  }
  bool moved = false;
  const LoadedPlugin& plugin = process_.plugin;
  for (auto& watch : watches_) {
    const auto channel = static_cast<size_t>(watch->channel);
    const DeviceMark& start = device_started_[channel][watch->work % kMarks];
    const DeviceMark& stop = device_stopped_[channel][watch->work % kMarks];
    if (!watch->started && watch->work <= start.counter.load()) {
      EventDescriptor descr(api_, kKernelCh, watch->task->handle, 0);
      plugin.Start(context_, &watch->handle, descr.KernelCh(static_cast<uint8_t>(channel), start.ns.load()));
      watch->started = moved = true;
      continue;  // events of all channels start first
    }
    if (watch->started && watch->work <= stop.counter.load()) {
      if (watch->handle != nullptr) {
        plugin.RecordChannelStop(watch->handle, stop.ns.load());
        plugin.Stop(watch->handle);
      }
      watch->task.reset();
      moved = true;
    }
  }
  std::lock_guard held(lock_);
  std::erase_if(watches_, [](const auto& watch) { return watch->task == nullptr; });
  return moved;
}

bool Comm::AdvanceSend(Transfers& t) {
  const LoadedPlugin& plugin = process_.plugin;
  if (t.posted < t.steps && t.posted < t.done + kDepth) {
    if (t.handle != nullptr) {
      EventDescriptor descr(api_, kProxyStep, t.handle, options_.rank);
      plugin.Start(context_, &t.step_handles[t.posted % 8], descr.ProxyStep(t.posted));
      if (t.step_handles[t.posted % 8] != nullptr) plugin.RecordStep(t.step_handles[t.posted % 8], 8, 0);
    }
    ++t.posted;
    return true;
  }
  void* step = t.handle == nullptr ? nullptr : t.step_handles[t.moved % 8];
  const bool gpu_ready = t.task->started && static_cast<size_t>(t.moved) < t.passing->size();
  if (t.moved < t.posted && gpu_ready) {
    if (step != nullptr) plugin.RecordStep(step, 20, 0);  // with every poll, as NCCL does
    const uint64_t message = t.base + static_cast<uint64_t>(t.moved);
    if (t.box->credits.load() > message) {
      t.box->words[message % kMailSlots][0] = (*t.passing)[static_cast<size_t>(t.moved)];
      if (t.task->number != faults.data_never_arrives.load()) t.box->sent.fetch_add(1);
      ++t.moved;
      if (step != nullptr) plugin.RecordStep(step, 9, 4096);
      if (t.handle != nullptr) plugin.RecordProxyOp(t.handle, 2, 4096u * static_cast<uint64_t>(t.moved), t.moved);
      return true;
    }
  }
  if (t.done < t.moved && t.box->taken.load() > t.base + static_cast<uint64_t>(t.done)) {
    if (t.handle != nullptr && t.step_handles[t.done % 8] != nullptr) plugin.Stop(t.step_handles[t.done % 8]);
    t.step_handles[t.done % 8] = nullptr;
    ++t.done;
    return true;
  }
  return false;
}

bool Comm::AdvanceRecv(Transfers& t) {
  const LoadedPlugin& plugin = process_.plugin;
  if (t.posted < t.steps && t.posted < t.done + kDepth) {
    if (t.handle != nullptr) {
      EventDescriptor descr(api_, kProxyStep, t.handle, options_.rank);
      plugin.Start(context_, &t.step_handles[t.posted % 8], descr.ProxyStep(t.posted));
    }
    if (t.task->number != faults.no_credit.load()) t.box->credits.fetch_add(1);
    if (t.step_handles[t.posted % 8] != nullptr) plugin.RecordStep(t.step_handles[t.posted % 8], 10, 0);
    ++t.posted;
    return true;
  }
  const uint64_t message = t.base + static_cast<uint64_t>(t.done);
  if (t.done < t.posted && t.task->started && t.box->sent.load() > message) {
    const uint64_t word = t.box->words[message % kMailSlots][0];
    void* step = t.step_handles[t.done % 8];
    if (step != nullptr) {
      plugin.RecordStep(step, 11, 4096);
      plugin.RecordStep(step, 12, 4096);
    }
    t.passing->push_back(word);
    t.task->sum += word;
    t.box->taken.fetch_add(1);
    if (step != nullptr) plugin.Stop(step);
    t.step_handles[t.done % 8] = nullptr;
    ++t.done;
    if (t.handle != nullptr) plugin.RecordProxyOp(t.handle, 5, 4096u * static_cast<uint64_t>(t.done), t.done);
    return true;
  }
  return false;
}

bool Comm::PollTransfers() {
  {
    std::lock_guard held(lock_);
    while (!new_transfers_.empty()) {
      transfers_.push_back(std::move(new_transfers_.front()));
      new_transfers_.pop_front();
      Transfers& t = *transfers_.back();
      if (t.send && !t.task->p2p) t.task->sum += t.passing->front();
      if (!t.told) continue;
      EventDescriptor descr(api_, kProxyOp, t.task->handle, options_.rank);
      process_.plugin.Start(context_, &t.handle,
                            descr.ProxyOp(getpid(), static_cast<uint8_t>(t.channel), t.peer, t.steps, 4096, t.send));
      if (t.handle != nullptr && api_ >= 4) process_.plugin.RecordStep(t.handle, 19, 0);
    }
  }
  bool moved = false;
  std::set<std::pair<Mailbox*, bool>> busy;  // one connection carries one operation after the other
  for (auto& t : transfers_) {
    if (!busy.emplace(t->box, t->send).second) continue;
    moved |= t->send ? AdvanceSend(*t) : AdvanceRecv(*t);
    if (t->done < t->steps) continue;
    if (t->handle != nullptr) process_.plugin.Stop(t->handle);
    t->task->transfers_left.fetch_sub(1);
    t.reset();
  }
  std::erase_if(transfers_, [](const auto& t) { return t == nullptr; });
  return moved;
}

void Comm::RunProxy() {
  for (Doze doze; !stop_;) {
    bool moved = PollTransfers();
    if (!options_.kernel_thread) moved |= PollWatches();
    if (moved)
      doze = {};
    else
      doze.Nap();
  }
}

void Comm::RunKernelThread() {
  for (Doze doze; !stop_;) {
    if (PollWatches())
      doze = {};
    else
      doze.Nap();
  }
}

}  // namespace tacet::fake
