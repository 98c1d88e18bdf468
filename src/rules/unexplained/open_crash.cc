// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/open_crash.h"

#include <algorithm>
#include <set>
#include <string>

#include "rules/findings/quiet_rank.h"
#include "rules/unexplained/benchmark_verdict.h"
#include "rules/unexplained/open_finding.h"
#include "rules/unexplained/unread_error.h"
#include "rules/words/crash_steps.h"
#include "rules/words/end_advice.h"
#include "rules/words/end_sentence.h"
#include "rules/words/library_words.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// Processes that ended alike: a shell, the launcher and its summary may tell of one and the same.
size_t CountAlike(const Case& facts, const Event& first) {
  std::set<Rank> ranks;
  size_t nameless = 0;
  for (const Event& event : facts.incident.events) {
    if (event.kind != first.kind || event.As<ProcessEnd>().code != first.As<ProcessEnd>().code) continue;
    if (event.rank.known())
      ranks.insert(event.rank);
    else
      ++nameless;
  }
  return ranks.empty() ? nameless : ranks.size();
}

// An error in its own words, after which nothing else is missing but its reason.
bool QuotesError(const Event* told) {
  return told && (told->kind == EventKind::nccl_error || told->kind == EventKind::nccl_warning ||
                  (told->kind == EventKind::exception && !IsConsequence(*told)));
}

// "; setup had completed, and the first collective (all_reduce, 8 B) failed": the last stage that went well, where an
// NCCL log holds one call of each rank at most, and the error behind it.
std::string FirstCallWords(const Case& facts, const Event& error) {
  const auto& events = facts.incident.events;
  if (error.kind != EventKind::nccl_error) return "";
  const bool ready = std::any_of(events.begin(), events.end(), [&](const Event& event) {
    return event.kind == EventKind::init_completed && event.source.file == error.source.file &&
           event.source.line < error.source.line;
  });
  const Call* first = nullptr;
  for (const CallStream& stream : facts.incident.streams) {
    if (stream.source != CallSource::nccl_log || stream.calls.empty()) continue;
    if (stream.calls.size() > 1 || !stream.from_start || stream.file != error.source.file ||
        stream.calls[0].line >= error.source.line)
      return "";
    first = &stream.calls[0];
  }
  if (!ready || !first || first->kind == OpKind::unknown) return "";
  return "; setup had completed, and the first collective (" + std::string(Name(first->kind)) +
         (first->Bytes() > 0 ? ", " + SizeWords(first->Bytes()) : "") + ") failed";
}

const Event* SettleEndOfRun(const Case& facts, const Event& end, Diagnosis& diagnosis) {
  const Event* before = UnreadErrorBefore(facts.incident, &end);
  diagnosis.headline = end.As<ProcessEnd>().sentence;
  diagnosis.headline += before ? "; before that, a line reports: '" + UnreadErrorWords(*before) + "'"
                               : "; the captured evidence does not show why";
  if (!before)
    diagnosis.open.push_back({"What ended the job?",
                              "the program's own output, also what it writes to files; the kernel log (dmesg -T) and "
                              "the scheduler's record of that time"});
  return before;
}

}  // namespace

