// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/record/box_words.h"
#include "wire/black_box_layout.h"

// An operation as the 23 words it is stored in. New ones are put together in registers and stored word by word: filling
// a struct field by field and copying it stalls on every small field that is read back as part of a word.
namespace tacet::plugin {

inline constexpr int kShapeWord = 7, kPlaceWord = 8;
static_assert(__builtin_offsetof(box::Op, comm) == 56 && __builtin_offsetof(box::Op, kind) == 58 &&
              __builtin_offsetof(box::Op, type) == 59 && __builtin_offsetof(box::Op, algorithm) == 60 &&
              __builtin_offsetof(box::Op, protocol) == 61 && __builtin_offsetof(box::Op, channels) == 62);
static_assert(__builtin_offsetof(box::Op, peer) == 64 && __builtin_offsetof(box::Op, flags) == 68 &&
              __builtin_offsetof(box::Op, channels_started) == 70 &&
              __builtin_offsetof(box::Op, channels_stopped) == 71);
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

// What is known of an operation when it is first heard of.
struct NewOp {
  uint64_t comm_id = 0, seq = 0, func_seq = 0, count = 0, stream = 0, user_tag = 0, group = 0, issue_ticks = 0,
           launch_ticks = 0;
  uint16_t comm = box::kNoComm, flags = 0;
  box::Kind kind{};
  box::Type type{};
  box::Algorithm algorithm{};
  box::Protocol protocol{};
  uint8_t channels = 0;
  int32_t peer = -1;
};

inline void StoreOp(box::Op& place, uint64_t serial, const NewOp& op) {
  auto* to = reinterpret_cast<Word*>(&place);
  const auto put = [to](int i, uint64_t word) { __atomic_store_n(&to[i], word, __ATOMIC_RELAXED); };
  put(0, serial);
  put(1, op.comm_id);
  put(2, op.seq);
  put(3, op.func_seq);
  put(4, op.count);
  put(5, op.stream);
  put(6, op.user_tag);
  put(kShapeWord, op.comm | static_cast<uint64_t>(op.kind) << 16 | static_cast<uint64_t>(op.type) << 24 |
                      static_cast<uint64_t>(op.algorithm) << 32 | static_cast<uint64_t>(op.protocol) << 40 |
                      static_cast<uint64_t>(op.channels) << 48);
  put(kPlaceWord, static_cast<uint32_t>(op.peer) | static_cast<uint64_t>(op.flags) << 32);
  put(box::kCheckWord, op.group & 0xffffffffu);
  put(10, op.issue_ticks);
  put(11, 0);
  put(12, op.launch_ticks);
#pragma GCC unroll 16
  for (int i = 13; i < box::kOpWords; ++i) put(i, 0);
}
static_assert(__builtin_offsetof(box::Op, issue_ticks) == 80 && __builtin_offsetof(box::Op, launch_ticks) == 96);

}  // namespace tacet::plugin
