// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/told_finding.h"

#include <algorithm>
#include <map>

#include "model/events/nccl_warnings.h"
#include "rules/words/words.h"

namespace tacet {

bool IsFatalWarning(const Event& event, std::initializer_list<std::string_view> ids) {
  return event.kind == EventKind::nccl_warning && event.As<Warning>().role == NcclWarningRole::cause &&
         std::find(ids.begin(), ids.end(), event.As<Warning>().id) != ids.end();
}

const Process* ProcessOf(const Incident& incident, const Event& event) {
  if (event.speaker < incident.processes.size()) return &incident.processes[event.speaker];
  if (!event.rank.known()) return nullptr;
  const auto found = incident.process_of.find(event.rank);
  return found == incident.process_of.end() ? nullptr : &incident.processes[found->second];
}

void TakeTold(const Case& facts, const Event& event, ToldEvents& told) {
  told.events.push_back(&event);
  const Process* process = ProcessOf(facts.incident, event);
  if (process && !process->host.empty()) {
    told.hosts.insert(process->host);
    (event.rank.known() ? told.rank_hosts : told.other_hosts).insert(process->host);
  }
  if (event.rank.known()) {
    const auto at = std::lower_bound(told.ranks.begin(), told.ranks.end(), event.rank);
    if (at == told.ranks.end() || *at != event.rank) told.ranks.insert(at, event.rank);
    return;
  }
  const int64_t pid = event.pid > 0 ? event.pid : process ? process->pid : -1;
  if (pid > 0)
    told.rankless.emplace(process ? process->host : std::string(), pid);
  else
    told.unknown = true;
}

static std::string ProcessWords(const ToldEvents& told) {
  constexpr size_t kMost = 4;
  std::string pids;
  size_t shown = 0;
  for (const auto& [host, pid] : told.rankless) {
    if (shown++ == kMost) {
      pids += ", ...";
      break;
    }
    pids += (shown == 1 ? "" : shown == told.rankless.size() ? " and " : ", ") + std::to_string(pid);
  }
  return (told.rankless.size() == 1 ? "process " : "processes ") + pids;
}

bool HostsTell(const ToldEvents& told) {
  const size_t named = told.ranks.empty() ? told.rankless.size() : told.ranks.size();
  return told.hosts.size() > 1 && told.hosts.size() > named;
}

static std::string PlaceWords(const std::set<std::string>& hosts) {
  if (hosts.size() == 1) return *hosts.begin();
  if (hosts.size() == 2) return *hosts.begin() + " and " + *hosts.rbegin();
  return hosts.empty() ? "" : std::to_string(hosts.size()) + " hosts";
}

std::string TellerWords(const ToldEvents& told) {
  // What is known of processes without a rank is not of those ranks.
  if (!told.ranks.empty() && !told.other_hosts.empty()) {
    if (told.ranks.size() == 1 && told.rankless.size() == 1 && told.rank_hosts.empty())
      return RankWords(told.ranks) + " (most likely the process on " + PlaceWords(told.other_hosts) + ")";
    const std::string place = told.ranks.size() == 1 && told.rank_hosts.size() > 1 ? "" : PlaceWords(told.rank_hosts);
    return RankWords(told.ranks) + (place.empty() ? "" : " on " + place) +
           (told.rankless.size() == 1 ? " and a process on " : " and processes on ") + PlaceWords(told.other_hosts);
  }
  constexpr size_t kMostHosts = 3;
  std::string place;
  if (HostsTell(told) && told.hosts.size() <= kMostHosts) {
    size_t left = told.hosts.size();
    for (const std::string& host : told.hosts) place += host + (--left > 1 ? ", " : left == 1 ? " and " : "");
    return "hosts " + place;
  }
  if (HostsTell(told)) return std::to_string(told.hosts.size()) + " hosts";
  if (told.hosts.size() == 1) place = *told.hosts.begin();
  if (told.hosts.size() > 1) place = std::to_string(told.hosts.size()) + " hosts";
  std::string who;
  if (!told.ranks.empty())
    who = RankWords(told.ranks);
  else if (!told.rankless.empty())
    who = ProcessWords(told);
  if (who.empty()) return place.empty() ? "a process of this job" : place;
  return place.empty() ? who : who + " on " + place;
}

std::string AtTellerWords(const ToldEvents& told) {
  const std::string who = TellerWords(told);
  const bool process = who.starts_with("process ") || who.starts_with("processes ") || who.starts_with("a process ");
  return (process ? "in " : "on ") + who;
}

bool TellSeveral(const ToldEvents& told) {
  if (!told.ranks.empty() && !told.other_hosts.empty())
    return told.ranks.size() > 1 || told.rankless.size() > 1 || !told.rank_hosts.empty();
  if (HostsTell(told)) return told.hosts.size() > 1;
  return told.ranks.size() > 1 || (told.ranks.empty() && told.rankless.size() > 1);
}

std::string RankUnknownWords(const ToldEvents& told) {
  if (!told.ranks.empty() || told.events.empty()) return "";
  return told.rankless.size() > 1 ? "; the log does not say which ranks report it"
                                  : "; the log does not say which rank reports it";
}

std::string HostUnknownWords(const ToldEvents& told) {
  return told.ranks.empty() && told.hosts.empty() && !told.events.empty() ? "; the log does not say on which host" : "";
}

std::string OutputOfRank(const Incident& incident, const Event& event) {
  const Process* process = ProcessOf(incident, event);
  const bool placed = process && (!process->host.empty() || process->rank.known());
  // "(WorkerDict pid=40211) Traceback ...": Ray, and engines that print as it does, name a process and no host.
  if (const int64_t pid = event.pid > 0 ? event.pid : process ? process->pid : -1; pid > 0 && !placed)
    return "the rank of each process, printed together with its pid at the start; Ray keeps the output of this one in "
           "/tmp/ray/session_latest/logs/worker-*-" +
           std::to_string(pid) + ".out and .err";
  return RankOutputs(event.library);
}

std::string RankOutputs(Library library) {
  if (library == Library::mpi) return "the output with the rank before each line (mpirun --tag-output, srun --label)";
  if (library == Library::paddle) return "the log of every trainer (log/workerlog.N)";
  const bool by_torchrun = library != Library::jax && library != Library::tensorflow;
  return std::string("the output of each ") + (by_torchrun ? "rank" : "process") + " in a file of its own (" +
         (by_torchrun ? "torchrun --redirects 3, " : "") + "srun --output=%t.log)";
}

void AskWhichHost(const ToldEvents& told, RuleAnswer& answer) {
  if (told.ranks.empty() && told.hosts.empty())
    answer.open.push_back(
        {"Which host was it?", RankOutputs(told.events.empty() ? Library::not_told : told.events.front()->library) +
                                   ", and the name of its host (hostname)"});
}

void AskWhichRank(const ToldEvents& told, RuleAnswer& answer) {
  if (!told.ranks.empty()) return;
  const Library library = told.events.empty() ? Library::not_told : told.events.front()->library;
  answer.open.push_back(
      {"Which rank was it?", RankOutputs(library) + (library == Library::mpi ? "" : ", or NCCL logs with INIT lines")});
}

Finding ToldFinding(const Case& facts, std::string_view cause, const ToldEvents& told, std::string_view says) {
  const Outcome& outcome = facts.analyses.outcome;
  Finding finding;
  finding.cause = cause;
  const bool hangs = outcome.hangs() || facts.analyses.end.kind == JobEnding::hung;
  finding.status = hangs ? Status::hang : Status::crash;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::certain;
  if (outcome.ended_in_order) {
    finding.status = Status::healthy;
    finding.severity = Severity::note;
  }
  finding.ranks = told.ranks;
  for (const Rank rank : facts.standstill.waiters)
    if (!std::binary_search(told.ranks.begin(), told.ranks.end(), rank)) finding.affected_ranks.push_back(rank);
  for (const Event* event : told.events) {
    if (finding.evidence.size() == 3) break;
    finding.evidence.push_back(CiteEvent(*event, std::string(says)));
  }
  if (facts.standstill.operation) {
    finding.operation = RefOf(*facts.standstill.operation);
    finding.group = facts.standstill.group;
  }
  return finding;
}

std::set<std::string> HostsSeen(const Incident& incident) {
  std::set<std::string> hosts;
  for (const Process& process : incident.processes)
    if (!process.host.empty()) hosts.insert(process.host);
  return hosts;
}

// Rings and connections name ranks whose output is not here.
static int64_t RanksShown(const Incident& incident) {
  int64_t most = incident.world_size;
  for (const RankChannels& one : incident.rank_channels) {
    most = std::max<int64_t>(most, one.ranks);
    for (const RingOrder& order : one.orders) most = std::max(most, static_cast<int64_t>(order.ranks.size()));
    for (const ChannelUse& use : one.uses) most = std::max<int64_t>(most, std::max(use.from, use.to) + 1);
  }
  return most;
}

int64_t NodesOf(const Incident& incident) {
  int64_t nodes = -1;
  for (const Event& event : incident.events) nodes = std::max(nodes, event.As<NodeCount>().nodes);
  if (nodes > 0) return nodes;
  const auto hosts = static_cast<int64_t>(HostsSeen(incident).size());
  if (hosts > 1) return hosts;
  // One host is all there is only where every rank of the job is on it.
  const bool all = hosts == 1 && incident.world_size > 0 &&
                   static_cast<int64_t>(incident.process_of.size()) >= RanksShown(incident) &&
                   std::all_of(incident.process_of.begin(), incident.process_of.end(),
                               [&](const auto& one) { return !incident.processes[one.second].host.empty(); });
  return all ? 1 : -1;
}

std::vector<const Event*> HostSplitters(const Incident& incident) {
  std::map<std::string_view, const Event*> by_value;
  if (HostsSeen(incident).size() != 1) return {};
  for (const Event& event : incident.events)
    if (event.kind == EventKind::environment && event.As<EnvironmentSetting>().name == "NCCL_HOSTID")
      by_value.try_emplace(event.As<EnvironmentSetting>().value, &event);
  std::vector<const Event*> splitters;
  if (by_value.size() < 2 || static_cast<int64_t>(by_value.size()) < NodesOf(incident)) return splitters;
  splitters.reserve(by_value.size());
  for (const auto& [value, event] : by_value) splitters.push_back(event);
  return splitters;
}

}  // namespace tacet
