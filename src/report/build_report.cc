// SPDX-License-Identifier: Apache-2.0
#include "report/build_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "analysis/timeouts/timeout_census.h"
#include "model/assembly/file_rank.h"
#include "report/rank_table.h"
#include "rules/why.h"

namespace tacet {
namespace {

std::vector<int> Numbers(const std::vector<Rank>& ranks) {
  std::vector<int> numbers;
  for (const Rank rank : ranks)
    if (rank.known()) numbers.push_back(rank.value);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

ReportGroup GroupOf(const Group& group) {
  ReportGroup out{group.name, group.description, Numbers(group.members)};
  if (out.name.empty() && group.comm_id != 0) out.name = group.Label();
  return out;
}

CitedEvidence Cite(const Incident& incident, const EvidenceItem& item) {
  CitedEvidence cited{"", item.source.line, item.source.offset, item.excerpt, item.says, ""};
  const auto file = static_cast<uint32_t>(item.source.file);
  if (file < incident.files.size()) cited.file = incident.files[file].path;
  return cited;
}

std::vector<ReportSubject> SubjectsFor(const std::vector<Subject>& subjects) {
  std::vector<ReportSubject> out;
  out.reserve(subjects.size());
  for (const Subject& subject : subjects)
    out.push_back({subject.rank.known() ? subject.rank.value : -1, subject.host, subject.pid, subject.device});
  return out;
}

ReportFinding FindingOf(const Incident& incident, const Finding& finding) {
  ReportFinding out;
  out.cause = finding.cause;
  out.title = finding.title;
  if (const Rule* rule = FindRule(finding.cause); rule && out.title.empty()) out.title = rule->title;
  if (out.title.empty()) out.title = "Cannot tell";
  out.status = finding.status;
  out.severity = finding.severity;
  out.confidence = finding.confidence;
  out.ranks = Numbers(finding.ranks);
  out.affected_ranks = Numbers(finding.affected_ranks);
  out.subjects = SubjectsFor(finding.subjects);
  out.explained_by = finding.explained_by;
  if (finding.group != GroupIndex::none) out.group = GroupOf(incident.groups[static_cast<uint32_t>(finding.group)]);
  out.operation = finding.operation;
  out.headline = finding.headline;
  out.explanation = finding.explanation;
  if (const Rule* rule = FindRule(finding.cause);
      rule && finding.explanation == std::string(rule->meaning) + " " + std::string(rule->look_alikes)) {
    out.meaning = rule->meaning;
    out.look_alikes = rule->look_alikes;
  }
  for (const EvidenceItem& item : finding.evidence) {
    // The same said of the same line again, in other words of the message, adds nothing. Such items stand close
    // together, and a finding about thousands of ranks has thousands of them.
    constexpr std::ptrdiff_t kNear = 32;
    const EvidenceItem* const first = finding.evidence.data();
    const bool again = item.source.line > 0 &&
                       std::any_of(&item - std::min(kNear, &item - first), &item, [&](const EvidenceItem& one) {
                         return one.source.file == item.source.file && one.source.line == item.source.line &&
                                one.says == item.says && one.excerpt.find(item.excerpt) != std::string::npos;
                       });
    if (!again) out.evidence.push_back(Cite(incident, item));
  }
  out.fix = finding.fix;
  out.prevent = finding.prevent;
  out.job = incident.label;
  return out;
}

ReportJob JobOf(const Incident& incident, const Diagnosis& diagnosis) {
  ReportJob job;
  job.label = incident.label;
  job.status = diagnosis.status;
  job.cause = diagnosis.cause;
  job.culprits = Numbers(diagnosis.ranks);
  job.world_size = incident.world_size;
  job.world_told = incident.world_told;
  // A group of the job is no larger than the job.
  if (!job.world_told)
    for (const TimedOutCall& call : CountTimeouts(incident).calls)
      job.world_size = std::max<int64_t>(job.world_size, call.group_size);
  job.ranks_seen = Numbers(incident.RanksSeen());
  std::set<std::string> hosts;
  for (const Process& process : incident.processes)
    if (!process.host.empty()) hosts.insert(process.host);
  job.hosts.assign(hosts.begin(), hosts.end());
  // A process group and its communicator are one group to a reader: nameless twins of named groups are left out.
  std::set<std::pair<std::string, std::vector<int>>> seen;
  for (const Group& group : incident.groups) {
    ReportGroup one = GroupOf(group);
    if (seen.insert({group.description + "|" + group.name, one.ranks}).second) job.groups.push_back(std::move(one));
  }
  std::map<std::string, std::string> versions;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::nccl_version && !event.As<Version>().number.empty())
      versions.emplace("nccl", event.As<Version>().number);
  job.versions.assign(versions.begin(), versions.end());
  return job;
}

void AddInputs(const Incident& incident, Report& report) {
  for (const InputFile& file : incident.files)
    report.inputs.push_back({file.path, file.format, file.rank.value, file.bytes.total, file.bytes.understood,
                             file.bytes.ignored, file.bytes.not_understood});
  std::map<std::tuple<std::string, std::string>, size_t> folded;
  for (const Diagnostic& diagnostic : incident.diagnostics) {
    static constexpr const char* kSeverities[] = {"note", "warning", "error"};
    const auto file = static_cast<uint32_t>(diagnostic.source.file);
    const std::string path = file < incident.files.size() ? incident.files[file].path : "";
    const auto [found, added] = folded.try_emplace({diagnostic.code, diagnostic.message}, report.diagnostics.size());
    if (added)
      report.diagnostics.push_back({kSeverities[static_cast<size_t>(diagnostic.severity)],
                                    diagnostic.code,
                                    diagnostic.message,
                                    path,
                                    diagnostic.hint,
                                    diagnostic.source.line,
                                    0,
                                    {}});
    ReportDiagnostic& told = report.diagnostics[found->second];
    ++told.count;
    const bool known = !told.files.empty() && told.files.back() == path;  // a file's own follow each other
    if (!path.empty() && !known && told.files.size() < ReportDiagnostic::kMostFiles) told.files.push_back(path);
  }
}

void AddWaits(const JudgedJob& job, Report& report) {
  // The picture needs who waits for whom, not every pair: from each waiter to each missing rank, up to a bound.
  constexpr size_t kMost = 4096;
  if (job.diagnosis.status == Status::healthy) return;
  for (const SourceAnalysis* source : SourcesOfVerdict(*job.incident, *job.analyses, job.diagnosis)) {
    for (const BlockedOperation& operation : source->waits.operations) {
      const std::string group = " on " + job.incident->groups[static_cast<uint32_t>(operation.group)].Label();
      for (const Rank from : operation.waiters) {
        if (report.waits.size() >= kMost) return;
        // Of several that a host issued ahead it waits in the first; the missing rank may have issued some of them.
        const auto first = source->waits.blocked_in.find(from);
        const bool ahead = first != source->waits.blocked_in.end() && first->second->group == operation.group &&
                           first->second->kind == operation.call->kind && first->second->seq < operation.call->seq;
        const Call& call = ahead ? *first->second : *operation.call;
        const std::string where = std::string(Name(call.kind)) + " #" + std::to_string(call.seq) + group;
        for (const Missing& missing : operation.missing)
          if (from != missing.rank && report.waits.size() < kMost)
            report.waits.push_back({from.value, missing.rank.value, where});
      }
    }
    if (!report.waits.empty()) return;
  }
}

ReportWhy WhyOf(const JudgedJob& job) {
  const Why why = ExplainVerdict({*job.incident, *job.analyses, *job.standstill}, job.diagnosis);
  ReportWhy out;
  out.status = Cite(*job.incident, why.status);
  for (const WhyClaim& claim : why.claims)
    out.claims.push_back({claim.rank.known() ? claim.rank.value : -1, claim.supports, claim.reading, claim.strength,
                          claim.witness, Cite(*job.incident, claim.because)});
  for (const Rival& rival : why.rivals)
    out.rivals.push_back({rival.cause, Numbers(rival.ranks), rival.found, rival.because});
  return out;
}

// "Job a: ", "Jobs a, b and 3 more: ": where a question is open.
std::string JobWords(const std::vector<std::string>& labels) {
  constexpr size_t kMost = 3;
  std::string words = labels.size() == 1 ? "Job " : "Jobs ";
  const size_t shown = labels.size() > kMost ? kMost - 1 : labels.size();
  for (size_t i = 0; i < shown; ++i) words += (i == 0 ? "" : i + 1 == labels.size() ? " and " : ", ") + labels[i];
  if (shown < labels.size()) words += " and " + std::to_string(labels.size() - shown) + " more";
  return words + ": ";
}

// Which job's verdict counts: the worst status, then the surer one.
auto Badness(const JudgedJob& job) {
  static constexpr int kOrder[] = {0, 1, 2, 4, 5, 6, 3};  // hang, crash, corrupt, slow, degraded, healthy, undetermined
  return std::tuple(kOrder[static_cast<size_t>(job.diagnosis.status)], job.diagnosis.confidence);
}

// What the rank of this process, and of others of the same kind, is taken from.
std::string AssumedRankWords(const Incident& incident, const Process& process) {
  const bool named = std::any_of(process.files.begin(), process.files.end(), [&](FileId file) {
    return RankFromPath(incident.files[static_cast<uint32_t>(file)].path) == process.rank;
  });
  const auto& processes = incident.processes;
  const bool one =
      std::count_if(processes.begin(), processes.end(), [&](const Process& other) {
        return other.rank.known() && other.rank_certainty == Certainty::assumed && other.rank_clue == process.rank_clue;
      }) == 1;
  const bool all = std::all_of(processes.begin(), processes.end(), [&](const Process& other) {
    return !other.rank.known() || (other.rank_certainty == Certainty::assumed && other.rank_clue == process.rank_clue);
  });
  const std::string who = one ? "rank " + std::to_string(process.rank.value) + " is" : "ranks are";
  switch (named && process.rank_clue == RankClue::not_told ? RankClue::file_name : process.rank_clue) {
    case RankClue::file_name:
      if (one) return who + " taken from the name of its file: the file itself does not state it";
      return all ? "the ranks are taken from the names of the files: the files themselves do not state them"
                 : "the ranks of some files are taken from their names: the files themselves do not state them";
    case RankClue::label:
      return who +
             " taken from the label in front of the lines, which may be the number of a task; no other line confirms "
             "it";
    case RankClue::message:
      return who + " taken from [Rank N] in messages, which may be the rank within a group; no other line confirms it";
    case RankClue::local_rank:
      return who + " taken from the local rank; in a multi-node job the real " + (one ? "rank" : "ranks") +
             " may differ";
    case RankClue::not_told: break;
  }
  return who + " inferred: no line states " + (one ? "it" : "them");
}

// Another line says the same: a report that lists all ranks, or "rank 2/4" of as many processes as there are. Where
// local ranks count all of the job, they are its ranks.
bool IsConfirmed(const Incident& incident, const Process& process) {
  const auto lists = [&](const Event& event) {
    const auto& waiting = event.As<DesyncReport>().waiting;
    return event.kind == EventKind::desync_report &&
           (std::find(event.ranks.begin(), event.ranks.end(), process.rank) != event.ranks.end() ||
            std::find(waiting.begin(), waiting.end(), process.rank) != waiting.end());
  };
  if (process.rank_clue == RankClue::message) return std::any_of(incident.events.begin(), incident.events.end(), lists);
  const auto& outlines = incident.outlines;
  return process.rank_clue == RankClue::local_rank && std::cmp_equal(incident.process_of.size(), incident.world_size) &&
         std::any_of(outlines.begin(), outlines.end(),
                     [&](const LogOutline& outline) { return outline.world == incident.world_size; });
}

}  // namespace

Report BuildReport(const std::vector<JudgedJob>& jobs, bool why) {
  Report report;
  std::vector<const JudgedJob*> ordered;
  ordered.reserve(jobs.size());
  for (const JudgedJob& job : jobs) ordered.push_back(&job);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto* a, const auto* b) { return Badness(*a) < Badness(*b); });
  bool first = true;
  std::vector<std::vector<std::string>> asked_in;  // of each open question: labels of the jobs
  for (const JudgedJob* job : ordered) {
    const Diagnosis& diagnosis = job->diagnosis;
    if (first) {
      report.verdict = {diagnosis.status,     diagnosis.cause,    Numbers(diagnosis.ranks),
                        diagnosis.confidence, diagnosis.headline, SubjectsFor(diagnosis.subjects),
                        diagnosis.progresses};
      AddWaits(*job, report);
      if (why) report.why = WhyOf(*job);
      report.ranks = RankTable(*job->incident, *job->analyses, *job->standstill, diagnosis);
    }
    first = false;
    for (const Finding& finding : diagnosis.findings) report.findings.push_back(FindingOf(*job->incident, finding));
    report.jobs.push_back(JobOf(*job->incident, diagnosis));
    AddInputs(*job->incident, report);
    for (const CannotTell& open : diagnosis.open) {
      const auto known = std::find_if(report.cannot_tell.begin(), report.cannot_tell.end(),
                                      [&](const CannotTell& c) { return c.question == open.question; });
      const auto at = static_cast<size_t>(known - report.cannot_tell.begin());
      if (known == report.cannot_tell.end()) report.cannot_tell.push_back(open);
      asked_in.resize(report.cannot_tell.size());
      if (asked_in[at].empty() || asked_in[at].back() != job->incident->label)
        asked_in[at].push_back(job->incident->label);
    }
    if (!job->incident->pipeline_traces.empty() && !diagnosis.ranks.empty())
      report.assumptions.emplace_back(
          "timelines name workers by their place only: ranks here count the recorded workers in Megatron's order "
          "(stage x data-parallel size + data-parallel rank)");
    for (const Process& process : job->incident->processes) {
      if (!process.rank.known() || process.rank_certainty != Certainty::assumed || !report.assumptions.empty() ||
          IsConfirmed(*job->incident, process))
        continue;
      report.assumptions.push_back(AssumedRankWords(*job->incident, process));
    }
  }
  // Where nothing was read nothing is known to have happened.
  if (std::all_of(report.inputs.begin(), report.inputs.end(), [](const ReportInput& one) { return one.bytes == 0; }))
    report.cannot_tell.clear();
  if (jobs.size() > 1) {
    for (size_t i = 0; i < report.cannot_tell.size(); ++i)
      report.cannot_tell[i].question.insert(0, JobWords(asked_in[i]));
    report.assumptions.push_back("these are " + std::to_string(jobs.size()) +
                                 " jobs: files of different folders or Slurm jobs that claim the same ranks or steps");
  }
  return report;
}

}  // namespace tacet
