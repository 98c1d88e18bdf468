// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "analysis/bandwidth/bandwidth_view.h"
#include "analysis/calls/call_difference.h"
#include "analysis/calls/group_calls.h"
#include "analysis/calls/p2p_match.h"
#include "analysis/calls/program_order.h"
#include "analysis/calls/wait_graph.h"
#include "analysis/network/topology_checks.h"
#include "analysis/printed/output_front.h"
#include "analysis/printed/printed_steps.h"
#include "analysis/printed/stated_settings.h"
#include "analysis/printed/told_laggards.h"
#include "analysis/process/job_end.h"
#include "analysis/process/signs_of_life.h"
#include "analysis/process/silence.h"
#include "analysis/process/stack_reading.h"
#include "analysis/timeouts/nameless_waits.h"
#include "analysis/timing/straggler.h"

namespace tacet {

// All comparisons over the calls that one kind of record holds.
struct SourceAnalysis {
  CallSource source{};
  std::vector<GroupCalls> groups;
  std::vector<P2pLink> links;
  std::vector<CallDifference> differences;
  std::vector<Divergence> divergences;
  WaitGraph waits;
};

// The answers the rules read. Pointers inside lead into the Incident, which must stay alive and unchanged.
struct Analyses {
  SignsOfLife life;
  std::vector<Silence> silences;
  Outcome outcome;
  JobEnd end;
  std::vector<SourceAnalysis> sources;  // best first: black box, flight record, NCCL log; only those with calls
  std::vector<StackReading> stacks;
  NamelessWaits nameless;  // tracebacks of gloo that stand without a rank
  std::vector<ToldLaggard> told;
  PrintedLines printed;                           // what the program printed, by rank; points into the Incident
  OutputFront front;                              // who is elsewhere by what the program prints
  std::optional<PrintedLaggard> printed_laggard;  // whose part of the step is far longer, as ranks print it
  StatedDifference stated;     // who prints another value than all others in a line of the same words
  StragglerReport stragglers;  // from traces, Inspector files, boxes and timed flight records, else pipeline timelines
  TopologyView topology;
  TopologyChecks topology_checks;  // points into the view and the Incident
  BandwidthView bandwidth;         // points into the Incident
  double replay_slowdown = 0;      // S of the first pipeline timeline that can be replayed; 0 where there is none

  const SourceAnalysis* Of(CallSource source) const;
  const StackReading* StackOf(Rank rank) const;
};

Analyses Analyse(const Incident& incident);

}  // namespace tacet
