// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// How far each rank got with setting up communication, as its log and output tell.
struct InitView {
  std::set<Rank> started;             // its NCCL log shows a communicator being set up
  std::set<Rank> completed;           // ... and done
  std::set<Rank> failed;              // reports an error of the rendezvous, the store or NCCL's set-up
  std::set<Rank> unreachable;         // says that the store does not answer
  bool issued_any = false;            // some rank issued a collective: set-up is behind
  const Event* incomplete = nullptr;  // the rendezvous says how many came
  const Event* no_store = nullptr;    // the first that could not connect to the store
};
InitView ReadInit(const Case& facts);

// torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (h,
// 29500).
bool IsStoreUnreachable(const Event& event);

// The address that could not be connected to; empty where it is not told.
std::string_view TargetOf(const Event& event);

// It reports an error or an end of its own.
bool FailedItself(const RankLife& life);
// A rank of which nothing is here may be known by its number alone.
bool LeftFiles(const Case& facts, Rank rank);

// A finding of the set-up family with what they share.
Finding InitFinding(std::string_view cause, std::vector<Rank> ranks);

// What ranks raised that ask for a GPU which they cannot see (invalid device ordinal), where lower ranks do not: there
// are more processes than GPUs. Empty where rank 0 raises it too, since the number of processes is no reason then.
std::vector<const Event*> FindMissingGpus(const Case& facts);

// The first warning of NCCL with this id; null when there is none.
const Event* FindWarning(const Case& facts, std::string_view id);

// "; its output is worker.3.out", so that nobody has to look for it; empty: no file is theirs alone.
std::string OutputsOf(const Incident& incident, const std::vector<Rank>& ranks);

// `outputs`: as OutputsOf tells them. Several at once are most often those of a node or of a second launcher.
std::vector<std::string> StepsForSeveral(const std::string& outputs);
// Empty where no output is known: the rule's own steps serve.
std::vector<std::string> StepsForOne(const std::string& outputs);

}  // namespace tacet
