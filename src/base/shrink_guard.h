// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacet {

// Keeps a read-only mapping readable when its file becomes shorter (logrotate's copytruncate, an editor, a failing
// disk): without it, the first touch behind the new end kills the process with SIGBUS. With it, that touch finds zeros
// from its page to the mapping's end, and Hit() is true.
class ShrinkGuard {
 public:
  // Watches no more than this many mappings at once: one for each reading thread is enough.
  static constexpr size_t kMostMappings = 256;

  ShrinkGuard() = default;
  ~ShrinkGuard() { Release(); }
  ShrinkGuard(const ShrinkGuard&) = delete;
  ShrinkGuard& operator=(const ShrinkGuard&) = delete;
  ShrinkGuard(ShrinkGuard&& other) noexcept;
  ShrinkGuard& operator=(ShrinkGuard&& other) noexcept;

  // False when nothing more can be watched: such a file must not be mapped.
  bool Watch(const void* mapping, size_t size);
  bool Hit() const;
  void Release();  // before the mapping goes

 private:
  int slot_ = -1;
};

}  // namespace tacet
