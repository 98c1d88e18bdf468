// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/awaited_finding.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analysis/timeouts/nameless_waits.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

constexpr int64_t kOften = 3;  // printed so often it waits for long

struct Awaiting {
  Rank rank;
  const OwnLine* line = nullptr;
};

bool IsOutsideWait(const OwnLine& line) { return line.wait == LineWait::thing || line.wait == LineWait::person; }

// Each rank's last lines. Where no record knows the job's ranks, those that lines name.
std::map<Rank, PrintedLines::Lines> LastLines(const Case& facts) {
  if (!facts.analyses.printed.ranks.empty()) return facts.analyses.printed.last;
  std::map<Rank, PrintedLines::Lines> lines;
  for (const LogOutline& outline : facts.incident.outlines)
    for (const OwnLine& line : outline.own_lines)
      if (line.rank >= 0 && !line.local) lines[Rank{line.rank}].push_back(&line);
  return lines;
}

// A path that each host has for itself, by its name.
bool IsOfOneHost(const std::string& path) {
  for (const std::string_view begin : {"/tmp/", "/var/tmp/", "/dev/shm/", "/local", "/scratch_local", "/scratch/local",
                                       "/mnt/local", "/nvme", "/raid", "/run/"})
    if (path.starts_with(begin)) return true;
  return false;
}

// Another rank says that it wrote the very path: on another host it is another file.
const OwnLine* WriterOf(const std::map<Rank, std::vector<const OwnLine*>>& lines, const std::string& path, Rank* who) {
  for (const auto& [rank, own] : lines)
    for (const OwnLine* line : own)
      if (line->wait == LineWait::none && !path.empty() && line->text.find(path) != std::string::npos)
        return *who = rank, line;
  return nullptr;
}

// Lines of processes that have no rank by any line: the others of the job print without a mark that is known.
bool OthersPrint(const Case& facts, const std::map<Rank, std::vector<const OwnLine*>>& lines) {
  constexpr int64_t kFewestLines = 4;
  int64_t count = 0;
  for (const LogOutline& outline : facts.incident.outlines)
    for (const OwnLine& line : outline.own_lines) count += line.rank < 0 || !lines.contains(Rank{line.rank});
  return count >= kFewestLines;
}

// Nobody printed anything behind it, as far as the lines of one file tell. `several`: a line of each other rank may
// stand there, which was on its way to where it waits.
bool IsLastOfAll(const Case& facts, const std::vector<Awaiting>& waits, bool several) {
  std::map<int32_t, size_t> behind;
  for (const LogOutline& outline : facts.incident.outlines)
    for (const OwnLine& line : outline.own_lines)
      for (const Awaiting& wait : waits)
        if (!IsOutsideWait(line) && line.source.file == wait.line->source.file &&
            line.source.line > wait.line->source.line && (!several || ++behind[line.rank] > waits.size()))
          return false;
  return true;
}

bool DoesAnybodyWait(const Case& facts) {
  return std::any_of(facts.incident.outlines.begin(), facts.incident.outlines.end(), [](const LogOutline& outline) {
    return std::any_of(outline.own_lines.begin(), outline.own_lines.end(), IsOutsideWait);
  });
}

Finding WaitFinding(const std::vector<Awaiting>& waits, std::vector<Rank> others) {
  Finding finding;
  finding.cause = "rank-stuck-on-host";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  for (const Awaiting& wait : waits) finding.ranks.push_back(wait.rank);
  finding.affected_ranks = std::move(others);
  return finding;
}

const std::vector<std::string> kStepsForDebuggers = {
    "Remove what stops the program there (debugpy.wait_for_client(), breakpoint(), input()), or do what its line "
    "asks for; meanwhile the other ranks wait in their next collective.",
    "To debug one rank of a job, raise the timeout of the process group first."};
const std::vector<std::string> kStepsForQuestions = {
    "Answer it in advance: most programs have an option or a variable for it (--yes, --overwrite, "
    "trust_remote_code=True, WANDB_MODE=offline or WANDB_API_KEY, GIT_TERMINAL_PROMPT=0, ssh -o BatchMode=yes). "
    "Under a launcher or a scheduler there is no terminal to type an answer at.",
    "In the program: ask only where standard input is a terminal (sys.stdin.isatty()), and decide before the "
    "process group is created."};

