// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_owners.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/text_scan.h"

namespace tacet {
namespace {

bool IsError(const Event& event) {
  return event.kind == EventKind::exception || event.kind == EventKind::cuda_error ||
         event.kind == EventKind::nccl_error || event.kind == EventKind::nccl_warning ||
         event.kind == EventKind::ddp_unused_parameters || event.kind == EventKind::ddp_marked_twice ||
         event.kind == EventKind::shared_memory_full || event.kind == EventKind::disk_full ||
         event.kind == EventKind::port_in_use || event.kind == EventKind::peer_access_failed ||
         event.kind == EventKind::fabric_down || event.kind == EventKind::rdma_failed ||
         event.kind == EventKind::connect_failed || event.kind == EventKind::model_mismatch;
}

bool IsOwnerless(const Event& event) { return event.speaker == kNobody && !event.rank.known() && IsError(event); }

// What ranks that fail alike have in common: the kind of error and its first line up to the first number.
std::string Gist(const Event& event) {
  return event.As<Raised>().type + '/' +
         event.text.substr(0, std::min(event.text.find_first_of("0123456789\n"), size_t{200}));
}

// "-- Process 3 terminated with the following error:" what the process raised follows under its name; what stands above
// was printed by any of them.
bool IsQuotedBelow(const Event& event) { return Contains(event.text, "terminated with the following error"); }

void Give(Event& event, Rank rank) { event.rank = rank; }

// "terminate called after throwing an instance of 'c10::Error'", which one process alone printed.
Event* OnlyAbort(Fragment& fragment) {
  Event* only = nullptr;
  for (Event& event : fragment.events) {
    if (event.kind != EventKind::abort_signal || !Contains(event.text, "terminate called")) continue;
    if (only || event.text.ends_with(" times)") || event.rank.known() || event.speaker != kNobody) return nullptr;
    only = &event;
  }
  return only;
}

// torchrun lists one process that SIGABRT ended, and one alone says that it aborts: they are the same, and what() tells
// of it.
void GiveAbort(Fragment& fragment) {
  constexpr int64_t kSigabrt = -6;
  constexpr uint32_t kLinesOfWhat = 2;
  std::set<Rank> ended;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::process_exited && event.rank.known() && event.As<ProcessEnd>().code == kSigabrt)
      ended.insert(event.rank);
  Event* abort = ended.size() == 1 ? OnlyAbort(fragment) : nullptr;
  if (!abort) return;
  Give(*abort, *ended.begin());
  for (Event& event : fragment.events) {
    const bool thrown = event.kind == EventKind::mismatch_report ||
                        (event.kind == EventKind::exception && event.As<Raised>().type == abort->As<Abort>().reason);
    const bool below = event.source.line > abort->source.line && event.source.line <= abort->source.line + kLinesOfWhat;
    if (thrown && below && !event.rank.known() && event.speaker == kNobody) Give(event, abort->rank);
  }
}

Rank OwnerOf(const Fragment& fragment, const Event& event) {
  if (event.rank.known() || event.speaker >= fragment.speakers.size()) return event.rank;
  return fragment.speakers[event.speaker].rank;
}

// A traceback without a name, and then a watchdog's line with one that repeats the error: "[Rank 1] NCCL watchdog
// thread terminated with exception: CUDA error: uncorrectable ECC error encountered". Where one rank alone tells it
// under its name, the other line is the same rank's.
void JoinRepeatedErrors(Fragment& fragment) {
  std::map<std::string, std::set<Rank>> owners;
  bool nameless = false;
  for (const Event& event : fragment.events) {
    if (event.kind != EventKind::cuda_error) continue;
    const Rank rank = OwnerOf(fragment, event);
    nameless |= !rank.known();
    if (rank.known()) owners[event.As<CudaError>().words].insert(rank);
  }
  if (!nameless || owners.empty()) return;
  std::map<uint32_t, Rank> lines;
  for (Event& event : fragment.events) {
    if (event.kind != EventKind::cuda_error || OwnerOf(fragment, event).known()) continue;
    const auto found = owners.find(event.As<CudaError>().words);
    if (found == owners.end() || found->second.size() != 1) continue;
    Give(event, *found->second.begin());
    lines.emplace(event.source.line, event.rank);
  }
  for (Event& event : fragment.events)
    if (const auto found = lines.find(event.source.line);
        found != lines.end() && IsError(event) && !OwnerOf(fragment, event).known())
      Give(event, found->second);
}

// What the traceback above tells of a port that could not be opened: the store of the rendezvous, which rank 0 hosts.
void TellPorts(Fragment& fragment) {
  for (Event& port : fragment.events) {
    if (port.kind != EventKind::port_in_use) continue;
    for (const Event& event : fragment.events) {
      if (event.kind != EventKind::exception || event.source.line != port.source.line) continue;
      auto& taken = port.Make<PortTaken>();
      taken.of_store |= event.As<Raised>().during == Activity::setup;
      taken.of_spawn |= event.As<Raised>().first_only;
    }
  }
}

// A program that ends while all others still train, right behind an error without a name: it is its own.
const Event* FirstToLeave(const Fragment& fragment) {
  const Event* first = nullptr;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::program_left && OwnerOf(fragment, event).known() &&
        (!first || event.source.line < first->source.line))
      first = &event;
  if (!first) return nullptr;
  const bool others_failed = std::any_of(fragment.events.begin(), fragment.events.end(), [&](const Event& event) {
    const bool fails = IsError(event) || event.kind == EventKind::connection_lost ||
                       event.kind == EventKind::store_lost || event.kind == EventKind::watchdog_timeout;
    return fails && event.source.line < first->source.line && OwnerOf(fragment, event).known();
  });
  const bool others_fail_later = std::any_of(fragment.events.begin(), fragment.events.end(), [&](const Event& event) {
    return event.kind == EventKind::connection_lost && event.source.line > first->source.line;
  });
  return !others_failed && others_fail_later ? first : nullptr;
}

