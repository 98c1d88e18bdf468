// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/init_finding.h"

#include <utility>

namespace tacet {

bool IsStoreUnreachable(const Event& event) {
  return event.kind == EventKind::store_unreachable || event.Means(Meaning::store_unreachable);
}

InitView ReadInit(const Case& facts) {
  InitView view;
  for (const Event& event : facts.incident.events) {
    if (IsStoreUnreachable(event)) {
      view.unreachable.insert(event.rank);
      if (!view.no_store) view.no_store = &event;
    }
    switch (event.kind) {
      case EventKind::init_started: view.started.insert(event.rank); break;
      case EventKind::init_completed: view.completed.insert(event.rank); break;
      case EventKind::rendezvous_incomplete:
        if (!view.incomplete) view.incomplete = &event;
        view.failed.insert(event.rank);
        break;
      case EventKind::store_wait_timeout:
      case EventKind::store_unreachable:
      case EventKind::nccl_error: view.failed.insert(event.rank); break;
      case EventKind::exception:
        if (event.Means(Meaning::setup_failed)) view.failed.insert(event.rank);
        break;
      default: break;
    }
  }
  for (const CallStream& stream : facts.incident.streams) view.issued_any |= !stream.calls.empty();
  view.started.erase(Rank{});
  view.completed.erase(Rank{});
  view.failed.erase(Rank{});
  view.unreachable.erase(Rank{});
  return view;
}

std::vector<const Event*> FindMissingGpus(const Case& facts) {
  std::vector<const Event*> raised;
  for (const auto& [rank, life] : facts.analyses.life.ranks) {
    if (!life.exception || life.exception->As<Raised>().refusal != "device-ordinal") continue;
    if (rank.value == 0) return {};
    raised.push_back(life.exception);
  }
  return raised;
}

Finding InitFinding(std::string_view cause, std::vector<Rank> ranks) {
  Finding finding;
  finding.cause = cause;
  finding.severity = Severity::critical;
  finding.status = Status::crash;
  finding.confidence = Confidence::certain;
  finding.ranks = std::move(ranks);
  return finding;
}

std::string_view TargetOf(const Event& event) {
  if (event.kind == EventKind::store_unreachable) return event.As<StoreUnreachable>().address;
  if (event.kind == EventKind::connect_failed) return event.As<ConnectFailure>().address;
  return event.As<Warning>().object;
}

const Event* FindWarning(const Case& facts, std::string_view id) {
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::nccl_warning && event.As<Warning>().id == id) return &event;
  return nullptr;
}

std::string OutputsOf(const Incident& incident, const std::vector<Rank>& ranks) {
  constexpr size_t kMostFiles = 3;
  std::vector<std::string> names;
  for (const Rank rank : ranks) {
    const auto process = incident.process_of.find(rank);
    if (process == incident.process_of.end()) continue;
    for (const FileId file : incident.processes[process->second].files) {
      const InputFile& input = incident.files[static_cast<size_t>(file)];
      if (input.rank == rank && IsReadAs(input, "torch_log")) names.push_back(input.path);
    }
  }
  if (names.empty() || names.size() > kMostFiles) return "";
  std::string words = ranks.size() == 1 ? "; its output is " : "; their output is ";
  for (size_t i = 0; i < names.size(); ++i) words += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + names[i];
  return words;
}

std::vector<std::string> StepsForSeveral(const std::string& outputs) {
  return {"See what the missing ranks do instead: their stacks and output (imports, data preparation, a failed node)" +
              outputs + ".",
          "Check that the launcher started them on every node: number of nodes, tasks per node, WORLD_SIZE, the same "
          "MASTER_ADDR and MASTER_PORT.",
          "If they are only slow to join: raise init_process_group(timeout=...), and move slow preparation after it."};
}

std::vector<std::string> StepsForOne(const std::string& outputs) {
  if (outputs.empty()) return {};
  return {"See what the missing rank does instead (imports, data preparation, a failed node)" + outputs + ".",
          "Check that the launcher started it: number of nodes, tasks per node, WORLD_SIZE.",
          "If it is only slow to join: raise init_process_group(timeout=...), and move slow preparation after it."};
}

bool FailedItself(const RankLife& life) {
  return life.exception || life.consequence || life.init_error || life.vanished || life.cuda_oom || life.oom_killed ||
         life.segfault || life.lost_peer || life.timeout;
}

bool LeftFiles(const Case& facts, Rank rank) {
  const RankLife* life = facts.analyses.life.Of(rank);
  return life && life->any();
}

}  // namespace tacet
