// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/record/op_words.h"
#include "plugin/record/open_box.h"

namespace tacet::plugin {

// Claim, fill, publish. A place that another thread is still writing a whole lap later is not waited for: the record is
// dropped and counted. Should two writers a lap apart meet at one place in the same moment, or a reader catch the
// content ahead of the sequence word, then the checksum, which covers both, does not fit. `more_flags` and the channel
// counts are added on the way.
inline void AppendRecord(OpenBox& box, const box::Op& op, uint64_t more_flags, uint64_t started, uint64_t stopped) {
  const uint64_t index = Add(box.header->ring_head, 1);
  box::Record& record = box.ring[index & box.ring_mask];
  Prefetch(box.ring[(index + 1) & box.ring_mask]);
  const uint64_t before = Load(record.seq);
  const uint64_t whole = 2 * (index + 1);
  if ((before & 1) != 0 || before > whole) {
    CountDrop(box, box::Drop::ring_busy);
    return;
  }
  Store(record.seq, whole - 1);
  const auto* from = reinterpret_cast<const Word*>(&op);
  auto* to = reinterpret_cast<Word*>(&record.op);
  box::CheckSum sum(whole);
  uint64_t check_word = 0;
#pragma GCC unroll 32
  for (int i = 0; i < box::kOpWords; ++i) {
    uint64_t word = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    if (i == kPlaceWord) word |= more_flags << 32 | started << 48 | stopped << 56;
    if (i == box::kCheckWord) check_word = word &= 0xffffffffu;
    sum.Add(i, word);
    __atomic_store_n(&to[i], word, __ATOMIC_RELAXED);
  }
  __atomic_store_n(&to[box::kCheckWord], check_word | uint64_t{sum.value()} << 32, __ATOMIC_RELAXED);
  StoreRelease(record.seq, whole);
}

}  // namespace tacet::plugin