void AddSteps(const std::vector<Awaiting>& waits, const std::string& who, Finding& finding) {
  if (waits.front().line->wait == LineWait::person) {
    finding.fix = kStepsForDebuggers;
    return;
  }
  finding.fix = {
      Capitalised(who) + (waits.size() > 1 ? " wait" : " waits") +
          " for something that is missing; the line names it. Which rank creates it, on which host, and did that rank "
          "get that far?",
      "A path that is local to each host (/tmp, /local, /dev/shm) has to be written on each host, by the rank "
      "with LOCAL_RANK=0; a shared one by rank 0 alone.",
      "Replace the wait by a barrier (dist.barrier()), or set a limit on it and raise an error with its path. If an "
      "earlier run left a lock file, delete it by hand."};
}

std::optional<Finding> LastLineFinding(const Case& facts, const std::vector<Awaiting>& waits,
                                       const std::map<Rank, std::vector<const OwnLine*>>& lines) {
  const JobEnd& end = facts.analyses.end;
  // Ctrl-C behind such a line: somebody saw the job stand.
  const bool by_hand = end.kind == JobEnding::crashed && end.told && IsInterrupt(*end.told);
  if (end.kind == JobEnding::finished || (end.kind == JobEnding::crashed && !by_hand) || end.said ||
      !IsLastOfAll(facts, waits, by_hand))
    return std::nullopt;
  if (waits.size() == lines.size() && !OthersPrint(facts, lines)) return std::nullopt;
  // A wait that is told once may be over a moment later, unless somebody has to end it.
  const OwnLine& first = *waits.front().line;
  if (first.wait != LineWait::person && first.times < kOften && !by_hand) return std::nullopt;
  Rank writer;
  const OwnLine* written = WriterOf(lines, first.awaited, &writer);
  // It is there by what another rank says, and nothing shows that these do not see it.
  if (written && !IsOfOneHost(first.awaited)) return std::nullopt;
  std::vector<Rank> others;
  for (const auto& [rank, own] : lines)
    if (std::none_of(waits.begin(), waits.end(), [&](const Awaiting& wait) { return wait.rank == rank; }))
      others.push_back(rank);
  Finding finding = WaitFinding(waits, others);
  const bool one = waits.size() == 1;
  finding.confidence = first.times >= kOften ? Confidence::likely : Confidence::possible;
  const std::string who = RankWords(finding.ranks);
  finding.headline =
      who + (one ? " waits, according to its last line" : " wait, according to their last lines") + ": " +
      QuotedLine(first) + (first.times >= kOften ? ", printed " + std::to_string(first.times) + " times" : "") +
      (by_hand ? "; nothing is printed after that until Ctrl-C, so " : "; nothing is printed after that, so ") +
      (others.empty() ? "the others" : RankWords(others)) + " most likely " +
      (others.size() == 1 ? "waits for " : "wait for ") + (one ? "it" : "them") + " in a collective";
  finding.evidence.push_back({first.source, first.text, "the last line of " + RankWords({waits.front().rank})});
  if (written) {
    finding.headline += "; " + RankWords({writer}) +
                        " printed that path, too: if it is on a disk of each host, only its "
                        "own host has it";
    finding.evidence.push_back({written->source, written->text, "what " + RankWords({writer}) + " printed about it"});
  }
  AddSteps(waits, who, finding);
  return finding;
}

// The others gave up waiting for one rank, and what that one printed last is what it waits for itself.
std::optional<Finding> ToldWaitFinding(const Case& facts, const std::vector<Awaiting>& waits) {
  if (facts.analyses.told.size() != 1) return std::nullopt;
  const ToldLaggard& told = facts.analyses.told.front();
  const auto own =
      std::find_if(waits.begin(), waits.end(), [&](const Awaiting& wait) { return wait.rank == told.rank; });
  if (own == waits.end() || told.momentary) return std::nullopt;
  Finding finding = WaitFinding({*own}, told.waiters);
  finding.confidence = Confidence::likely;
  const std::string who = RankWords({own->rank});
  finding.headline = who + " waits, according to its last line: " + QuotedLine(*own->line) + "; " +
                     RankWords(told.waiters) + " gave up waiting for it";
  finding.evidence.push_back({own->line->source, own->line->text, "the last line of " + who});
  finding.evidence.push_back({told.source, "", "the others waited for " + who});
  AddSteps({*own}, who, finding);
  return finding;
}

