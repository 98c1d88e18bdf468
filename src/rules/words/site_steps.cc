// SPDX-License-Identifier: Apache-2.0
#include "rules/words/site_steps.h"

#include <algorithm>

#include "rules/words/hang_capture.h"
#include "rules/words/words.h"

namespace tacet {

static bool HasFlightRecords(const Incident& incident) {
  return std::any_of(incident.streams.begin(), incident.streams.end(),
                     [](const CallStream& stream) { return stream.source == CallSource::flight_recorder; });
}

std::string PlainStep(const Incident& incident, std::string_view step) {
  if (!step.starts_with(kFindTheCall) || !HasFlightRecords(incident)) return std::string(step);
  return "Find the call in the program: " + std::string(step.substr(kFindTheCall.size()));
}

void NameCallInSteps(const Case& facts, const Call& call, const std::vector<Rank>& ranks, Finding& finding) {
  const Rule* rule = FindRule(finding.cause);
  if (!rule || !finding.fix.empty()) return;
  const std::string site = CallSiteWords(facts.incident, call);
  finding.fix.reserve(rule->fix.size());
  for (const std::string_view step : rule->fix) {
    if (!step.starts_with(kFindTheCall)) {
      finding.fix.emplace_back(step);
      continue;
    }
    const std::string_view question = step.substr(kFindTheCall.size());
    std::string named = "Look at " + site;
    if (site.empty())
      named = "Find where " + RankWords(ranks) + (ranks.size() == 1 ? " issues " : " issue ") + ShapeWords(call) +
              (HasFlightRecords(facts.incident)
                   ? ""
                   : "; a flight record (" + std::string(kRecorderSetting) + ") names the line");
    finding.fix.push_back(named.append(site.empty() ? ". " : ": ").append(question));
    if (std::string& last = finding.fix.back(); site.empty()) {
      const size_t begin = last.size() - question.size();
      if (last[begin] >= 'a' && last[begin] <= 'z') last[begin] = static_cast<char>(last[begin] - 'a' + 'A');
    }
  }
}

}  // namespace tacet
