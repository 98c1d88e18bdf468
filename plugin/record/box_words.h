// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

// The box is shared with readers in other processes and written by several threads of NCCL, so every access to it is an
// atomic of at most eight bytes. The compiler's builtins, not std::atomic_ref: some C++20 libraries still lack that.
namespace tacet::plugin {

using Word = uint64_t __attribute__((may_alias));

template <typename T>
T Load(const T& place) {
  T value;
  __atomic_load(&place, &value, __ATOMIC_RELAXED);
  return value;
}
template <typename T>
T LoadAcquire(const T& place) {
  T value;
  __atomic_load(&place, &value, __ATOMIC_ACQUIRE);
  return value;
}
// A pointer to something that was finished before it was published: following the pointer orders the two, on every
// machine that runs NCCL. An acquiring load would wait for the last event's releasing store. ThreadSanitizer does not
// know that order.
template <typename T>
T* LoadPointer(T* const& place) {
#if defined(__SANITIZE_THREAD__)
  return __atomic_load_n(&place, __ATOMIC_ACQUIRE);
#else
  return __atomic_load_n(&place, __ATOMIC_RELAXED);
#endif
}
template <typename T>
void Store(T& place, T value) {
  __atomic_store(&place, &value, __ATOMIC_RELAXED);
}
template <typename T>
void StoreRelease(T& place, T value) {
  __atomic_store(&place, &value, __ATOMIC_RELEASE);
}
inline uint64_t Add(uint64_t& place, uint64_t value) { return __atomic_fetch_add(&place, value, __ATOMIC_RELAXED); }

// Takes something over: what follows stays behind it.
inline bool Claim(uint64_t& place, uint64_t& expected, uint64_t wanted) {
  return __atomic_compare_exchange_n(&place, &expected, wanted, false, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
}
// Also hands something on: whoever sees the new word sees what was written before it. Dearer, since it waits for those
// stores.
inline bool Swap(uint64_t& place, uint64_t& expected, uint64_t wanted) {
  return __atomic_compare_exchange_n(&place, &expected, wanted, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

// An addition by the only thread that writes here: no locked instruction.
template <typename T>
void AddAlone(T& place, T value) {
  Store(place, static_cast<T>(Load(place) + value));
}

// The same for the highest and the lowest of what was seen. A lost race costs one value of many, where there can be one
// at all.
inline void RaiseAlone(uint64_t& place, uint64_t value) {
  if (Load(place) < value) Store(place, value);
}
// Zero means "not set".
inline void LowerAlone(uint64_t& place, uint64_t value) {
  const uint64_t seen = Load(place);
  if (seen == 0 || seen > value) Store(place, value);
}

inline void RaiseTo(uint64_t& place, uint64_t value) {
  uint64_t seen = Load(place);
  for (int tries = 0; seen < value && tries < 16; ++tries)
    if (__atomic_compare_exchange_n(&place, &seen, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) return;
}
template <typename T>
void StoreWords(T& place, const T& value) {
  static_assert(sizeof(T) % 8 == 0 && alignof(T) == 8);
  auto* to = reinterpret_cast<Word*>(&place);
  const auto* from = reinterpret_cast<const char*>(&value);
  for (size_t i = 0; i < sizeof(T) / 8; ++i) {
    uint64_t word;
    std::memcpy(&word, from + i * 8, 8);
    __atomic_store_n(&to[i], word, __ATOMIC_RELAXED);
  }
}
template <typename T>
void LoadWords(const T& place, T& value) {
  static_assert(sizeof(T) % 8 == 0 && alignof(T) == 8);
  const auto* from = reinterpret_cast<const Word*>(&place);
  auto* to = reinterpret_cast<char*>(&value);
  for (size_t i = 0; i < sizeof(T) / 8; ++i) {
    const uint64_t word = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    std::memcpy(to + i * 8, &word, 8);
  }
}

// Tables are used round and round, so the next entry is never in a near cache; asking for it one event early hides
// that.
template <typename T>
void Prefetch(T& entry) {
  for (size_t at = 0; at < sizeof(T); at += 64) __builtin_prefetch(reinterpret_cast<char*>(&entry) + at, 1);
}

}  // namespace tacet::plugin
