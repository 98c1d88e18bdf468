// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/analyses.h"
#include "analysis/process/process_state.h"

namespace tacet {

// Why a rank at which the waiting ends does not go on, as far as the evidence tells.
enum class StandstillKind {
  host,       // alive, busy or stuck outside communication
  gpu,        // its GPU does not get to the operation, or does not finish what its peers have
  frozen,     // left no record and no stack where its peers did, and no trace of an end
  dead,       // its connections closed, or an exit is told
  absent,     // no file of any kind: dead, frozen, or merely not collected
  explained,  // its own output says what ended it: an exception, a kill
  unclear,    // it lags, but nothing tells why
};

struct Standstill {
  Rank rank;
  const WaitRoot* root = nullptr;       // null when only stacks point at the rank
  std::vector<Claim> claims;            // all that was said of its state
  ProcessState state;                   // what they add up to
  StandstillKind kind = StandstillKind::unclear;
  const StackReading* stack = nullptr;  // when it decided
  const ToldLaggard* told = nullptr;    // when only a report of somebody else names the rank
  const Event* closing = nullptr;       // a peer saw its connection close
  const Silence* silence = nullptr;     // its heartbeat stopped
  const Event* hung_task = nullptr;     // the kernel says that the process is blocked in it
  const InFlight* inside = nullptr;     // its host is inside NCCL with the operation and does not come out
  bool by_stack_alone = false;
  bool alive = false;  // it wrote a dump or saw the dump signal
};

// Joins the claims into one state, and reads from it why the rank does not go on. A rank that issued the operation is
// not held up by what its host does afterwards.
void Settle(Standstill& still);

struct StandstillView {
  std::vector<Standstill> ranks;       // sorted by rank
  const Call* operation = nullptr;     // the operation the victims are in
  const CallStream* stream = nullptr;  // of the first victim
  GroupIndex group = GroupIndex::none;
  std::vector<Rank> waiters;  // all ranks held up, directly or not
  // Something tells that the waiting took long. Calls and stacks alone are a picture of one moment, and in a running
  // job somebody is always behind.
  bool lasts = false;
  std::vector<Rank> connecting;  // inside NCCL with the first operation of its shape: they may still make connections
};

// Joins the wait graphs of all sources with stacks and signs of life. A rank that lost its flight record but whose NCCL
// log shows that it kept up is no root.
StandstillView FindStandstills(const Incident& incident, const Analyses& analyses);

}  // namespace tacet
