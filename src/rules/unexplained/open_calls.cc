// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/open_calls.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "model/subject.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

constexpr size_t kMostCallPlaces = 3;

// The number that RCCL's trace gives a call. NCCL's log prints one of this name, too, but it counts plans of kernels.
std::string OpCountWords(const Call& call) {
  char text[24];
  std::snprintf(text, sizeof text, "opCount %x", call.record);
  return text;
}

Subject OwnerOfCalls(const Incident& incident, const CallStream& stream) {
  Subject subject;
  subject.rank = stream.rank;
  if (stream.speaker >= incident.processes.size()) return subject;
  subject.pid = incident.processes[stream.speaker].pid;
  subject.host = incident.processes[stream.speaker].host;
  return subject;
}

struct CallPlace {
  bool started = false;
  const Call* call = nullptr;
  const CallStream* stream = nullptr;
  std::vector<Subject> owners;
};

std::vector<CallPlace> PlacesOf(const Incident& incident) {
  std::map<std::tuple<bool, OpKind, uint32_t>, CallPlace> places;
  for (const CallStream& stream : incident.streams) {
    if (stream.source != CallSource::nccl_log || stream.calls.empty()) continue;
    const auto open = std::find_if(stream.calls.rbegin(), stream.calls.rend(),
                                   [](const Call& call) { return call.state == CallState::started; });
    const bool started = open != stream.calls.rend();
    const Call& call = started ? *open : stream.calls.back();
    if (call.state == CallState::completed || call.kind == OpKind::unknown) continue;
    const uint32_t number = started ? call.record : stream.from_start ? call.seq : 0;
    CallPlace& place = places[{!started, call.kind, number}];
    if (place.owners.empty()) {
      place.started = started;
      place.call = &call;
      place.stream = &stream;
    }
    place.owners.push_back(OwnerOfCalls(incident, stream));
  }
  std::vector<CallPlace> out;
  for (auto& [key, place] : places) out.push_back(std::move(place));
  return out;
}

// "all_reduce (opCount 31c)"; "all_reduce #812" where the log holds all calls from the first on; else "all_reduce".
std::string CallWithNumber(const CallPlace& place) {
  const std::string name(Name(place.call->kind));
  if (place.started) return name + " (" + OpCountWords(*place.call) + ")";
  return place.stream->from_start ? name + " #" + std::to_string(place.call->seq) : name;
}

std::string WordsOfPlace(const CallPlace& place) {
  const std::string call = CallWithNumber(place);
  const bool one = place.owners.size() == 1;
  const std::string who = SubjectWords(place.owners);
  if (place.started) return who + (one ? " is" : " are") + " inside " + call + ", whose kernel started and did not end";
  return "the last call on record of " + who + " is " + call;
}

}  // namespace

OpenCalls FindOpenCalls(const Case& facts) {
  OpenCalls out;
  const std::vector<CallPlace> places = PlacesOf(facts.incident);
  if (places.size() > kMostCallPlaces) return out;
  for (const CallPlace& place : places) {
    out.words += (out.words.empty() ? "" : "; ") + WordsOfPlace(place);
    out.evidence.push_back({{place.stream->file, place.call->line, place.call->offset},
                            CallWithNumber(place),
                            place.started ? "its kernel started and did not end" : "the last call on record"});
    for (const Subject& owner : place.owners)
      if (place.started && owner.rank.known()) out.ranks.push_back(owner.rank);
  }
  if (places.size() == 1 && places.front().started) out.number = OpCountWords(*places.front().call);
  return out;
}

}  // namespace tacet
