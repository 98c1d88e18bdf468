// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "rules/diagnosis.h"

namespace tacet {

// The evidence is what tools of a host or cluster list (ports, GPUs, file systems, nodes), and no job speaks in it.
bool HoldsListingsOnly(const Incident& incident);

// What such a list shows where nothing in it is a fault: "4 links are active". Empty where
// there is no list, or a job speaks as well.
std::string ListingWords(const Incident& incident, const Diagnosis& diagnosis);

// What a list of GPUs shows of their load: "GPU 5 is busy, GPUs 3 and 4 are idle". Empty where there is none.
std::string ListedLoadWords(const Incident& incident);

// ... and nothing that it shows is odd.
bool ListsNoFault(const Incident& incident, const Diagnosis& diagnosis);

}  // namespace tacet
