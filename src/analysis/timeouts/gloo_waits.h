// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "analysis/printed/output_front.h"
#include "analysis/printed/told_laggards.h"
#include "analysis/process/signs_of_life.h"
#include "analysis/process/stack_reading.h"
#include "analysis/timeouts/nameless_waits.h"

namespace tacet {

// Gloo keeps no record of its calls, but every rank that waits raises when its time is up, and every rank whose peer
// has gone raises at once. Who says nothing while all others raise is the one they waited for:
//   RuntimeError: [./gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting 10000ms for recv operation to complete
//   RuntimeError: [./gloo/transport/tcp/pair.cc:598] Connection closed by peer [127.0.0.1]:24774
// So it is with a limit that a program sets itself. Empty unless somebody's time was up. A rank whose output visibly
// ends before the others' is not listed, unless its stack shows it in code of its own, or the lines that it prints
// show that it is at another place, or that it went on after the others had gone (with the Incident).
// Who waited until the time was up waited for somebody else: where that is all but one, it is that one, though it lost
// the others when it came. Where more than one is left (a launcher ends the others with the first), the lines that they
// print must set one of them apart.
std::vector<ToldLaggard> FindGlooLaggards(const SignsOfLife& life, const std::vector<StackReading>& stacks = {},
                                          const OutputFront& front = {}, const PrintedLines& printed = {},
                                          const NamelessWaits& nameless = {});

// All ranks but this one raise because gloo lost a peer, nobody because its time was up: the process is gone.
bool IsMissedByGloo(const SignsOfLife& life, const RankLife& rank);

}  // namespace tacet
