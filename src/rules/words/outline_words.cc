// SPDX-License-Identifier: Apache-2.0
#include "rules/words/outline_words.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "analysis/process/job_end.h"
#include "analysis/process/said_end.h"
#include "rules/unexplained/passed_trouble.h"
#include "rules/unexplained/told_trouble.h"
#include "rules/words/listing_words.h"
#include "rules/words/message_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// What to make of a warning that every job may print.
std::string_view HarmlessWords(HarmlessWarning what) {
  switch (what) {
    case HarmlessWarning::process_group_left:
      return "The warning about destroy_process_group() is harmless at exit; call it at the end of the program to "
             "silence "
             "the warning.";
    case HarmlessWarning::omp_threads: return "OMP_NUM_THREADS=1 is torchrun's default and only affects CPU speed.";
    case HarmlessWarning::ccl_transport:
      return "oneCCL uses OFI because no MPI launcher started it, which is a choice, not a fault.";
    case HarmlessWarning::gloo_group_of_one: return "Gloo's '0 peer ranks, expected 0' means a group of one process.";
    case HarmlessWarning::guessed_device:
      return "PyTorch's warning about the GPU of a barrier is harmless where each rank has set its own GPU; pass "
             "device_id to init_process_group to silence the warning.";
    case HarmlessWarning::no_unused_parameters:
      return "find_unused_parameters=True finds none and only costs time: leave it out.";
    case HarmlessWarning::deprecated_variable: return "A variable is deprecated but still works.";
    case HarmlessWarning::windows_host_name:
      return "Error 10049 on Windows means an address that cannot be used; PyTorch tries the next one.";
    case HarmlessWarning::no_ipv6:
      return "Error 97 means an IPv6 address on a host without IPv6, which is harmless: PyTorch tries IPv4 next.";
    case HarmlessWarning::allocator_retried:
    case HarmlessWarning::store_retried: return "";  // PassedTroubles tells them
    case HarmlessWarning::optional_operators:
      return "DeepSpeed lists operators that it cannot build here (async_io, sparse_attn, CUTLASS); only jobs that use "
             "them need them.";
    case HarmlessWarning::numa_node: return "TensorFlow takes a NUMA node of -1 as node 0; that is harmless.";
    case HarmlessWarning::registered_twice:
      return "TensorFlow's lines about cuDNN, cuFFT and cuBLAS factories that are already registered are harmless.";
    case HarmlessWarning::left_semaphores:
      return "Python's warning about leaked semaphores is harmless at exit; after a process was killed, it is only a "
             "consequence of that.";
    case HarmlessWarning::forked_tokenizers:
      return "The tokenizers switch their threads off after a fork; set TOKENIZERS_PARALLELISM=false to silence the "
             "warning.";
    case HarmlessWarning::scheduler_order:
      return "The warning about lr_scheduler.step() is harmless where mixed precision skipped the first step; "
             "otherwise "
             "call optimizer.step() before it.";
    case HarmlessWarning::name_not_known_yet:
      return "A host name does not resolve yet; PyTorch tries again, so this is only a fault if the "
             "job does not start.";
    case HarmlessWarning::mpi_note:
      return "Open MPI's notes (fork() in a process, InfiniBand ports that it leaves to UCX, where its files are, how "
             "it "
             "binds) end no job.";
    case HarmlessWarning::of_python: return "";  // told with its own words
  }
  return "";
}

bool Outlines(const LogOutline& outline) {
  return outline.shaped > 0 || !outline.ranks.empty() || outline.served || !outline.harmless.empty();
}

// The file with the most to tell: the others are like it, or of something else.
const LogOutline* MainOutline(const Incident& incident) {
  const LogOutline* best = nullptr;
  for (const LogOutline& one : incident.outlines)
    if (Outlines(one) && (!best || one.bytes > best->bytes)) best = &one;
  return best;
}

std::string RanksOfOutline(const LogOutline& outline) {
  if (outline.ranks.empty() || (outline.ranks.size() == 1 && outline.world <= 1)) return "";
  std::vector<Rank> ranks;
  for (const int32_t rank : outline.ranks) ranks.push_back(Rank{rank});
  const auto seen = static_cast<int64_t>(ranks.size());
  if (seen == outline.world) return (seen == 2 ? " Both" : " All " + std::to_string(seen)) + " ranks printed lines.";
  if (outline.world <= 0) return "";
  return " Only " + RankWords(ranks) + " of " + std::to_string(outline.world) +
         (seen == 1 ? " prints lines." : " print lines.");
}

// Records, stacks and other tools' files say more than the shape of lines.
bool HoldsOutputOnly(const Incident& incident) {
  return std::all_of(incident.files.begin(), incident.files.end(), [](const InputFile& file) {
    return file.format == "torch_log" || file.format == "torch_log+host_table" || file.bytes.understood == 0;
  });
}

