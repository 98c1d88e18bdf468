// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include "tests/plugin/loaded_plugin.h"

// All callbacks of whole operations, made by hand in NCCL's order on the calling thread. Allocates nothing and calls
// nothing but the plugin, so it can run where neither is allowed.
namespace tacet::fake {

struct HandComm {
  const LoadedPlugin* plugin = nullptr;
  void* context = nullptr;
  int rank = 0, pid = 0;
  uint64_t hash = 0, seq = 0, gpu_ns = 1000, callbacks = 0;

  void* Start(EventDescriptor& descr) {
    void* handle = nullptr;
    plugin->Start(context, &handle, descr);
    ++callbacks;
    return handle;
  }
  void Stop(void* handle) {
    if (handle == nullptr) return;
    plugin->Stop(handle);
    ++callbacks;
  }
  void Step(void* handle, int state) {
    if (handle == nullptr) return;
    plugin->RecordStep(handle, state, 4096);
    ++callbacks;
  }

  // A collective over the network: group, call, launch, task, proxy operations with steps, kernel channels.
  void RunCollective(CollFacts facts, int channels, bool network) {
    const int api = plugin->api();
    facts.channels = static_cast<uint8_t>(channels);
    facts.seq = seq++;
    void *group_api = nullptr, *call = nullptr, *launch = nullptr;
    if (api >= 5) {
      EventDescriptor group_descr(api, kGroupApi, nullptr, 0);
      group_api = Start(group_descr.GroupApi(false, 1));
      if (group_api != nullptr) plugin->Record(group_api, 23, nullptr);
      EventDescriptor call_descr(api, kCollApi, group_api, 0);
      call = Start(call_descr.CollApi(facts));
      Stop(call);
      if (group_api != nullptr) plugin->Record(group_api, 24, nullptr);
      EventDescriptor launch_descr(api, kKernelLaunch, group_api, 0);
      launch = Start(launch_descr.KernelLaunch(nullptr));
      Stop(launch);
    }
    EventDescriptor group_descr(api, kGroup, nullptr, 0);
    void* group = Start(group_descr);
    EventDescriptor coll_descr(api, kColl, api >= 5 ? call : group, rank);
    void* coll = Start(coll_descr.Coll(facts, "hand", hash));
    void* proxies[2] = {};
    if (network) BeginProxies(coll, proxies);
    Stop(coll);
    Stop(group);
    Stop(group_api);
    if (network) EndProxies(proxies);
    if (api >= 3) RunKernel(coll, channels);
  }

  void RunKernel(void* coll, int channels) {
    void* handles[8] = {};
    for (int c = 0; c < channels && c < 8; ++c) {
      EventDescriptor descr(plugin->api(), kKernelCh, coll, 0);
      handles[c] = Start(descr.KernelCh(static_cast<uint8_t>(c), gpu_ns += 10));
    }
    for (void* handle : handles) {
      if (handle == nullptr) continue;
      plugin->RecordChannelStop(handle, gpu_ns += 10);
      Stop(handle);
    }
  }

  void BeginProxies(void* coll, void* (&proxies)[2]) {
    for (int i = 0; i < 2; ++i) {
      EventDescriptor descr(plugin->api(), kProxyOp, coll, rank);
      proxies[i] = Start(descr.ProxyOp(pid, 0, i + 1, 2, 4096, i == 0));
    }
  }
  void EndProxies(void* (&proxies)[2]) {
    static constexpr int kStates[2][4] = {{8, 20, 20, 9}, {10, 10, 11, 12}};
    for (int i = 0; i < 2; ++i) {
      for (int step = 0; step < 2; ++step) {
        EventDescriptor descr(plugin->api(), kProxyStep, proxies[i], rank);
        void* handle = Start(descr.ProxyStep(step));
        for (const int state : kStates[i]) Step(handle, state);
        Stop(handle);
      }
      if (proxies[i] != nullptr) plugin->RecordProxyOp(proxies[i], i == 0 ? 3 : 7, 8192, 2);
      Stop(proxies[i]);
    }
  }
};

}  // namespace tacet::fake