// "node7: Test NCCL failure common.cu:1285 ...", and the same of node8: mpirun names the first of them that exits.
bool TestFailsOnSeveralHosts(const Fragment& fragment) {
  std::set<std::string> hosts;
  for (const Event& event : fragment.events)
    if (const size_t at = event.text.find(": Test NCCL failure "); at != std::string::npos)
      hosts.insert(event.text.substr(0, at));
  return hosts.size() > 1;
}

// The number that the message gives its own process: "expects same model across all ranks, but Rank 2 has 8 params".
// Empty unless each of these lines tells another one of the ranks that raised.
std::map<uint32_t, Rank> NumbersTold(const Fragment& fragment, const std::vector<size_t>& errors,
                                     const std::set<Rank>& raised) {
  std::map<uint32_t, Rank> numbers;
  std::set<Rank> told;
  for (const size_t i : errors) {
    const Event& event = fragment.events[i];
    if (event.kind != EventKind::model_mismatch || !raised.contains(Rank{event.group_rank.value})) continue;
    numbers.emplace(event.source.line, Rank{event.group_rank.value});
    told.insert(Rank{event.group_rank.value});
  }
  return told == raised && numbers.size() == raised.size() ? numbers : std::map<uint32_t, Rank>();
}

// "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 5; 15.78 GiB total capacity" and "GPU 5 has a total capacity".
int32_t DeviceOf(const Event& event) {
  for (const std::string_view key : {"(GPU ", ". GPU "})
    if (const auto device = IntAfter<int32_t>(event.text, key)) return *device;
  return -1;
}

}  // namespace

void GiveOwners(Fragment& fragment) {
  TellPorts(fragment);
  JoinRepeatedErrors(fragment);
  GiveAbort(fragment);
  std::set<Rank> raised;
  for (const Event& event : fragment.events)
    if (event.kind == EventKind::process_exited && event.rank.known() && event.As<ProcessEnd>().code > 0 &&
        !IsQuotedBelow(event))
      raised.insert(event.rank);
  std::vector<size_t> errors, exceptions;
  std::set<std::string> gists;
  for (size_t i = 0; i < fragment.events.size(); ++i) {
    if (!IsOwnerless(fragment.events[i])) continue;
    errors.push_back(i);
    if (fragment.events[i].kind != EventKind::exception) continue;
    exceptions.push_back(i);
    gists.insert(Gist(fragment.events[i]));
  }
  if (const Event* first = raised.empty() && !errors.empty() ? FirstToLeave(fragment) : nullptr) {
    const Rank rank = OwnerOf(fragment, *first);
    const uint32_t line = first->source.line;
    for (const size_t i : errors)
      if (fragment.events[i].source.line < line) Give(fragment.events[i], rank);
  }
  if (raised.empty() || errors.empty()) return;
  // Who has told its own error under its name did not also print those that stand without one.
  const bool told = std::any_of(fragment.events.begin(), fragment.events.end(), [&](const Event& event) {
    return IsError(event) && event.kind != EventKind::nccl_warning &&
           (raised.contains(event.rank) ||
            (event.speaker < fragment.speakers.size() && raised.contains(fragment.speakers[event.speaker].rank)));
  });
  if (told && raised.size() == 1) return;
  if (raised.size() == 1) {
    const bool several = TestFailsOnSeveralHosts(fragment);
    for (const size_t i : errors)
      if (!several || fragment.events[i].kind != EventKind::nccl_error) Give(fragment.events[i], *raised.begin());
    return;
  }
  if (gists.size() == 1 && exceptions.size() == raised.size()) {
    const std::map<uint32_t, Rank> numbers = NumbersTold(fragment, errors, raised);
    auto rank = raised.begin();
    for (const size_t i : exceptions) {
      const auto own = numbers.find(fragment.events[i].source.line);
      const Rank owner = own == numbers.end() ? *rank : own->second;
      for (const size_t e : errors)  // what the same line says in other words
        if (fragment.events[e].source.line == fragment.events[i].source.line) Give(fragment.events[e], owner);
      ++rank;
    }
    return;
  }
  // The ranks of one node count like its devices.
  const int32_t first = raised.begin()->value;
  for (const size_t i : errors) {
    const int32_t device = DeviceOf(fragment.events[i]);
    if (device < 0 || first >= 8 || !raised.contains(Rank{device})) continue;
    const uint32_t line = fragment.events[i].source.line;
    for (const size_t e : errors)
      if (fragment.events[e].source.line == line) Give(fragment.events[e], Rank{device});
  }
}

}  // namespace tacet