bool ReportsFault(const Incident& incident) {
  return std::any_of(incident.outlines.begin(), incident.outlines.end(),
                     [](const LogOutline& one) { return one.errors > 0; }) ||
         std::any_of(incident.events.begin(), incident.events.end(), [](const Event& event) {
           return event.kind == EventKind::unread_error || event.kind == EventKind::told_hang || IsSignOfCrash(event) ||
                  IsSignOfHang(event);
         });
}

// As many processes as are seen say so.
bool AllExited(const Case& facts, const LogOutline& outline) {
  return outline.exits > 0 && static_cast<size_t>(outline.exits) >= facts.analyses.life.ranks.size();
}

std::string ExitWords(const Case& facts, const LogOutline& outline) {
  if (outline.exits == 0) return ".";
  if (AllExited(facts, outline)) return ", and the program reached its end.";
  return "; only " + std::to_string(outline.exits) + " of " + std::to_string(facts.analyses.life.ranks.size()) +
         " ranks shows that it exited.";
}

}  // namespace

std::string SurvivedWords(int64_t errors, std::string_view first) {
  constexpr size_t kMostOfError = 100;
  const bool one = errors == 1;
  return (one ? "1 error was" : std::to_string(errors) + " errors were") + " reported, and the job continued" +
         (first.empty() ? "" : (one ? " ('" : " (the first: '") + MessageWords(first, kMostOfError) + "')");
}

std::string FirstSurvived(const Incident& incident) {
  const SurvivedError& first = incident.survived.front();
  const std::string& type = first.raised.type;
  return type.empty() || first.words.find(type) != std::string::npos ? first.words : type + ": " + first.words;
}

std::string FaultWords(const Incident& incident, bool begins) {
  const std::vector<std::string> passed = PassedTroubles(incident);
  std::string words = PassedWords(passed) + (passed.empty() ? "" : "; ");
  words += !incident.survived.empty()
               ? SurvivedWords(static_cast<int64_t>(incident.survived.size()), FirstSurvived(incident))
               : NoFaultReported(passed);
  return begins ? Capitalised(std::move(words)) : words;
}

std::string OutlineWords(const Case& facts) {
  const LogOutline* outline = MainOutline(facts.incident);
  if (!outline || facts.analyses.end.kind != JobEnding::open) return "";
  if (ReportsFault(facts.incident) || !HoldsOutputOnly(facts.incident)) return "";
  std::string words = FaultWords(facts.incident);
  if (outline->warnings > 0)
    words += " (" + std::to_string(outline->warnings) + (outline->harmless.empty() ? "" : " other") +
             (outline->warnings == 1 ? " warning)" : " warnings)");
  // A server does not end: that it answers is all that can be asked of it.
  if (outline->served && outline->exits == 0) {
    const bool later = outline->last_source.line > outline->served.source.line;
    return words + ". The server is running; its last line is '" +
           MessageWords(later ? outline->last : outline->served.words, 120) + "'";
  }
  words += ExitWords(facts, *outline) + RanksOfOutline(*outline);
  if (outline->exits == 0 && !outline->last.empty()) {
    constexpr size_t kMostQuoted = 120;
    const bool cut = outline->last.size() > kMostQuoted;
    words += " The last activity is '" + outline->last.substr(0, kMostQuoted) + (cut ? "..." : "") +
             "'. If the run failed later, add the lines that follow.";
  }
  if (const std::string loads = ListedLoadWords(facts.incident); !loads.empty())
    words += " " + Capitalised(loads) + ".";
  for (const SeenWarning& one : outline->harmless) {
    if (const std::string_view about = HarmlessWords(one.what); !about.empty()) words.append(" ").append(about);
    if (one.what == HarmlessWarning::of_python)
      words += " Python warns, and the program continues: '" + MessageWords(one.object, 100) + "'.";
  }
  return words;
}

bool AllReachedTheirEnd(const Case& facts) {
  const LogOutline* outline = MainOutline(facts.incident);
  return outline && AllExited(facts, *outline) && ReachedItsEnd(facts);
}

bool ReachedItsEnd(const Case& facts) {
  const LogOutline* outline = MainOutline(facts.incident);
  return outline && (outline->exits > 0 || outline->served) && !OutlineWords(facts).empty() &&
         !IsTroubleTold(facts.incident);
}

std::string_view HarmlessAtExit(const Incident& incident) {
  for (const LogOutline& one : incident.outlines)
    for (const SeenWarning& warning : one.harmless)
      if (warning.what == HarmlessWarning::process_group_left) return HarmlessWords(warning.what);
  return "";
}

bool TellsItsEnd(const Incident& incident) {
  return std::any_of(incident.outlines.begin(), incident.outlines.end(),
                     [](const LogOutline& one) { return one.exits > 0 || one.served || !one.ended_well.empty(); });
}

