// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/passed_trouble.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>

#include "rules/words/words.h"

namespace tacet {
namespace {

bool Warns(const Event& event, std::string_view id) {
  return event.kind == EventKind::nccl_warning && event.As<Warning>().id == id;
}

std::string HowOften(int64_t times) {
  return times <= 1 ? "" : times == 2 ? " twice" : " " + std::to_string(times) + " times";
}

std::string PlaceOfPort(const Incident& incident, const Event& event) {
  const std::string& port = event.As<Warning>().object;
  const std::string host = event.speaker < incident.processes.size() ? incident.processes[event.speaker].host : "";
  return (port.empty() ? std::string("a port of an adapter") : "port " + port) + (host.empty() ? "" : " of " + host);
}

// Of each port once, however many processes use it.
void AddPorts(const Incident& incident, std::vector<std::string>& out) {
  std::map<std::string, std::map<uint32_t, int64_t>> downs;  // by port and by process
  for (const Event& event : incident.events)
    if (Warns(event, "ib-async-fatal") && IsUpAgain(incident, event))
      ++downs[PlaceOfPort(incident, event)][event.speaker];
  for (const auto& [port, tellers] : downs) {
    int64_t times = 0;
    for (const auto& [speaker, told] : tellers) times = std::max(times, told);
    out.push_back(port + " went down and came back up" + HowOften(times));
  }
}

std::string Attempts(int64_t times) { return times == 1 ? "1 attempt" : std::to_string(times) + " attempts"; }

void AddStoreRetries(const Incident& incident, std::vector<std::string>& out) {
  std::set<std::string> addresses;
  int64_t times = 0;
  for (const LogOutline& outline : incident.outlines)
    for (const SeenWarning& one : outline.harmless)
      if (one.what == HarmlessWarning::store_retried) times += one.times, addresses.insert(one.object);
  if (times == 0) return;
  const bool one = addresses.size() == 1 && !addresses.begin()->empty();
  out.push_back(Attempts(times) + " to connect to the store" + (one ? " at " + *addresses.begin() : "") +
                " failed, which is normal while it starts");
}

void AddNcclRetries(const Incident& incident, std::vector<std::string>& out) {
  std::map<uint32_t, int64_t> tries;  // by process; its first event counts the others
  for (const Event& event : incident.events)
    if (Warns(event, "connect-retry"))
      tries[event.speaker] = std::max({tries[event.speaker], int64_t{1}, event.As<Warning>().times});
  int64_t all = 0;
  for (const auto& [speaker, times] : tries) all += times;
  if (all > 0)
    out.push_back(Attempts(all) + " by NCCL to connect to a peer failed and " + (all == 1 ? "was" : "were") +
                  " retried");
}

// Of several outputs the highest number: each process counts its own.
void AddAllocatorRetries(const Incident& incident, std::vector<std::string>& out) {
  int64_t times = 0;
  for (const LogOutline& outline : incident.outlines)
    for (const SeenWarning& one : outline.harmless)
      if (one.what == HarmlessWarning::allocator_retried) times = std::max(times, one.times);
  if (times > 0)
    out.push_back("GPU memory was nearly full: PyTorch's allocator freed its cache and retried" +
                  (times == 1 ? " once" : HowOften(times)) + ", which slows steps down");
}

// A scaler of gradients skips such steps, and the job goes on.
void AddPassedNan(const Incident& incident, std::vector<std::string>& out) {
  const auto& records = incident.training;
  // A rank that prints NaN in every line, and others that never do: stages of a pipeline without a loss.
  std::vector<Rank> never, always;
  bool sometimes = false;
  for (const LogOutline& outline : incident.outlines)
    for (const FigureSeries& series : outline.series) {
      if (series.kind != FigureSeries::Kind::loss || series.held_out || series.rank < 0) continue;
      const TrainingValue& value = series.value;
      sometimes |= value.finite_since > 0 || (value.run > 0 && value.run < value.lines);
      (value.run == value.lines ? always : never).push_back(Rank{series.rank});
    }
  // A rank with two figures of that name, one of them finite, does not print NaN in every line.
  std::erase_if(always, [&](Rank rank) { return std::find(never.begin(), never.end(), rank) != never.end(); });
  if (!always.empty() && !never.empty() && !sometimes) {
    out.push_back(RankWords(always) + (always.size() == 1 ? " prints" : " print") +
                  " a loss of NaN in every line, and " + RankWords(never) + (never.size() == 1 ? " does" : " do") +
                  " not, which is normal for pipeline stages without a loss");
    return;
  }
  if (std::any_of(records.begin(), records.end(), [](const TrainingRecord& one) { return one.loss.finite_since > 0; }))
    out.emplace_back("the loss was NaN or infinite for a few steps, and is finite again now");
}

}  // namespace

bool IsUpAgain(const Incident& incident, const Event& error) {
  return std::any_of(incident.events.begin(), incident.events.end(), [&](const Event& event) {
    return Warns(event, "ib-port-active") && event.speaker == error.speaker && event.source.file == error.source.file &&
           event.source.line > error.source.line && event.As<Warning>().object == error.As<Warning>().object;
  });
}

std::vector<std::string> PassedTroubles(const Incident& incident) {
  std::vector<std::string> out;
  AddStoreRetries(incident, out);
  AddNcclRetries(incident, out);
  AddPorts(incident, out);
  AddAllocatorRetries(incident, out);
  AddPassedNan(incident, out);
  return out;
}

std::string PassedWords(const std::vector<std::string>& passed) {
  std::string words;
  for (const std::string& one : passed) words += (words.empty() ? "" : "; ") + one;
  return words;
}

std::string NoFaultReported(const std::vector<std::string>& passed) {
  return passed.empty() ? "no line reports a fault" : "no other line reports a fault";
}

}  // namespace tacet
