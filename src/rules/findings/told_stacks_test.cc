// SPDX-License-Identifier: Apache-2.0
// Stacks and programs in a text that says that the job hangs, or what makes it slow.
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

Event& AddOf(Incident& incident, EventKind kind) {
  Event& event = incident.events.emplace_back();
  event.kind = kind;
  event.speaker = kNobody;
  event.source.line = static_cast<uint32_t>(incident.events.size());
  event.text = "told";
  return event;
}

Incident ToldHang(bool others_wait = false) {
  Incident incident;
  incident.processes.resize(2);
  AddOf(incident, EventKind::told_hang).Make<ToldPlace>().others_wait = others_wait;
  return incident;
}

struct ShownFrame {
  const char* function;
  const char* file;
};

void AddStackOf(Incident& incident, uint32_t process, const char* id, std::initializer_list<ShownFrame> frames,
                Rank rank = {}) {
  std::vector<Frame> out;
  for (const ShownFrame& one : frames)
    out.push_back({incident.strings.Intern(one.function), incident.strings.Intern(one.file), 7});
  ThreadStack thread;
  thread.speaker = process;
  thread.thread_id = id;
  thread.is_main = thread.has_python = thread.looked_at = true;
  thread.rank = rank;
  thread.stack = incident.stacks.Intern(std::move(out));
  incident.threads.push_back(std::move(thread));
}

constexpr const char* kToldDistributed = "torch/distributed/distributed_c10d.py";

TEST(ToldStacks, DifferentCollectivesAreAMismatch) {
  Incident incident = ToldHang();
  AddStackOf(incident, 0, "11", {{"all_reduce", kToldDistributed}, {"step", "train.py"}, {"<module>", "train.py"}});
  AddStackOf(incident, 1, "12", {{"all_gather", kToldDistributed}, {"forward", "model.py"}, {"<module>", "train.py"}});
  const Finding finding = JudgedCase(std::move(incident)).Only("collective-mismatch-operation");
  EXPECT_EQ(finding.status, Status::hang);
  EXPECT_EQ(finding.confidence, Confidence::possible);
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_NE(finding.headline.find("all_gather, called from forward (model.py:7)"), std::string::npos)
      << finding.headline;
}

TEST(ToldStacks, OneCollectiveOrAProcessElsewhereIsNone) {
  Incident same = ToldHang();
  AddStackOf(same, 0, "11", {{"all_reduce", kToldDistributed}, {"step", "train.py"}});
  AddStackOf(same, 1, "12", {{"all_reduce", kToldDistributed}, {"step", "train.py"}});
  EXPECT_FALSE(JudgedCase(std::move(same)).Fires("collective-mismatch-operation"));
  Incident elsewhere = ToldHang();
  AddStackOf(elsewhere, 0, "11", {{"all_reduce", kToldDistributed}, {"step", "train.py"}});
  AddStackOf(elsewhere, 1, "12", {{"read_shard", "data.py"}, {"step", "train.py"}});
  EXPECT_FALSE(JudgedCase(std::move(elsewhere)).Fires("collective-mismatch-operation"));
}

TEST(ToldStacks, TheOneThatTheOthersAreSaidToWaitForIsNamed) {
  const auto judge = [](bool others_wait) {
    Incident incident = ToldHang(others_wait);
    AddStackOf(incident, 0, "11", {{"wait", "threading.py"}, {"get", "queue.py"}, {"read_shard", "data.py"}}, Rank{3});
    incident.processes[0].rank = Rank{3};
    incident.process_of[Rank{3}] = 0;
    return JudgedCase(std::move(incident));
  };
  const Finding finding = judge(true).Only("rank-stuck-on-host");
  EXPECT_EQ(finding.ranks, std::vector<Rank>{Rank{3}});
  EXPECT_EQ(finding.status, Status::hang);
  EXPECT_FALSE(judge(false).Fires("rank-stuck-on-host"));
}

TEST(ToldStacks, ACollectiveThatOnlySomeRanksCallExplainsAHang) {
  const auto with_guard = [](Incident incident) {
    AddOf(incident, EventKind::told_guard).Make<GuardedCall>() = {"engine.save_checkpoint", "rank == 0"};
    return JudgedCase(std::move(incident));
  };
  const Finding finding = with_guard(ToldHang()).Only("collective-skipped");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_NE(finding.headline.find("engine.save_checkpoint only where rank == 0"), std::string::npos)
      << finding.headline;
  EXPECT_FALSE(with_guard(Incident()).Fires("collective-skipped")) << "nothing hangs";
}

TEST(ToldSlow, UnevenInputAndACostlySettingAreCauses) {
  Incident uneven;
  AddOf(uneven, EventKind::told_slow).Make<ToldPlace>();
  AddOf(uneven, EventKind::told_uneven);
  const Diagnosis verdict = JudgedCase(std::move(uneven)).Verdict();
  EXPECT_EQ(verdict.status, Status::slow);
  EXPECT_EQ(verdict.cause, "straggler-data");
  Incident alone;
  AddOf(alone, EventKind::told_uneven);
  EXPECT_FALSE(JudgedCase(std::move(alone)).Fires("straggler-data"));

  const auto with_setting = [](std::string setting) {
    Incident incident;
    AddOf(incident, EventKind::told_slow).Make<ToldPlace>().setting = std::move(setting);
    return JudgedCase(std::move(incident));
  };
  EXPECT_EQ(with_setting("NCCL_IB_DISABLE=1").Verdict().cause, "environment-cripples");
  EXPECT_FALSE(with_setting("NCCL_IB_DISABLE=0").Fires("environment-cripples"));
}

TEST(ToldSlow, WhatMakesAHangGoAwayIsNoFault) {
  Incident incident = ToldHang();
  AddOf(incident, EventKind::told_slow).Make<ToldPlace>().setting = "NCCL_P2P_DISABLE=1";
  EXPECT_FALSE(JudgedCase(std::move(incident)).Fires("environment-cripples"));
}

TEST(ToldFallback, SocketsInPlaceOfAnAdapterThatIsThere) {
  const auto with_adapter = [](bool passed_over) {
    Incident incident;
    AddOf(incident, EventKind::told_slow).Make<ToldPlace>();
    Event& device = AddOf(incident, EventKind::device_found);
    device.Set(Meaning::in_prose);
    device.Make<NetworkDevice>().name = "InfiniBand";
    device.Make<NetworkDevice>().passed_over = passed_over;
    return JudgedCase(std::move(incident));
  };
  EXPECT_EQ(with_adapter(true).Verdict().cause, "transport-fallback");
  EXPECT_EQ(with_adapter(true).Verdict().status, Status::slow);
  EXPECT_FALSE(with_adapter(false).Fires("transport-fallback")) << "the hosts have it, and nothing says more";
}

TEST(WorkBeside, ABarThatAdvancesWhileAWaitInTheStoreEnds) {
  const auto with_bar = [](std::string bar) {
    Incident incident;
    incident.processes.resize(1);
    Event& wait = AddOf(incident, EventKind::store_wait_timeout);
    wait.speaker = 0;
    wait.Make<StoreWait>().bar = std::move(bar);
    return JudgedCase(std::move(incident));
  };
  const Finding finding = with_bar("Map: 37%").Only("timeout-too-short");
  EXPECT_TRUE(finding.ranks.empty());
  EXPECT_NE(finding.headline.find("'Map: 37%'"), std::string::npos) << finding.headline;
  EXPECT_FALSE(with_bar("").Fires("timeout-too-short"));
}

}  // namespace
}  // namespace tacet
