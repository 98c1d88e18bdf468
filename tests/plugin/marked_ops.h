// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <thread>

#include "tests/plugin/loaded_plugin.h"
#include "wire/black_box_layout.h"

// Operations whose fields depend on each other in a way that any mixture of two breaks.
namespace tacet::fake {

inline uint64_t MarkOf(uint64_t n) {
  n = (n ^ n >> 31) * 0x9e3779b97f4a7c15u;
  return n ^ n >> 29;
}

class MarkedComm {
 public:
  MarkedComm(const LoadedPlugin& plugin, uint64_t id) : plugin_(plugin), id_(id) {
    int mask = 0;
    plugin_.Init(&context_, &mask, {MarkOf(id), "marked", 1, 8, 0});
  }
  uint64_t issued() const { return issued_; }

  // Up to and including Coll start; the task's handle goes to whoever plays the proxy.
  void* Begin() {
    ++issued_;
    facts_.user_tag = id_ << 48 | issued_;
    facts_.count = MarkOf(facts_.user_tag);
    facts_.stream = reinterpret_cast<void*>(MarkOf(facts_.user_tag + 1));
    facts_.channels = 2;
    EventDescriptor group(7, kGroupApi, nullptr, 0);
    group_ = Start(group.GroupApi(false, 1));
    EventDescriptor call(7, kCollApi, group_, 0);
    void* api = Start(call.CollApi(facts_));
    if (api != nullptr) plugin_.Stop(api);
    facts_.seq = MarkOf(facts_.user_tag + 2);
    EventDescriptor task(7, kColl, api, 0);
    return Start(task.Coll(facts_, "", 0));
  }
  void Enqueue(void* task) {
    if (task != nullptr) plugin_.Stop(task);
    if (group_ != nullptr) plugin_.Stop(group_);
  }
  void RunKernel(void* task, uint64_t tag) {
    void* channels[2];
    for (int c = 0; c < 2; ++c) {
      EventDescriptor channel(7, kKernelCh, task, 0);
      channels[c] =
          Start(channel.KernelCh(static_cast<uint8_t>(c), (MarkOf(tag + 3) >> 8) + static_cast<uint64_t>(c) + 1));
    }
    for (int c = 0; c < 2; ++c) {
      if (channels[c] == nullptr) continue;
      plugin_.RecordChannelStop(channels[c], (MarkOf(tag + 3) >> 8) + 1000 + static_cast<uint64_t>(c));
      plugin_.Stop(channels[c]);
    }
  }
  uint64_t tag() const { return facts_.user_tag; }
  void RunOne() {
    void* task = Begin();
    Enqueue(task);
    RunKernel(task, tag());
  }

 private:
  void* Start(EventDescriptor& descr) {
    void* handle = nullptr;
    plugin_.Start(context_, &handle, descr);
    return handle;
  }
  const LoadedPlugin& plugin_;
  uint64_t id_, issued_ = 0;
  void *context_ = nullptr, *group_ = nullptr;
  CollFacts facts_;
};

// True if all of the operation's fields come from one and the same operation. What it has not reached yet is 0.
inline bool IsWellMarked(const box::Op& op) {
  const auto is = [](uint64_t value, uint64_t expected) { return value == expected; };
  const auto is_or_not_yet = [](uint64_t value, uint64_t expected) { return value == 0 || value == expected; };
  const uint64_t tag = op.user_tag;
  return is(op.count, MarkOf(tag)) && is(op.stream, MarkOf(tag + 1)) && is_or_not_yet(op.func_seq, MarkOf(tag + 2)) &&
         is_or_not_yet(op.gpu_start_ns, (MarkOf(tag + 3) >> 8) + 1) &&
         (is_or_not_yet(op.gpu_finish_ns, (MarkOf(tag + 3) >> 8) + 1001) ||
          is(op.gpu_finish_ns, (MarkOf(tag + 3) >> 8) + 1000)) &&
         is(op.comm_id, MarkOf(tag >> 48)) && op.channels_started <= 2 && op.channels_stopped <= op.channels_started;
}

}  // namespace tacet::fake