const Event* SettleCrash(const Case& facts, const Event* told, Diagnosis& diagnosis) {
  diagnosis.status = Status::crash;
  diagnosis.confidence = Confidence::likely;
  if (told && IsEndOfRun(*told)) return SettleEndOfRun(facts, *told, diagnosis);
  if (told && told->As<LostPeer>().closing) {
    diagnosis.status = Status::undetermined;
    diagnosis.confidence = Confidence::possible;
    diagnosis.headline =
        "when it shut down, a torchrun agent could not reach the rendezvous store: the agent that hosts it "
        "(usually on node 0) had ended. That is harmless if the job had finished; these lines do not show whether it "
        "had";
    diagnosis.open.push_back({"Did the job finish?",
                              "the job's last lines on every rank, or the exit code that its "
                              "launcher reports"});
    return nullptr;
  }
  diagnosis.headline = "the job crashed";
  bool stopped = false;
  const ProcessEnd& how_it_ended = told ? told->As<ProcessEnd>() : kEmptyDetail<ProcessEnd>;
  if (told) {
    const size_t alike = CountAlike(facts, *told);
    const auto& how = how_it_ended;
    const bool ended = told->kind == EventKind::process_exited && how.code < 0;
    const std::string signal = how.how.empty() ? "" : " (" + how.how + ")";
    stopped = told->kind == EventKind::process_killed;
    diagnosis.headline += ": ";
    if (alike > 1 && ended)
      diagnosis.headline +=
          std::to_string(alike) + " processes were ended by signal " + std::to_string(-how.code) + signal;
    else if (alike > 1 && stopped)
      diagnosis.headline += "the launcher stopped " + std::to_string(alike) + " processes" + signal;
    else
      diagnosis.headline += EndSentence(facts, *told) + FirstCallWords(facts, *told);
    if (NeverStarted(*told)) {
      const bool ran = !facts.analyses.life.ranks.empty() || facts.analyses.life.outputs > 0;
      diagnosis.headline =
          (ran ? "a program of the job did not start: " : "the job did not start: ") + how_it_ended.how;
    }
  }
  const Event* ended_first = told && told->kind == EventKind::process_exited && CountAlike(facts, *told) == 1
                                 ? NamedFirst(facts, *told)
                                 : nullptr;
  // A failed CUDA call of NCCL often comes from a kernel that failed before it.
  const bool nccl_tells = told && told->kind == EventKind::nccl_warning && told->As<Warning>().id != "cuda-failure";
  const bool told_why =
      nccl_tells || (told && told->kind == EventKind::store_wait_timeout) || (told && NeverStarted(*told)) ||
      (told && !told->As<Raised>().refusal.empty()) ||
      (told && told->kind == EventKind::nccl_error && (told->Means(Meaning::reported) || WarningBehind(facts, *told)));
  const Event* before = stopped || told_why || QuotesError(told) || !how_it_ended.log_file.empty()
                            ? nullptr
                            : UnreadErrorBefore(facts.incident, told);
  const bool cut = told && told->kind == EventKind::exception && told->text.empty() && told->Means(Meaning::reported) &&
                   (told->library == Library::not_told || (told->library == Library::server && told->rank.known()));
  if (cut)
    diagnosis.headline += "; the traceback is cut before its last line, which names the error";
  else if (stopped)
    diagnosis.headline += "; the process that failed first is not in these files";
  else if (before)
    diagnosis.headline += "; before that, a line reports: '" + UnreadErrorWords(*before) + "'";
  else if (const auto quiet = told ? FindQuietRank(facts, *told) : std::nullopt)
    diagnosis.headline += "; " + QuietRankWords(*quiet);
  else if (!told_why)
    diagnosis.headline += told && !how_it_ended.log_file.empty() ? "; more details are in " + how_it_ended.log_file
                          : QuotesError(told)                    ? "; the reason is not in these files"
                          : ended_first && ended_first->As<ProcessEnd>().named_first
                              ? "; the launcher names it as the first to fail, and the reason is not in these files"
                          : ended_first ? "; its own error is not in these files"
                                        : "; the first error is not in these files";
  if (before) return before;
  if (told && NeverStarted(*told)) {
    diagnosis.open.push_back({"Why can it not be started?",
                              how_it_ended.of_script ? "the first line of the job script, and slurmd's log of that node"
                              : how_it_ended.by_path ? "ls -l of that path on every node, as the job sees it"
                                                     : "the PATH and the environment of the script that starts the job "
                                                       "(env, which -a)"});
    return nullptr;
  }
  if (told && told->kind == EventKind::nccl_warning && !nccl_tells) {
    diagnosis.open.push_back(
        {"Why does the driver refuse NCCL's call?",
         "the driver's version (nvidia-smi) and the CUDA version that NCCL prints; NCCL's log from the start "
         "(NCCL_DEBUG=INFO); whether NCCL_CUMEM_ENABLE=0 or NCCL_P2P_DISABLE=1 makes a difference"});
    return nullptr;
  }
  if (told && !told->As<Raised>().refusal.empty()) return nullptr;
  if (told && told->kind == EventKind::store_wait_timeout &&
      (NamedFirst(facts, *told) || EndedFromOutsideAfter(facts.incident, *told))) {
    diagnosis.open.push_back(
        {"What did " +
             (told->peer.known()              ? RankWords({told->peer})
              : told->peer_group_rank.known() ? "rank " + std::to_string(told->peer_group_rank.value) + " of the group"
                                              : std::string("the awaited rank")) +
             " do?",
         "its stack at that time (py-spy dump --pid PID), or the output of every rank in a file of "
         "its own (torchrun --redirects 3 --log-dir DIR)"});
    return nullptr;
  }
  if (ended_first) {
    diagnosis.open.push_back({"Why did " + RankWords({told->rank}) + " end?", OutputToCapture(ended_first)});
    return nullptr;
  }
  const bool by_nccl = told && (told->kind == EventKind::nccl_error || told->kind == EventKind::nccl_warning);
  diagnosis.open.push_back(
      {"What ended the job first?",
       told && !LibraryCapture(told->library).empty() ? LibraryCapture(told->library)
       : by_nccl
           ? "the NCCL log of this process from the start (NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,ENV,NET), and those "
             "of its peers"
           : OutputToCapture(told)});
  return nullptr;
}

}  // namespace tacet