bool HasNotesOnly(const Diagnosis& diagnosis) {
  return std::all_of(diagnosis.findings.begin(), diagnosis.findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::note; });
}

void SettleToldEnd(const Case& facts, Diagnosis& diagnosis) {
  if (ReportsFault(facts.incident)) return;
  for (const LogOutline& one : facts.incident.outlines) {
    if (one.ended_well.empty()) continue;
    diagnosis.status = Status::healthy;
    diagnosis.confidence = Confidence::possible;
    diagnosis.headline = "The text says that the run ended with exit code 0 ('" + one.ended_well + "'), and " +
                         FaultWords(facts.incident);
    return;
  }
}

// "; the last progress line is for epoch 3; NCCL notes 'P2P is disabled between ...'": too little for a verdict, and
// all that the text shows.
static std::string LittleThatIsShown(const Incident& incident) {
  const Event *progress = nullptr, *notice = nullptr;
  for (const Event& event : incident.events) {
    if (event.kind == EventKind::progress && event.As<Progress>().step >= 0) progress = &event;
    if (!notice && event.kind == EventKind::nccl_warning && event.As<Warning>().role == NcclWarningRole::notice)
      notice = &event;
  }
  std::string words;
  if (progress)
    words = std::string("; the last progress line is for ") + (progress->As<Progress>().of_epoch ? "epoch " : "step ") +
            std::to_string(progress->As<Progress>().step);
  if (notice) words += "; NCCL notes '" + MessageWords(notice->text, 100) + "', which by itself is not a fault";
  return words;
}

std::string FinishedRanksWords(const Case& facts) {
  constexpr size_t kMostQuoted = 80;
  std::vector<Rank> finished;
  const Event* first = nullptr;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::process_finished || !event.As<ProcessFinish>().said || !event.rank.known()) continue;
    if (std::find(finished.begin(), finished.end(), event.rank) == finished.end()) finished.push_back(event.rank);
    if (!first) first = &event;
  }
  if (!first) return "";
  std::sort(finished.begin(), finished.end());
  const auto& ranks = facts.analyses.life.ranks;
  const auto printing = static_cast<size_t>(
      std::count_if(ranks.begin(), ranks.end(), [](const auto& one) { return one.second.has_output; }));
  const bool one = finished.size() == 1;
  const std::string who = one || finished.size() < printing ? RankWords(finished)
                          : finished.size() == 2            ? std::string("both ranks")
                                                            : "all " + std::to_string(finished.size()) + " ranks";
  return who + (one ? " says that it" : " say that they") + " finished ('" + MessageWords(first->text, kMostQuoted) +
         "')";
}

// What shows that they came to their end: NCCL's lines, or the program's own.
static std::string ClosedWords(const Case& facts) {
  const auto& ranks = facts.analyses.life.ranks;
  const bool nccl = std::all_of(ranks.begin(), ranks.end(),
                                [](const auto& one) { return !one.second.finished || one.second.has_nccl_log; });
  if (nccl) return "every rank that is shown closed its communicators";
  const std::string finished = FinishedRanksWords(facts);
  return finished.empty() ? "every rank that is shown says that it is done" : finished;
}

std::string WordsWithoutFault(const Case& facts, const Diagnosis& diagnosis, bool trouble_told) {
  const bool recorded = HasRecordedFinish(facts.incident), closed = facts.analyses.outcome.ended_in_order;
  const bool finished = recorded || closed;
  const std::string open = trouble_told ? FaultWords(facts.incident)
                           : recorded   ? "the job ended with exit code 0"
                           : closed     ? ClosedWords(facts)
                                        : "the evidence does not show how the job ended";
  if (std::string listing = ListingWords(facts.incident, diagnosis); !listing.empty()) return listing;
  if (diagnosis.findings.empty() || diagnosis.findings[0].headline.empty()) {
    const std::string outline = OutlineWords(facts);
    const std::vector<std::string> passed = PassedTroubles(facts.incident);
    return !outline.empty() ? outline
           : trouble_told   ? open
                            : (passed.empty() ? "no fault found" : PassedWords(passed) + "; no other fault found") +
                                (finished ? ", and " : ", but ") + open + LittleThatIsShown(facts.incident);
  }
  const std::string rest = ". " + std::string(trouble_told ? FaultWords(facts.incident, true) + "."
                                              : recorded   ? "The job ended with exit code 0."
                                              : closed     ? Capitalised(ClosedWords(facts)) + "."
                                                           : "The evidence does not show how the job ended.");
  if (diagnosis.findings[0].severity == Severity::note && finished && !trouble_told)
    return "no fault found, and " + open + ". " + Capitalised(diagnosis.findings[0].headline);
  if (diagnosis.findings[0].severity == Severity::note) return diagnosis.findings[0].headline + rest;
  return "this evidence shows no failure. " + diagnosis.findings[0].headline + rest;
}

}  // namespace tacet
