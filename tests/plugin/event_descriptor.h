// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

// Event descriptors of each profiler API version, laid down byte by byte at the offsets NCCL uses. On purpose not made
// with the plugin's own declarations: a mistake there must show here.
namespace tacet::fake {

enum EventType : uint64_t {
  kGroup = 0x1,
  kColl = 0x2,
  kP2p = 0x4,
  kProxyOp = 0x8,
  kProxyStep = 0x10,
  kProxyCtrl = 0x20,
  kKernelCh = 0x40,
  kNetPlugin = 0x80,
  kGroupApi = 0x100,
  kCollApi = 0x200,
  kP2pApi = 0x400,
  kKernelLaunch = 0x800,
  kCeColl = 0x1000,
  kCeSync = 0x2000,
  kCeBatch = 0x4000,
  kKernelPhase = 0x8000,
};

struct CollFacts {
  const char* func = "AllReduce";
  uint8_t func_code = 4;  // v1
  uint64_t seq = 0;
  uint64_t count = 0;
  int root = 0;
  const char* datatype = "ncclFloat32";
  uint8_t datatype_code = 7;  // v1
  uint8_t channels = 1;
  const char* algo = "RING";
  uint8_t algo_code = 1;
  const char* proto = "SIMPLE";
  uint8_t proto_code = 2;
  int peer = -1;           // p2p
  void* stream = nullptr;  // API events
  bool captured = false;
  void* parent_group = nullptr;
  uint64_t user_tag = 0;
  bool symmetric = false;
};

class EventDescriptor {
 public:
  EventDescriptor(int api, uint64_t type, void* parent, int rank) : api_(api) {
    std::memset(bytes_, 0, sizeof bytes_);
    if (api >= 5)
      Put(0, type);
    else
      Put(0, static_cast<uint8_t>(type));
    Put(8, parent);
    Put(16, rank);
  }
  void* data() { return bytes_; }

  EventDescriptor& GroupApi(bool captured, int depth) { return Put(24, captured).Put(28, depth); }
  EventDescriptor& CollApi(const CollFacts& c) {
    Put(24, c.func).Put(32, c.count).Put(40, c.datatype).Put(48, c.root).Put(56, c.stream).Put(64, c.captured);
    return api_ >= 7 ? Put(72, c.user_tag) : *this;
  }
  EventDescriptor& P2pApi(const CollFacts& c) {
    Put(24, c.func).Put(32, c.count).Put(40, c.datatype).Put(48, c.stream).Put(56, c.captured);
    return api_ >= 7 ? Put(64, c.user_tag) : *this;
  }
  EventDescriptor& KernelLaunch(void* stream) { return Put(24, stream); }

  EventDescriptor& Coll(const CollFacts& c, const char* name, uint64_t hash) {
    if (api_ >= 4) return CollV4(c);
    Put(24, name).Put(32, hash).Put(40, c.seq).Put(72, c.count).Put(80, c.root);
    if (api_ == 1)
      return Put(48, c.func_code)
          .Put(84, c.datatype_code)
          .Put(104, c.channels)
          .Put(106, c.algo_code)
          .Put(107, c.proto_code);
    Put(48, c.func).Put(88, c.datatype);
    return api_ == 2 ? Put(104, c.channels).Put(112, c.algo).Put(120, c.proto)
                     : Put(96, c.channels).Put(104, c.algo).Put(112, c.proto);
  }
  EventDescriptor& P2p(const CollFacts& c, const char* name, uint64_t hash) {
    if (api_ >= 4) {
      Put(24, c.func).Put(40, c.datatype).Put(48, c.count).Put(56, c.peer).Put(60, c.channels);
      if (api_ >= 5) Put(64, c.parent_group);
      return api_ >= 7 ? Put(72, c.user_tag) : *this;
    }
    Put(24, name).Put(32, hash).Put(64, c.count).Put(72, c.peer);
    return api_ == 1 ? Put(40, c.func_code).Put(56, c.datatype_code) : Put(40, c.func).Put(56, c.datatype);
  }
  EventDescriptor& ProxyOp(int pid, uint8_t channel, int peer, int steps, int chunk, bool send) {
    return Put(24, pid).Put(28, channel).Put(32, peer).Put(36, steps).Put(40, chunk).Put(44, send ? 1 : 0);
  }
  EventDescriptor& ProxyStep(int step) { return Put(24, step); }
  EventDescriptor& KernelCh(uint8_t channel, uint64_t gpu_ns) {
    Put(24, channel);
    return api_ >= 4 ? Put(32, gpu_ns) : *this;
  }
  EventDescriptor& CeColl(const CollFacts& c) {
    Put(24, c.seq)
        .Put(32, c.func)
        .Put(56, c.count)
        .Put(64, c.root)
        .Put(72, c.datatype)
        .Put(80, "UC")
        .Put(104, c.stream);
    return api_ >= 7 ? Put(112, c.user_tag) : *this;
  }

 private:
  EventDescriptor& CollV4(const CollFacts& c) {
    Put(24, c.seq).Put(32, c.func).Put(56, c.count).Put(64, c.root).Put(72, c.datatype).Put(80, c.channels);
    Put(88, c.algo).Put(96, c.proto);
    if (api_ >= 5) Put(104, c.parent_group);
    return api_ >= 7 ? Put(112, "AllReduce_RSxLD_AGxST").Put(120, c.symmetric).Put(128, c.user_tag) : *this;
  }
  template <typename T>
  EventDescriptor& Put(size_t offset, T value) {
    std::memcpy(bytes_ + offset, &value, sizeof value);
    return *this;
  }

  int api_;
  alignas(8) unsigned char bytes_[136];
};

}  // namespace tacet::fake
