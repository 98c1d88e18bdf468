// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "evidence/flight_recorder/flight_recorder_parse.h"
#include "model/call.h"

namespace tacet {

// "nccl:coalesced", "nccl:ALLGATHER_coalesced": the name of an entry that closes a coalesced group, if it has no
// tensors.
bool IsCoalescedEndName(std::string_view name);

// Finds the coalesced groups among the calls of one dump (calls[i] is entries[i], `group_count` groups) and gives their
// members what the closing entry knows.
//   record 36  nccl:recv 1<-2  p2p_seq_id 15  is_p2p True   scheduled, for ever
//   record 37  nccl:coalesced  p2p_seq_id 15  is_p2p False  completed, no sizes
void MarkCoalesced(const std::vector<FlightEntry>& entries, size_t group_count, CallStream& stream);

}  // namespace tacet
