// SPDX-License-Identifier: Apache-2.0
// Reports about operations that some ranks have joined and others have not: Horovod's, JAX's barriers, PyTorch's
// analyser of flight records.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/text_scan.h"
#include "evidence/torch_log/ends/torch_log_worker_end.h"

namespace tacet {
namespace {

constexpr size_t kMostStallRanks = 65536;

void AddStallRank(std::vector<int32_t>& ranks, int32_t rank) {
  if (rank >= 0 && ranks.size() < kMostStallRanks && std::count(ranks.begin(), ranks.end(), rank) == 0)
    ranks.push_back(rank);
}

// "1, 7, 5": as far as it goes.
std::set<int32_t> StallRanksIn(std::string_view text) {
  std::set<int32_t> ranks;
  for (int32_t rank = 0; TakeNumber(text, &rank) && rank >= 0 && rank < 65536 && ranks.size() < 4096;) {
    ranks.insert(rank);
    if (!TakeLiteral(text, ",")) break;
    SkipBlanks(text);
  }
  return ranks;
}

// Horovod names a tensor after the call: "allreduce.stem.weight", "DistributedAdam_Allreduce/cond/HorovodAllreduce_x".
std::string_view CallOfTensor(std::string_view tensor) {
  if (ContainsAny(tensor, {"allreduce", "Allreduce"})) return "ALLREDUCE";
  if (ContainsAny(tensor, {"allgather", "Allgather"})) return "ALLGATHER";
  if (ContainsAny(tensor, {"broadcast", "Broadcast"})) return "BROADCAST";
  if (ContainsAny(tensor, {"alltoall", "Alltoall"})) return "ALLTOALL";
  if (ContainsAny(tensor, {"reducescatter", "Reducescatter"})) return "REDUCE_SCATTER";
  return "";
}

void NameTensor(TorchLogRecord& report, std::string_view tensor) {
  tensor = Trim(tensor);
  if (tensor.empty() || !report.subject.empty() || tensor.find(' ') != std::string_view::npos) return;
  report.subject = Capped(tensor, 160);
  report.op = CallOfTensor(tensor);
}

// "Stalled ops: allreduce.conv1.weight [ready ranks: 1, 7, 5], ...": the word before the bracket.
std::string_view TensorBefore(std::string_view text, std::string_view bracket) {
  const size_t at = text.find(bracket);
  if (at == std::string_view::npos) return {};
  const std::string_view before = Trim(text.substr(0, at));
  const size_t blank = before.rfind(' ');
  std::string_view tensor = blank == std::string_view::npos ? before : before.substr(blank + 1);
  TakeLiteral(tensor, "ops:");  // "Stalled ops:HorovodAllreduce_loss_0 [missing ranks: 0]"
  return tensor;
}

// What PyTorch's analyser of flight records writes below "Not all ranks joining collective: sequence number: 8841".
bool BelongsToAnalysis(std::string_view text) {
  text = Trim(text);
  for (const std::string_view key :
       {"internal record id: ", "group info: ", "collective: ", "input sizes: ", "output sizes: ", "world size: ",
        "expected ranks: ", "collective state: ", "collective stack trace: ", "error: "})
    if (text.starts_with(key)) return true;
  return false;
}

}  // namespace

// The report is cited at the line that names somebody.
void StallReader::Name(const LogLine& line, int32_t rank) {
  if (report_->ranks.empty()) report_->source = line.source;
  AddStallRank(report_->ranks, rank);
}

// Stalled ops: allreduce.conv1.weight [ready ranks: 1, 7, 5], allreduce.bn1.weight [ready ranks: 1, 7, 5]
// Whoever is missing between the ready ones has not come. Where tensors are ready on different ranks, these submit
// different tensors.
void StallReader::TakeReady(const LogLine& line, RecordList& out) {
  std::vector<std::set<int32_t>> sets;
  std::vector<std::string_view> tensors;  // the first of each set
  std::set<int32_t> all;
  for (std::string_view rest = line.text; sets.size() < 64;) {
    const auto list = After(rest, "[ready ranks: ");
    if (!list) break;
    std::set<int32_t> ready = StallRanksIn(*list);
    const std::string_view tensor = TensorBefore(rest, "[ready ranks: ");
    rest = *list;
    if (ready.empty()) continue;
    all.insert(ready.begin(), ready.end());
    if (std::count(sets.begin(), sets.end(), ready) > 0) continue;
    sets.push_back(std::move(ready));
    tensors.push_back(tensor);
  }
  const bool apart = sets.size() == 2 &&
                     std::none_of(sets[0].begin(), sets[0].end(), [&](int32_t rank) { return sets[1].contains(rank); });
  if (!apart) {
    for (const int32_t rank : all) AddStallRank(report_->waiting, rank);
    for (int32_t rank = 0; !all.empty() && rank < *all.rbegin(); ++rank)
      if (!all.contains(rank)) Name(line, rank);
    return;
  }
  const auto& few = sets[0].size() <= sets[1].size() ? sets[0] : sets[1];
  const auto& many = &few == &sets[0] ? sets[1] : sets[0];
  for (const int32_t other : many) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::mismatch_report, line, std::to_string(other));
    if (!is_new) continue;
    record->subject = "tensor";
    record->group_rank = other;
    record->peer_group_rank = *few.begin();
    record->object = Capped(tensors[&many == &sets[0] ? 0 : 1], 160);
    record->cure = Capped(tensors[&few == &sets[0] ? 0 : 1], 160);
    record->text = Capped(line.text);
  }
}

