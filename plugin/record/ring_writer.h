// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/record/open_box.h"

namespace tacet::plugin {

// Claim, fill, publish. A place that another thread is still writing a whole lap later is not waited for: the record is
// dropped and counted, so no two writers ever share a place.
inline void AppendRecord(OpenBox& box, box::Op& op) {
  const uint64_t index = Add(box.header->ring_head, 1);
  box::Record& record = box.ring[index & box.ring_mask];
  uint64_t before = LoadAcquire(record.seq);
  const uint64_t whole = 2 * (index + 1);
  if ((before & 1) != 0 || before > whole || !Swap(record.seq, before, whole - 1)) {
    CountDrop(box, box::Drop::ring_busy);
    return;
  }
  OrderStores();
  op.check = box::CheckOf(op, whole);
  StoreWords(record.op, op);
  StoreRelease(record.seq, whole);
}

}  // namespace tacet::plugin