// It gave up waiting in a collective, so that it asks nobody: the line is of another process in the same text.
bool GaveUp(const Case& facts, int32_t rank) {
  const RankLife* life = facts.analyses.life.Of(Rank{rank});
  return life && (life->timeout || life->gloo_timeout || life->gave_up);
}

// The first that others tell of a wait in vain behind this line of the same text.
const Event* WaitInVainBehind(const Case& facts, const SourceRef& line) {
  const Event* first = nullptr;
  for (const Event& event : facts.incident.events)
    if (IsSignOfHang(event) && event.source.file == line.file && event.source.line >= line.line &&
        (!first || event.source.line < first->source.line))
      first = &event;
  return first;
}

// The text went on behind the question, so somebody answered it.
bool IsAnswered(const Case& facts, const OwnLine& question, const Event* vain) {
  const uint32_t end = vain ? vain->source.line : UINT32_MAX;
  const auto is_between = [&](const SourceRef& source) {
    return source.file == question.source.file && source.line > question.source.line && source.line < end;
  };
  for (const LogOutline& outline : facts.incident.outlines)
    for (const OwnLine& line : outline.own_lines)
      if (line.wait != LineWait::person && is_between(line.source)) return true;
  return std::any_of(facts.incident.events.begin(), facts.incident.events.end(), [&](const Event& event) {
    const bool life = event.kind == EventKind::progress || event.kind == EventKind::process_finished ||
                      event.kind == EventKind::init_completed;
    return life && is_between(event.source);
  });
}

// A question to whoever sits at the terminal, by a process without a name. Under a launcher or a scheduler nobody sits
// there.
std::optional<Finding> QuestionFinding(const Case& facts) {
  const JobEnd& end = facts.analyses.end;
  if (end.kind == JobEnding::finished || end.said) return std::nullopt;
  const OwnLine* question = nullptr;
  for (const LogOutline& outline : facts.incident.outlines)
    for (const OwnLine& line : outline.own_lines)
      if ((line.rank < 0 || GaveUp(facts, line.rank)) && line.wait == LineWait::person) question = &line;
  if (!question) return std::nullopt;
  const Event* vain = WaitInVainBehind(facts, question->source);
  if ((!vain && end.kind == JobEnding::crashed) || IsAnswered(facts, *question, vain)) return std::nullopt;
  Finding finding = WaitFinding({}, {});
  finding.confidence = vain ? Confidence::likely : Confidence::possible;
  const bool asks = question->text.find("ebugg") == std::string::npos;
  finding.headline = (asks ? "a process asks a question and waits for the answer: "
                           : "a process waits for input or for a debugger, according to its last line: ") +
                     QuotedLine(*question) +
                     (vain ? "; the others waited for it until they gave up"
                           : "; nothing is printed after that, so the job most likely still waits for it");
  finding.evidence.push_back({question->source, question->text, asks ? "the question" : "what it waits for"});
  if (vain) finding.evidence.push_back(CiteEvent(*vain, "the first that gave up waiting"));
  finding.fix = asks ? kStepsForQuestions : kStepsForDebuggers;
  return finding;
}

}  // namespace

std::optional<Finding> AwaitedFinding(const Case& facts) {
  if (!DoesAnybodyWait(facts)) return std::nullopt;
  const auto lines = LastLines(facts);
  std::vector<Awaiting> waits;
  for (const auto& [rank, own] : lines)
    if (IsOutsideWait(*own.back()) && !(own.back()->wait == LineWait::person && GaveUp(facts, rank.value)))
      waits.push_back({rank, own.back()});
  if (waits.empty()) return QuestionFinding(facts);
  if (auto finding = ToldWaitFinding(facts, waits)) return finding;
  return LastLineFinding(facts, waits, lines);
}

}  // namespace tacet