// UNAVAILABLE: The following tasks are unhealthy (stopped sending heartbeats):
// /job:jax_worker/replica:0/task:6
void StallReader::NoteUnhealthy(const LogLine& line) {
  unhealthy_ = line;
  unhealthy_.text = {};
  in_unhealthy_ = true;
}

// Barrier timed out. ... Timed out task names:
// /job:jax_worker/replica:0/task:1
LineUse StallReader::ReadTasks(const LogLine& line, RecordList& out) {
  // The barrier at the end is no setup: see torch_log_known_line.h.
  if (Contains(line.text, "Barrier timed out") && !Contains(line.text, "hutdown")) {
    tasks_ = out.AddOnce(TorchLogKind::rendezvous_incomplete, line, "tasks").first;
    if (tasks_->text.empty()) tasks_->text = Capped(line.text);
    return LineUse::understood;
  }
  if (in_unhealthy_ && Trim(line.text).starts_with("/job:")) {
    const int32_t task = IntAfter<int32_t>(line.text, "/task:").value_or(-1);
    const auto [record, is_new] = out.AddOnce(TorchLogKind::process_exited, unhealthy_, "unhealthy");
    if (is_new) record->text = "stopped sending heartbeats: " + Capped(Trim(line.text), 200);
    record->repeats = 1;
    // One alone stopped first; of several nobody can say which did.
    record->value = is_new || record->rank == task ? 255 : 1;
    record->rank = is_new || record->rank == task ? task : -1;
    record->subject = "a heartbeat that stopped";
    return LineUse::understood;
  }
  if (!Trim(line.text).empty() && !Contains(line.text, "(stopped sending heartbeats)")) in_unhealthy_ = false;
  // # of tasks that reached the barrier: 30/32.
  // The first task at the barrier: /job:jax_worker/replica:0/task:0. Some timed out task names:
  // /job:jax_worker/replica:0/task:11
  if (tasks_ != nullptr && Contains(line.text, "tasks that reached the barrier: ")) {
    auto count = After(line.text, "reached the barrier: ");
    int64_t joined = -1, all = -1;
    if (TakeNumber(*count, &joined) && TakeLiteral(*count, "/") && TakeNumber(*count, &all))
      tasks_->value = joined, tasks_->value2 = all;
    return LineUse::understood;
  }
  if (tasks_ != nullptr && Contains(line.text, "ask at the barrier: ")) {
    const auto names = After(line.text, "timed out task names:");
    for (auto rest = names ? After(*names, "/task:") : names; rest; rest = After(*rest, "/task:"))
      if (int32_t task = -1; TakeNumber(*rest, &task)) AddStallRank(tasks_->ranks, task);
    return LineUse::understood;
  }
  if (tasks_ == nullptr || !Trim(line.text).starts_with("/job:")) {
    if (!Trim(line.text).empty()) tasks_ = nullptr;
    return LineUse::not_understood;
  }
  AddStallRank(tasks_->ranks, IntAfter<int32_t>(line.text, "/task:").value_or(-1));
  return LineUse::understood;
}

// One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are waiting for
//   remainder of ranks for more than 60 seconds. ...
// Missing ranks:                                                   "Stalled ranks:" before 0.19
// 3: [DistributedAdam_Allreduce/grads_17_0, DistributedAdam_Allreduce/grads_18_0 ...]
// DistributedOptimizer_Allreduce/x [missing ranks: 1, 3]
LineUse StallReader::Read(const LogLine& line, RecordList& out) {
  std::string_view text = line.text;
  if (const LineUse use = ReadTasks(line, out); use != LineUse::not_understood) return use;
  if (line.has(Keyword::stalled_tensors)) {
    if (report_ == nullptr) {
      report_ = out.AddOnce(TorchLogKind::desync_report, line, "horovod").first;
      if (report_->text.empty()) report_->text = Capped(text);
    }
    for (const std::string_view bracket : {" [ready ranks: ", " [missing ranks: "})
      NameTensor(*report_, TensorBefore(text, bracket));
    if (Contains(text, "[ready ranks: ")) TakeReady(line, out);
    // PyTorch's flight-recorder analyser: "missing ranks: {3, 4, 5, 6, 7}"
    for (const std::string_view key : {"[missing ranks: ", "missing ranks: {"})
      for (std::string_view rest = text;;) {
        const auto list = After(rest, key);
        if (!list) break;
        for (const int32_t rank : StallRanksIn(*list)) Name(line, rank);
        rest = *list;
      }
    // Somebody compares the watchdogs' counters: "Rank 0 last enqueued work << other ranks"
    if (Contains(text, " last enqueued work <")) Name(line, IntAfter<int32_t>(text, "ank ").value_or(-1));
    if (const auto seq = IntAfter(text, "sequence number: ")) report_->seq = *seq;
    return LineUse::understood;
  }
  if (report_ == nullptr) return LineUse::not_understood;
  if (BelongsToAnalysis(text)) {
    if (const auto call = After(text, "collective: nccl:")) report_->op = Capped(Trim(*call), 60);
    return LineUse::understood;
  }
  int32_t rank = -1;
  if (!TakeNumber(text, &rank) || rank < 0 || !TakeLiteral(text, ": [")) {
    report_ = nullptr;
    return LineUse::not_understood;
  }
  Name(line, rank);
  NameTensor(*report_, text.substr(0, text.find_first_of(",] ")));
  AppendCapped(report_->text, "\n" + Capped(line.text, 300));
  return LineUse::understood;
}

}  // namespace tacet
