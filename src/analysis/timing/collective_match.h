// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/incident.h"
#include "model/operation.h"

namespace tacet {

// One member's part in one operation. Times are those of the member's own clock until they are aligned.
struct RoundMember {
  Rank rank;
  int64_t enter_ns = kNoTime;  // the host issued it
  int64_t start_ns = kNoTime;  // the GPU began it
  int64_t end_ns = kNoTime;
  int64_t duration_ns = -1;  // GPU time: waiting and transfer
  // It began only because the operation before it on the same rank had ended: its start says nothing about how late the
  // rank was.
  bool queued = false;
  uint32_t timeline = kNoIndex, collective = kNoIndex;  // where it comes from, for traces
  int64_t idle_ns = -1;   // since the operation before it on the same communicator and rank had ended; -1: not known
  int64_t alone_ns = -1;  // since the last operation of the rank, on whatever communicator, had ended; -1: not known
  bool enter_is_estimate = false;  // good for the order and the length of many operations, not for one

  // Its time on the GPU, measured or from start to end; -1: not known.
  int64_t length_ns() const {
    if (duration_ns >= 0) return duration_ns;
    return start_ns != kNoTime && end_ns != kNoTime ? end_ns - start_ns : -1;
  }
};

// One operation with all members that are known.
struct CollectiveRound {
  GroupIndex group = GroupIndex::none;
  OpKind kind = OpKind::unknown;
  DataType type = DataType::unknown;
  int64_t step = -1;   // training step, -1 where unknown
  int64_t seq = -1;    // the framework's number, else counted from 0
  int64_t bytes = -1;  // S of nccl-tests, of an uneven all-to-all the largest; -1 where unknown
  int32_t group_size = -1;
  bool coalesced = false;            // a member ran it together with other operations in one kernel
  std::vector<RoundMember> members;  // by rank; a send has its sender first and its receiver second

  bool whole() const { return group_size > 0 && static_cast<int32_t>(members.size()) == group_size; }
  // Nobody can end before everybody has begun: true of all-to-all operations, not of rooted ones and of a send.
  bool synchronises() const;
};

// Joins the operations of all ranks: the i-th operation of a group in a training step is the same one on every rank;
// the framework's sequence number is used where the trace has it; without steps the lists are shifted until kinds and
// sizes agree. Sends are joined with receives by sender, receiver and order. Operations on which ranks disagree in kind
// or size are left out, and those that one rank of several has. Of a group with one trace every operation is a round of
// one member: whatever that one waits counts as transfer. Sorted by step and time.
std::vector<CollectiveRound> MatchCollectives(std::span<const Timeline> timelines, std::span<const Group> groups);

// The same from NCCL Inspector (by communicator, kind and number) and from a Flight Recorder with timing on (by group
// and sequence number). Steps are found by the period of the sequence of operations.
std::vector<CollectiveRound> MatchMeasurements(std::span<const Measurement> measurements,
                                               std::span<const Group> groups);
std::vector<CollectiveRound> MatchTimedCalls(const Incident& incident);

// Sends and receives of a Flight Recorder with timing on. A batch is one kernel; batches that a transfer joins are one
// round, of kind send for two ranks and coalesced for more. They have no steps: every microbatch looks like the next.
std::vector<CollectiveRound> MatchTimedBatches(const Incident& incident);

// When the first host issued it, by that host's clock; INT64_MAX where no host's time is known.
int64_t FirstEnterOf(const CollectiveRound& round);

// Gives rounds without steps their step, by the period of the sequence of operations. Does nothing where none repeats.
void AssignPeriods(std::vector<CollectiveRound>& rounds);

// When the steps of one rank began, by the period of its operations, in their order; empty where none repeats.
std::vector<int64_t> FindPeriodStarts(const std::vector<CollectiveRound>& of_one_rank);

// S and bus factor of nccl-tests: algorithm bandwidth is S / time, bus bandwidth that times the factor. n is the
// group's size.
//   all_reduce 2(n-1)/n; all_gather, reduce_scatter, all_to_all, gather, scatter (n-1)/n; broadcast, reduce, send, recv
//   1
int64_t OperationBytes(OpKind kind, int64_t in_elements, int64_t out_elements, DataType type, int32_t n);

// Waiting and transfer of a round whose members' clocks agree: wait = own start to the last member's start, transfer =
// from there to the last end. Without starts: transfer = shortest duration, wait = own duration minus that.
struct RoundTiming {
  int64_t transfer_ns = -1;
  int64_t total_wait_ns = 0;  // of all members
  Rank last;                  // who came last
  int64_t excess_ns = 0;      // how much later than the second last
};
RoundTiming TimeRound(const CollectiveRound& round);

}  // namespace tacet
