// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "plugin/record/open_box.h"

namespace tacet::plugin {

// What NCCL keeps as void* for an event or a context. It is no pointer but a name: kind, slot and the slot's generation
// at that time. NCCL uses handles after it stopped them, children outlive parents, and under PXN a handle of another
// process comes in; a name that no longer fits is recognised, a dangling pointer is not. The salt differs from process
// to process. A real pointer has zeros where the kind is.
//
//     63..60 kind | 59..56 - | 55..48 extra (channel, lane) | 47..32 slot | 31..0 generation ^ salt
enum class HandleKind : uint8_t {
  none,
  group,
  launch,
  api,
  task,
  channel,
  proxy_op,
  proxy_step,
  captured,
  copy_engine,
  dropped,
  context,
};

struct EventHandle {
  uint64_t bits = 0;
  HandleKind kind() const { return static_cast<HandleKind>(bits >> 60); }
  uint32_t slot() const { return static_cast<uint32_t>(bits >> 32) & 0xffff; }
  uint8_t extra() const { return static_cast<uint8_t>(bits >> 48); }
  uint32_t generation(const OpenBox& box) const { return static_cast<uint32_t>(bits) ^ box.salt; }
  // Never followed, so nothing is lost to the optimizer.
  void* opaque() const { return reinterpret_cast<void*>(bits); }  // NOLINT(performance-no-int-to-ptr)
};

inline EventHandle HandleOf(const void* opaque) { return {reinterpret_cast<uint64_t>(opaque)}; }

inline EventHandle MakeHandle(const OpenBox& box, HandleKind kind, uint32_t slot, uint32_t generation,
                              uint8_t extra = 0) {
  return {static_cast<uint64_t>(kind) << 60 | static_cast<uint64_t>(extra) << 48 |
          static_cast<uint64_t>(slot & 0xffff) << 32 | (generation ^ box.salt)};
}

}  // namespace tacet::plugin
