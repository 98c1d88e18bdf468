// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "model/events/event.h"

namespace tacet {

// Ray or Kubernetes tells whom it killed for want of memory: a pod, an actor, or at least a node.
bool NamesVictim(const Event& kill);

// "Kubernetes killed pod trainer-2 for lack of memory (OOMKilled; its limit is 512Gi)"
std::string VictimSentence(const Event& kill);

// What helps against the limit that was hit.
std::vector<std::string> VictimSteps(const Event& kill);

}  // namespace tacet
