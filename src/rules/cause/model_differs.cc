// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "analysis/printed/replica_values.h"
#include "rules/unexplained/told_finding.h"
#include "rules/words/words.h"

namespace tacet {

// All compare themselves with the first rank of the group. Where everybody else disagrees with it, it is the odd one.
static std::vector<Rank> OddModels(const Case& facts, const ToldEvents& told) {
  int64_t reference = -1;
  for (const Event* event : told.events)
    if (event->As<ModelMismatch>().parameter >= 0 && event->peer_group_rank.known())
      reference = event->peer_group_rank.value;
  if (reference < 0) return {};
  const size_t world = facts.analyses.life.ranks.size();
  const bool all_others = told.ranks.size() > 1 && world > 2 && told.ranks.size() + 1 >= world;
  if (all_others) return {Rank{static_cast<int32_t>(reference)}};
  // Two ranks: nobody can say which of the two models is the right one.
  return world > 2 && told.ranks.size() * 2 < world ? told.ranks : std::vector<Rank>{};
}

// Each tells two ranks and how many parameters each of them has. Most have the same number: the few others are odd.
// Empty where no side is the larger, where too few ranks are known, or where the numbers may count within a group.
static std::vector<Rank> OddCounts(const ToldEvents& told) {
  constexpr size_t kFewestForAMajority = 3;
  std::map<int32_t, int64_t> counts;
  for (const Event* event : told.events) {
    const auto& differs = event->As<ModelMismatch>();
    if (differs.parameter >= 0 || differs.own < 0 || differs.other <= 0) return {};
    if (event->rank.known() && event->rank.value != event->group_rank.value) return {};
    counts.emplace(event->group_rank.value, differs.own);
    counts.emplace(event->peer_group_rank.value, differs.other);
  }
  std::map<int64_t, size_t> holders;
  for (const auto& [rank, count] : counts) ++holders[count];
  for (const auto& [count, ranks] : holders) {
    if (counts.size() < kFewestForAMajority || ranks * 2 <= counts.size()) continue;
    std::vector<Rank> odd;
    for (const auto& [rank, own] : counts)
      if (own != count) odd.push_back(Rank{rank});
    return holders.size() == 2 ? odd : std::vector<Rank>{};
  }
  return {};
}

// "(param_norm 6.22 against 6.31)"
static std::string ValuesWords(const RankValue& one, const RankValue& other) {
  const std::string name = one.kind == RankValue::Kind::loss ? "loss" : one.name;
  return "(" + (name.empty() ? "" : name + " ") + one.value + " against " + other.value + ")";
}

// The program prints a checksum of each rank's parameters, and one rank's differs from the others'.
static void JudgeDrift(const Case& facts, RuleAnswer& answer) {
  const auto drift = FindDriftedReplica(facts.incident);
  if (!drift) return;
  const Rank rank{drift->odd->rank};
  const std::string who = RankWords({rank});
  const std::string others = drift->which() ? std::to_string(drift->ranks - 1) + " ranks" : "rank";
  Finding finding;
  finding.cause = "model-differs";
  finding.status = Status::corrupt;
  finding.severity = Severity::critical;
  const bool of_loss = drift->odd->kind == RankValue::Kind::loss;
  finding.confidence = drift->which() && drift->agreed && !of_loss ? Confidence::certain : Confidence::likely;
  if (drift->which()) finding.ranks = {rank};
  const std::string what = of_loss ? "loss" : "parameters", values = ValuesWords(*drift->odd, *drift->usual);
  const std::string by = of_loss ? values : "by the norms or checksums that the job prints " + values;
  if (!drift->which()) {
    finding.headline = "the parameters of " + RankWords({Rank{drift->usual->rank}, rank}) + " have differed since " +
                       drift->odd->at + ", " + by + "; two ranks alone do not show which one is wrong";
  } else if (drift->agreed)
    finding.headline = "the " + what + " of " + who + (of_loss ? " differs from that" : " differ from those") +
                       " of the other " + others + " since " + drift->odd->at + (of_loss ? " " : ", ") + by + "; at " +
                       drift->agreed->at + " all were equal";
  else
    finding.headline = "the parameters of " + who + " differ from those of the other " + others +
                       ", which are equal, " + by + ", from " + drift->odd->at + ", the first printed, to the end";
  finding.evidence.push_back({drift->odd->source, "", "the first value that differs"});
  finding.evidence.push_back(
      {drift->usual->source, "",
       drift->which() ? "that of the others at the same step" : "that of the other rank at the same step"});
  if (drift->agreed)
    finding.evidence.push_back({drift->agreed->source, "", "the last one that was equal on all ranks"});
  if (drift->setting) {
    finding.headline += "; its " + drift->setting->name + " is " + drift->setting->value +
                        ", and that of the others is " + drift->usual_setting->value;
    finding.fix.push_back("Give all ranks the same " + drift->setting->name + " (" + who + " has " +
                          drift->setting->value + ", the others " + drift->usual_setting->value +
                          "): a value that depends on the rank or on the host makes replicas of different models.");
  }
  const std::string look =
      "Look for what changes weights on " + (drift->which() ? who : std::string("one of them")) + " alone ";
  finding.fix.push_back(
      drift->agreed ? look + "between " + drift->agreed->at + " and " + drift->odd->at +
                          ": averaged weights that are swapped in and not swapped back, a checkpoint that one rank "
                          "loads, an update that one rank skips or makes twice, a module outside of DDP."
                    : "Compare what " + who +
                          " starts from with the others: the checkpoint that it loads, a weights file that its host "
                          "does not have, the seed, the settings of its optimizer. Where only gradients are averaged, "
                          "models that start different stay different: broadcast the parameters once before training.");
  finding.fix.push_back(!drift->agreed ? "Discard what was trained: gradients of different models were averaged."
                        : drift->which()
                            ? "Discard what was trained since then, and continue from a checkpoint of a rank that "
                              "agreed with the others."
                            : "Discard what was trained since then, and continue from a checkpoint of " +
                                  drift->agreed->at + " or earlier.");
  if (drift->agreed)
    finding.fix.push_back(
        "If the program does nothing of that kind: test that GPU (dcgmi diag -r 3; nvidia-smi -q -d ECC).");
  answer.findings.push_back(std::move(finding));
}

// Some parameters are equal on all ranks, and those of another part on none two.
static void JudgeUnshared(const Case& facts, RuleAnswer& answer) {
  const auto found = FindUnsharedParameters(facts.incident);
  if (!found) return;
  Finding finding;
  finding.cause = "model-differs";
  finding.status = Status::corrupt;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::likely;
  finding.headline =
      "some parameters differ between all ranks " + ValuesWords(*found->one, *found->other) + " since " +
      found->one->at + ", while " + found->equal->name +
      " is equal on all of them: nothing keeps that part of the model equal, so each rank trains its own";
  finding.evidence.push_back({found->one->source, "", "of " + RankWords({Rank{found->one->rank}})});
  finding.evidence.push_back({found->other->source, "", "of " + RankWords({Rank{found->other->rank}})});
  finding.fix = {
      "Wrap the whole model in DDP (or FSDP) after its last module was added: parameters that are added later, "
      "or that belong to a module outside of it, get the gradients of their own rank only.",
      "Broadcast these parameters from rank 0 before training continues. Their values so far differ on each rank.",
      "If this part is meant to differ (experts, personal layers), there is no fault."};
  answer.findings.push_back(std::move(finding));
}

static RuleAnswer JudgeModelDiffers(const Case& facts) {
  RuleAnswer answer;
  const ToldEvents told = CollectTold(facts, [](const Event& e) { return e.kind == EventKind::model_mismatch; });
  if (!told) {
    JudgeDrift(facts, answer);
    if (answer.findings.empty()) JudgeUnshared(facts, answer);
    return answer;
  }
  const Event& lead = *told.events.front();
  Finding finding = ToldFinding(facts, "model-differs", told, "DDP compares the models of all ranks");
  const std::vector<Rank> few = OddCounts(told);
  finding.ranks = few.empty() ? OddModels(facts, told) : few;
  finding.affected_ranks = told.ranks;
  for (const Rank rank : finding.ranks) std::erase(finding.affected_ranks, rank);
  const std::string odd = finding.ranks.empty() ? "" : " (" + RankWords(finding.ranks) + " differs from the rest)";
  const auto& [parameter, aspect, value, own, other] = lead.As<ModelMismatch>();
  if (!few.empty()) {
    const bool leads = lead.group_rank.known() && std::count(few.begin(), few.end(), Rank{lead.group_rank.value}) > 0;
    finding.headline = RankWords(few) + (few.size() == 1 ? " has " : " have ") + std::to_string(leads ? own : other) +
                       " parameter tensors, the others " + std::to_string(leads ? other : own) + ": the models differ";
  } else if (parameter < 0) {
    finding.headline = "the model has a different number of parameters on some ranks" +
                       (value.empty() ? std::string() : ": " + value) +
                       (lead.group_rank.known() && lead.peer_group_rank.known()
                            ? " (ranks " + std::to_string(lead.group_rank.value) + " and " +
                                  std::to_string(lead.peer_group_rank.value) + " of the group)"
                            : std::string());
  } else {
    const std::string what = value.empty() ? "shape" : aspect.substr(4);
    const bool others = finding.ranks.size() == 1 && lead.group_rank.value == finding.ranks[0].value;
    finding.headline = "the model differs between ranks: parameter " + std::to_string(parameter) + " has " +
                       (value.empty() ? "a different shape" : what + " " + value) +
                       (lead.group_rank.known() ? " on rank " + std::to_string(lead.group_rank.value) : "") +
                       (value.empty()         ? " than on "
                        : what.ends_with('s') ? " and different " + what + " on "
                                              : " and a different " + what + " on ") +
                       (others ? "the other ranks" : "rank " + std::to_string(lead.peer_group_rank.value) + odd);
  }
  // A rank without a single parameter built no other model: it sent nothing.
  const bool nothing = parameter < 0 && value.ends_with(" against 0");
  if (nothing) {
    finding.headline =
        (lead.peer_group_rank.known() ? "rank " + std::to_string(lead.peer_group_rank.value) + " of the group"
                                      : std::string("a rank")) +
        " sent no parameters when DDP compared the models (" + value +
        "): it failed before that, or it runs another program, another launch command or another model";
    finding.fix = {"Look at the output of that rank for an earlier error.",
                   "Check that all nodes run the same command with the same number of processes, and the same versions "
                   "of PyTorch and of the program."};
  }
  if (finding.ranks.empty()) {
    finding.confidence = nothing ? Confidence::likely : Confidence::certain;
    answer.open.push_back({"Which rank has the wrong model?",
                           "the output of all ranks, and the model's configuration as each rank printed it"});
  }
  answer.findings.push_back(std::move(finding));
  return answer;
}

extern const Rule kModelDiffersRule;
const Rule kModelDiffersRule = {
    "model-differs",
    "Ranks have different models",
    "the ranks' output: the check that DDP and FSDP make when they wrap the model, or checksums of the parameters that "
    "the program prints for each rank",
    "DDP compares the number and shapes of all parameters before it starts, and they differ between ranks: the "
    "configuration, the vocabulary, the checkpoint or a branch on the rank differs. Or parameters that were equal at "
    "the start diverge later, when one rank changes its own: DDP does not compare them again.",
    "A parameter that exists but gets no gradient is a separate cause (ddp-unused-parameters). Shapes that differ only "
    "in a collective are a size mismatch.",
    {"Print the configuration, the vocabulary size and sum(p.numel() for p in model.parameters()) on every rank, and "
     "compare.",
     "Look for code that builds the model by rank: `if rank == 0`, a tokenizer that was extended on one rank, a "
     "checkpoint that only some hosts have.",
     "Load the same checkpoint and configuration on all hosts: caches and shared file systems may hold different "
     "ones."},
    {"Build the configuration on rank 0 and broadcast it (dist.broadcast_object_list)."},
    JudgeModelDiffers};

}  // namespace tacet
