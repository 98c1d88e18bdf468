// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rules/rule.h"

namespace tacet {

// NCCL gives up with one of these warnings; notices and what a healthy process says of another do not count.
bool IsFatalWarning(const Event& event, std::initializer_list<std::string_view> ids);

// The process that an event is of; null where it is not known.
const Process* ProcessOf(const Incident& incident, const Event& event);

// Events that tell one cause in so many words, and those who tell it. Most logs that people have name no rank.
struct ToldEvents {
  std::vector<const Event*> events;
  std::vector<Rank> ranks;                             // sorted; those that are known
  std::set<std::string> hosts;                         // of all of them
  std::set<std::string> rank_hosts, other_hosts;       // of those whose rank is known, and of the rest
  std::set<std::pair<std::string, int64_t>> rankless;  // host and pid of processes whose rank is not known
  bool unknown = false;                                // some event is of nobody in particular
  explicit operator bool() const { return !events.empty(); }
};

template <typename Predicate>
ToldEvents CollectTold(const Case& facts, Predicate is_of_interest);
void TakeTold(const Case& facts, const Event& event, ToldEvents& told);

// "rank 3 on gpu17", "ranks 0-3", "process 4121 on gpu17", "gpu17", "a process of this job".
std::string TellerWords(const ToldEvents& told);
// "on rank 3", "in process 4711 on n4", "on hosts n4 and n5".
std::string AtTellerWords(const ToldEvents& told);
// Whether the verb behind these words is in the plural.
bool TellSeveral(const ToldEvents& told);
// "; the log does not say which rank it is", where it does not.
std::string RankUnknownWords(const ToldEvents& told);

// "; the log does not say on which host": of what concerns a whole host, where neither host nor rank is known.
std::string HostUnknownWords(const ToldEvents& told);
void AskWhichHost(const ToldEvents& told, RuleAnswer& answer);

// More hosts than ranks or processes: lines of some hosts name nobody, so TellerWords() names the hosts.
bool HostsTell(const ToldEvents& told);

// A finding with what such causes share. `says` is what each cited line proves. A job that ended in order has only
// something to note.
Finding ToldFinding(const Case& facts, std::string_view cause, const ToldEvents& told, std::string_view says);

// What tells whose line it is, by the launcher that the line shows: "the output of each rank by itself (torchrun
// --redirects 3, srun --output=%t.log)".
std::string OutputOfRank(const Incident& incident, const Event& event);
// How the launcher of this library keeps the ranks' outputs apart.
std::string RankOutputs(Library library);

// Asks which rank it was, where nothing tells.
void AskWhichRank(const ToldEvents& told, RuleAnswer& answer);

// Hosts whose processes are known, and the number of hosts that the job spans: -1 where that is open.
std::set<std::string> HostsSeen(const Incident& incident);
int64_t NodesOf(const Incident& incident);
// The settings of NCCL_HOSTID, one for each value, where they make all the nodes there are of a single host.
std::vector<const Event*> HostSplitters(const Incident& incident);

template <typename Predicate>
ToldEvents CollectTold(const Case& facts, Predicate is_of_interest) {
  ToldEvents told;
  for (const Event& event : facts.incident.events)
    if (is_of_interest(event)) TakeTold(facts, event, told);
  return told;
}

}  // namespace tacet
