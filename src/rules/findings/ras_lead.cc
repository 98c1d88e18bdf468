// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/ras_lead.h"

#include <string>
#include <utility>

#include "analysis/printed/told_laggards.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/words.h"

namespace tacet {

bool SpeakOfRasLead(const Case& facts, Diagnosis& diagnosis) {
  const ToldLead lead = FindToldLead(facts.incident);
  if (!lead) return false;
  const std::string leaders = RankWords(lead.leaders), many = std::to_string(lead.behind) + " other ranks";
  Finding finding;
  finding.severity = Severity::note;
  finding.headline = "At the time of the RAS report, " + leaders + " had launched " + std::to_string(lead.most) + " " +
                     lead.operation + " operations and " + many + " " + std::to_string(lead.least) +
                     (lead.stands ? "; no rank has launched anything since the previous report"
                                  : "; a running job can look like this at any moment");
  finding.explanation = "The report names the ranks that are ahead, not those that are behind.";
  finding.evidence.push_back({lead.source, "", "how far most ranks were"});
  finding.fix = {
      "Take a second RAS report a few seconds later (ncclras -v), and run the diagnosis on both: counts that do not "
      "change are those of a hang.",
      "If it hangs: take the stacks of the ranks that are behind (py-spy dump --pid PID); what they do instead of " +
          lead.operation + " is the reason. Look at what " + leaders + (lead.leaders.size() == 1 ? " does" : " do") +
          " differently from the others as well."};
  diagnosis.open.push_back(
      {"Is the job making progress?", "a second RAS report a few seconds later (ncclras -f json)"});
  diagnosis.headline = finding.headline;
  diagnosis.findings.insert(diagnosis.findings.begin(), std::move(finding));
  return true;
}

bool SpeakOfRasSilence(const Case& facts, Diagnosis& diagnosis) {
  const ToldEvents told =
      CollectTold(facts, [](const Event& event) { return event.kind == EventKind::ras_rank_unresponsive; });
  if (!told) return false;
  Finding finding;
  finding.severity = Severity::note;
  finding.headline = "NCCL RAS gets no data from " + TellerWords(told) +
                     ": a process that is dead, stopped or only slow to answer looks like this";
  finding.evidence.push_back(CiteEvent(*told.events.front(), "what RAS reports about it"));
  finding.fix = {
      "Take a second RAS report a few seconds later (ncclras -v): a rank that is missing again is not running.",
      "On its host: ps (state T is stopped, D waits in the kernel), py-spy dump --pid PID, dmesg -T."};
  diagnosis.open.push_back({"Does it run?", "a second RAS report, and the state of the process on its host (ps)"});
  diagnosis.headline = finding.headline;
  diagnosis.findings.insert(diagnosis.findings.begin(), std::move(finding));
  return true;
}

}  // namespace tacet
