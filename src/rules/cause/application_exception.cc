// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <variant>

#include "analysis/timeouts/parted_waits.h"
#include "rules/findings/failed_restart.h"
#include "rules/findings/init_finding.h"
#include "rules/findings/loader_worker_finding.h"
#include "rules/findings/refusal_finding.h"
#include "rules/findings/thread_owner.h"
#include "rules/rule.h"
#include "rules/unexplained/plain_program.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/activity_words.h"
#include "rules/words/exception_advice.h"
#include "rules/words/message_words.h"
#include "rules/words/training_words.h"
#include "rules/words/words.h"

namespace tacet {

// What NCCL itself gave as its reason; empty where the error is none of NCCL's.
static std::string LastNcclError(const Case& facts, const Event& exception) {
  if (!exception.Means(Meaning::nccl_failed)) return "";
  for (const Event& event : facts.incident.events) {
    const std::string& reason = event.As<NcclError>().reason;
    if (event.kind == EventKind::nccl_error && event.rank == exception.rank && !reason.empty())
      return "NCCL says " + reason;
  }
  return "";
}

// What the kernel's own lines say of the assertion that failed; they seldom tell whose they are.
static const Event* FindAssertion(const Case& facts) {
  for (const Event& event : facts.incident.events)
    if (std::holds_alternative<DeviceAssertion>(event.As<Raised>().about)) return &event;
  return nullptr;
}

// "rank 3 failed an assertion in a GPU kernel: Indexing.cu:1308: ...", and what to do about it.
static void TellAssertion(const Case& facts, const std::string& who, Finding& finding) {
  const Event* assertion = FindAssertion(facts);
  finding.headline = "an assertion failed in a GPU kernel of " + who +
                     (assertion ? ": " + std::get<DeviceAssertion>(assertion->As<Raised>().about).words
                                : std::string(" (device-side assert)"));
  const std::string says = "the assertion that failed";
  const auto cited = std::find_if(finding.evidence.begin(), finding.evidence.end(), [&](const EvidenceItem& item) {
    return assertion && item.source.file == assertion->source.file && item.source.line == assertion->source.line;
  });
  if (cited != finding.evidence.end())
    cited->says = says;
  else if (assertion && finding.evidence.size() < 3)
    finding.evidence.push_back(CiteEvent(*assertion, says));
  const bool amd = std::any_of(facts.incident.events.begin(), facts.incident.events.end(),
                               [](const Event& event) { return event.maker == GpuMaker::amd; });
  const std::string blocking = amd ? "AMD_SERIALIZE_KERNEL=3 and HIP_LAUNCH_BLOCKING=1" : "CUDA_LAUNCH_BLOCKING=1";
  finding.fix = {
      "Check that indices, token ids and labels are in range: the size of the vocabulary, the number of "
      "classes.",
      "Run again with " + blocking + ", so that the traceback shows the call; on the CPU the same " +
          "call raises an error at once.",
      "The GPU is not at fault: the node can be used again."};
}

// " in check_grads (buffer.py:171)"; empty: no frame of the program's own code is known.
static std::string PlaceWords(const Event& raised) {
  const std::string place = RaisedPlaceWords(raised);
  return place.empty() ? "" : " in " + place;
}

// Where the error has a better answer than to look at its line.
static void TellAdvice(const Event& event, Finding& finding) {
  finding.title = TitleOfRefusal(event);
  if (!event.As<Raised>().refusal.empty()) finding.fix = RefusalSteps(event);
  // The step itself says what to mend; where it is raised stands beside it.
  if (event.As<Raised>().refusal == "changed-in-place" && !PlaceWords(event).empty())
    finding.fix.insert(finding.fix.begin(), PlaceToFix(event));
  else if (IsOfTheProgram(event) && !PlaceWords(event).empty())
    finding.fix.push_back("The error is raised in " + RaisedPlaceWords(event) +
                          ", the last frame in the program's own code.");
  if (event.Means(Meaning::no_launcher))
    finding.fix = {
        "Start the program with a launcher that sets RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT: "
        "torchrun --nproc-per-node N script.py, or srun with these set from SLURM_PROCID and SLURM_NTASKS.",
        "For a single process: do not call init_process_group, or set RANK=0 WORLD_SIZE=1 MASTER_ADDR=localhost "
        "MASTER_PORT=29500."};
  if (event.Means(Meaning::data_ended))
    finding.fix = {
        "Give every replica the same number of batches: dataset.repeat() with steps_per_epoch, or shards of equal size "
        "(drop_remainder=True).",
        "What the others report (Cancelled, an error received from a peer) is only a consequence: the network is not "
        "at fault."};
  if (event.Means(Meaning::not_in_build)) {
    finding.headline =
        "process-group setup failed: this build of PyTorch has no gloo transport for the platform ('unsupported gloo "
        "device')";
    finding.fix = {
        "Use another build of PyTorch: this one has no gloo transport for the platform (on Windows some releases lack "
        "it; others, or Linux under WSL 2, have it).",
        "A training on one GPU needs no process group: leave init_process_group out where the program allows it.",
        "Neither the GPU nor the network interface is at fault."};
  }
  if (event.Means(Meaning::diverged))
    finding.fix = {
        "Lower the learning rate or lengthen its warm-up; clip gradients; with fp16 look at the loss scale, or use "
        "bf16.",
        "Look at the batch in which it happens: empty targets, zero denominators, log of zero. "
        "torch.autograd.set_detect_anomaly(True) shows the operation.",
        "If it happens on one rank or one node only: compare its results with another GPU's before trusting that GPU."};
}

// An error of whom is not told: the output of all ranks in one file, without names.
static void JudgeOwnerlessExceptions(const Case& facts, RuleAnswer& answer) {
  for (const auto& [rank, life] : facts.analyses.life.ranks)
    if (life.exception || life.unused_parameters || life.cuda_oom || life.host_memory || life.gpu_error) return;
  std::set<uint32_t> better;  // lines that CUDA or DDP have a better word for
  for (const Event& event : facts.incident.events)
    if (event.kind == EventKind::cuda_error || event.kind == EventKind::ddp_unused_parameters)
      better.insert(event.source.line);
  for (const Event& first : facts.incident.events) {
    if (first.kind != EventKind::exception || first.rank.known() || IsConsequence(first) ||
        IsHostMemoryShortage(first) || IsKilledLoaderWorker(first) || SaysThatItStops(first) ||
        better.contains(first.source.line) || first.Means(Meaning::calls_differ))
      continue;
    const Event& event = ReasonOf(facts, first);
    Finding finding;
    finding.cause = "application-exception";
    finding.status = Status::crash;
    finding.severity = Severity::critical;
    finding.confidence = Confidence::likely;
    const std::string text = MessageWords(event.text);
    const std::string refusal = RefusalWords(event);
    const bool plain = IsPlainProgram(facts, event);
    const Subject subject = SubjectOf(facts.incident, event);
    // All ranks are started and built alike: which of them prints it does not matter.
    finding.headline = refusal.empty()
                           ? (plain             ? "the process"
                              : subject.known() ? SubjectWords(subject)
                                                : "a rank") +
                                 std::string(event.Means(Meaning::reported) ? " reports " : " raised ") +
                                 event.As<Raised>().type + PlaceWords(event) + DuringWords(event.As<Raised>().during) +
                                 (text.empty() ? "" : ": " + text) +
                                 (plain ? "" : "; the output does not show which rank it is")
                       : ObjectWords(event).empty()
                           ? refusal + " (" +
                                 (IsOfTheProgram(event)
                                      ? event.As<Raised>().type + PlaceWords(event) + (text.empty() ? "" : ": " + text)
                                      : ReportedWords(event, SaysAll(event) ? std::string() : text)) +
                                 ")"
                           : RefusalWithObject(event);
    finding.evidence.push_back(
        CiteEvent(event, std::string(event.Means(Meaning::reported) ? "the error" : "the exception") +
                             (plain || IsRefusedStart(event) ? "" : " (rank unknown)")));
    if (std::string words = CommandLineWords(facts, event, {}); !words.empty()) finding.headline = std::move(words);
    TellAdvice(event, finding);
    if (finding.fix.empty() && (!PlaceWords(event).empty() || IsNativeType(event.As<Raised>().type))) {
      const std::string advice = AdviceForType(event.As<Raised>().type, event.As<Raised>().relative_path);
      finding.fix = {advice.empty() ? PlaceToFix(event) : advice};
      if (!plain)
        finding.fix.push_back(
            "If only one rank raises: check what is special about it (its data shard, its configuration, its file "
            "system).");
    }
    if (event.Means(Meaning::loader_worker)) {
      TellLoaderWorker(event, plain ? "the process" : "a rank", finding);
      if (!plain) finding.headline += "; the output does not show which rank it is";
    }
    if (event.Means(Meaning::device_assert)) {
      finding.evidence.clear();
      TellAssertion(facts, plain ? "the process" : "a rank", finding);
      if (finding.evidence.empty()) finding.evidence.push_back(CiteEvent(event, "the GPU error of an unknown rank"));
    }
    if (plain && finding.fix.empty()) finding.fix = {PlaceToFix(event)};
    if (!TellOwnerOfThread(facts, event, finding) && refusal.empty() && !plain)
      answer.open.push_back({"Which rank was it?", OutputOfRank(facts.incident, event)});
    answer.findings.push_back(std::move(finding));
    return;
  }
}

// The same error on all ranks, or on one while others fail at the same time: no rank is special. The program is, or how
// it was started.
static void TellOwners(const Case& facts, const Event& sample, Finding& finding) {
  const std::vector<Rank> cut = RanksCutOff(facts);
  const bool many = finding.ranks.size() > 1;
  const bool refused = !sample.As<Raised>().refusal.empty();
  const bool of_one_file = !many && IsOfOneFile(sample);
  if (!many && !cut.empty()) {
    const Event& other = *facts.analyses.life.Of(cut.front())->consequence;
    finding.headline += "; " + RankWords(cut) + " failed as well" + DuringWords(other.As<Raised>().during) +
                        (cut.size() == 1 ? " (its traceback is cut off)" : " (their tracebacks are cut off)");
    if (finding.evidence.size() < 3) {
      finding.evidence.push_back(CiteEvent(
          other, "the traceback of " + RankWords({cut.front()}) + "; the log ends before the name of the exception"));
      finding.evidence.back().excerpt.clear();
    }
  }
  const bool alone =
      !many && cut.empty() && IsOddOne(facts, sample.rank) && !FirstFailureElsewhere(facts, {sample.rank});
  std::string advice = AdviceForType(sample.As<Raised>().type, sample.As<Raised>().relative_path);
  if (advice.empty() && sample.Means(Meaning::timed_out) && !refused) advice = TimeoutAdvice();
  if (finding.fix.empty()) {
    finding.fix = {advice.empty() ? PlaceToFix(sample) : advice};
    if (sample.As<Raised>().first_only)
      finding.fix.push_back(
          "torch.multiprocessing.spawn passes on the first error only, and ends the other processes: start the ranks "
          "with torchrun --redirects 3 to check whether others raised as well.");
    if (alone)
      finding.fix.push_back("Only " + RankWords(finding.ranks) +
                            " raised it: check what is special about it (its data shard, its configuration, its file "
                            "system).");
  }
  if (many && IsOfTheProgram(sample)) return;
  if ((!many && !cut.empty()) || (refused && !of_one_file && (many || !IsOddOne(facts, sample.rank))))
    for (; !finding.ranks.empty(); finding.ranks.pop_back())
      finding.subjects.insert(finding.subjects.begin(), SubjectOf(facts.incident, finding.ranks.back()));
}

// Of ranks that raise the same the text of one may be cut before it names what it is about.
static const Event& FullestOf(const std::vector<const Event*>& events) {
  const auto full =
      std::find_if(events.begin(), events.end(), [](const Event* event) { return !ObjectWords(*event).empty(); });
  return full == events.end() ? *events.front() : **full;
}

// torchrun saw another rank fail first, and what that one raised is not here.
static void TellOtherFailure(const Event& other, Finding& finding) {
  const std::string who = RankWords({other.rank});
  finding.headline += "; torchrun names " + who + " as the first to fail; its traceback is not in these files";
  if (finding.evidence.size() < 3) finding.evidence.push_back(CiteEvent(other, who + " failed as well"));
  if (finding.confidence == Confidence::certain) finding.confidence = Confidence::likely;
  finding.fix.push_back("Look at the output of " + who +
                        " as well: it probably raised the same error, a moment earlier.");
}

// Of ranks that raise the same, in the same words, one line is cited for all.
static void CiteAlike(const std::vector<const Event*>& events, Finding& finding) {
  std::vector<std::pair<const Event*, std::vector<Rank>>> said;
  for (const Event* event : events) {
    const auto same = std::find_if(said.begin(), said.end(), [&](const auto& one) {
      const bool about_one = !ObjectWords(*event).empty() && ObjectWords(*one.first) == ObjectWords(*event);
      return (about_one || IsSameBesideAddresses(one.first->text, event->text)) &&
             one.first->Means(Meaning::reported) == event->Means(Meaning::reported);
    });
    if (same != said.end())
      same->second.push_back(event->rank);
    else
      said.push_back({event, {event->rank}});
  }
  for (const auto& [event, ranks] : said) {
    if (finding.evidence.size() == 3) break;
    const bool of_cuda = event->Means(Meaning::device_assert);
    finding.evidence.push_back(CiteEvent(*event, (of_cuda                           ? "the CUDA error of "
                                                  : event->Means(Meaning::reported) ? "the error of "
                                                                                    : "the exception of ") +
                                                     RankWords(ranks)));
  }
}

static RuleAnswer JudgeException(const Case& facts) {
  RuleAnswer answer;
  std::map<std::string, std::vector<const Event*>> by_type;
  const bool missing_gpus = !FindMissingGpus(facts).empty();
  const Event* left_block = FindCheckedStranger(facts.incident, facts.analyses.life, facts.analyses.nameless).raised;
  for (const auto& [rank, life] : facts.analyses.life.ranks) {
    if (!life.exception || life.unused_parameters || life.cuda_oom || life.host_memory || life.gpu_error)
      continue;  // better causes
    if (life.exception == left_block) continue;  // the difference of calls tells it
    // PyTorch's own check of what ranks issue; where its words are cut short nothing more can be read from it.
    if (life.exception->Means(Meaning::calls_differ) || SaysThatItStops(*life.exception) ||
        IsKilledLoaderWorker(*life.exception) ||
        (missing_gpus && life.exception->As<Raised>().refusal == "device-ordinal"))
      continue;
    const bool asserted = life.exception->Means(Meaning::device_assert);
    by_type[asserted ? "device-side assert" : life.exception->As<Raised>().type].push_back(life.exception);
  }
  if (by_type.empty()) {
    JudgeOwnerlessExceptions(facts, answer);
    return answer;
  }
  // The error of most ranks, or the one that came first when ranks raise different things.
  const std::vector<const Event*>* chosen = nullptr;
  const auto first_time = [](const std::vector<const Event*>& events) {
    int64_t first = INT64_MAX;
    for (const Event* event : events)
      if (event->wall_ns != kNoTime) first = std::min(first, event->wall_ns);
    return first;
  };
  for (const auto& [type, events] : by_type) {
    if (!chosen || events.size() > chosen->size() ||
        (events.size() == chosen->size() && first_time(events) < first_time(*chosen)))
      chosen = &events;
  }
  if (!chosen) return answer;
  // What ended the first attempt comes before what ended the second.
  for (const auto& [type, events] : by_type) {
    if (&events == chosen || events.size() != chosen->size()) continue;
    const auto restart = FindFailedRestart(facts, *events.front());
    if (restart && restart->error == chosen->front()) chosen = &events;
  }
  const Event& sample = FullestOf(*chosen);
  Finding finding;
  finding.cause = "application-exception";
  finding.status = Status::crash;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::certain;
  for (const Event* event : *chosen) finding.ranks.push_back(event->rank);
  const bool many = finding.ranks.size() > 1;
  const std::string &type = sample.As<Raised>().type, object = ObjectWords(sample);
  const Activity during = sample.As<Raised>().during;
  const std::string_view refused = sample.As<Raised>().refusal;
  const std::string where = PlacesOfRanks(*chosen, sample);
  std::string message = LastNcclError(facts, sample);
  const bool by_nccl = !message.empty();
  message = MessageWords(by_nccl ? message : sample.text);
  // What is known by its own words is quoted up to the end of its first sentence.
  if (!refused.empty()) message = message.substr(0, message.find(". "));
  if (!object.empty() || SaysAll(sample)) message.clear();  // the same, in fewer words
  // Where some did not raise it, they may be what these ranks waited for.
  const bool by_all = finding.ranks.size() >= facts.analyses.life.Present();
  // Of ranks that raise the same, the traceback of one may be whole.
  const bool in_collective =
      std::any_of(chosen->begin(), chosen->end(), [](const Event* one) { return one->As<Raised>().in_collective; });
  const bool ours_follows = many && by_all && !by_nccl && !in_collective &&
                            (refused.empty() || IsOfTheProgram(sample)) && !sample.Means(Meaning::of_communication);
  // What is cut is quoted, so that it does not run into the sentence behind it.
  if (ours_follows && message.ends_with("...")) message = "'" + message + "'";
  finding.headline =
      RankWords(finding.ranks) + (sample.Means(Meaning::reported) ? (many ? " report " : " reports ") : " raised ") +
      type + where + (object.empty() && !SaysAll(sample) ? DuringWords(during) : "") +
      (message.empty() ? "" : ": " + message) +
      (ours_follows
           ? std::string(message.ends_with('.') || message.ends_with('!') || message.ends_with('?') ? " " : ". ") +
                 "Communication is not the cause."
           : "");
  CiteAlike(*chosen, finding);
  // The launcher's list of failures is the only one to name it.
  if (std::any_of(chosen->begin(), chosen->end(), [](const Event* e) { return e->Means(Meaning::owner_inferred); }))
    finding.confidence = Confidence::likely;
  TellAdvice(sample, finding);
  if (sample.Means(Meaning::no_launcher) && static_cast<size_t>(facts.analyses.life.Present()) > finding.ranks.size())
    finding.fix.insert(finding.fix.begin(), "The other ranks do not report this: compare how " +
                                                RankWords(finding.ranks) + (many ? " were" : " was") +
                                                " started with how they were (command, environment, node).");
  if (const auto calm = OnlyRankWithoutError(facts, finding.ranks); many && calm.known()) {
    if (finding.fix.empty()) finding.fix.push_back(PlaceToFix(sample));
    finding.fix.push_back("Only " + RankWords({calm}) +
                          " did not raise it: look at what it did then (its output; its stack, if it happens again). "
                          "The others may have waited for it.");
  }
  if (sample.Means(Meaning::loader_worker)) TellLoaderWorker(sample, RankWords(finding.ranks), finding);
  if (sample.Means(Meaning::device_assert)) TellAssertion(facts, RankWords(finding.ranks), finding);
  if (!refused.empty()) finding.headline = JoinToRefusal(RefusalWithObject(sample), !object.empty(), finding.headline);
  if (std::string words = CommandLineWords(facts, sample, finding.ranks); !words.empty())
    finding.headline = std::move(words);
  if (finding.fix.empty() && in_collective && IsUnreadableContent(type)) finding.fix = ReceivedContentSteps();
  TellOwners(facts, sample, finding);
  const bool of_command_line = refused == "command-line" || refused == "unknown-argument";
  if (of_command_line && TimesTold(sample.text) > (*chosen).size()) finding.ranks.clear();
  finding.ranks_suffer = refused == "tracker-timeout";  // whoever logs
  if (!many) {
    if (const auto restart = FindFailedRestart(facts, sample)) TellFailedRestart(*restart, finding);
    if (const Event* other = FirstFailureElsewhere(facts, {sample.rank})) TellOtherFailure(*other, finding);
  }
  if (sample.As<Raised>().in_thread && facts.analyses.outcome.hangs()) TellEndedThread(many, finding);
  for (const Rank rank : facts.standstill.waiters)
    if (std::find(finding.ranks.begin(), finding.ranks.end(), rank) == finding.ranks.end())
      finding.affected_ranks.push_back(rank);
  if (facts.standstill.operation) finding.operation = RefOf(*facts.standstill.operation);
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kApplicationExceptionRule;
const Rule kApplicationExceptionRule = {
    "application-exception",
    "The program itself failed",
    "the output of the ranks",
    "Python code raised an exception, or the loader, MPI or another library ended the program with an error, on all "
    "ranks or on one; the peers of that one then wait or see it disappear. Communication is not the cause.",
    "DistBackendError, DistStoreError, closed connections and watchdog texts are consequences on healthy ranks and do "
    "not count. DDP's complaint about unused parameters, running out of GPU memory and CUDA errors are separate "
    "causes.",
    {"Fix the error where it was raised: if there is a traceback, its last frame in your own code names the file and "
     "the line.",
     "If only one rank raises: check what is special about it (its data shard, its configuration, its file system)."},
    {"Wrap the main function with @record (torch.distributed.elastic) so that the first error is kept.",
     "Let a failing rank end the whole job at once (torchrun does) instead of leaving the others to their timeout."},
    JudgeException};

}  // namespace tacet
