// SPDX-License-Identifier: Apache-2.0
#include "rules/findings/lone_caller.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

struct PlacedFrame {
  const char* function;
  const char* file;
  uint32_t line = 7;
};
using LoneFrames = std::initializer_list<PlacedFrame>;

constexpr const char* kLoneDistributed = "torch/distributed/distributed_c10d.py";

// Three ranks of a job that its user says to hang, each with a stack.
Incident HungWith(LoneFrames first, LoneFrames others) {
  Incident incident;
  incident.processes.resize(3);
  Event& told = incident.events.emplace_back();
  told.kind = EventKind::told_hang;
  told.speaker = kNobody;
  told.text = "told";
  told.Make<ToldPlace>();
  for (int32_t r = 0; r < 3; ++r) {
    std::vector<Frame> frames;
    for (const PlacedFrame& one : r == 0 ? first : others)
      frames.push_back({incident.strings.Intern(one.function), incident.strings.Intern(one.file), one.line});
    frames.push_back({incident.strings.Intern("<module>"), incident.strings.Intern("train.py"), 90});
    ThreadStack thread;
    thread.speaker = static_cast<uint32_t>(r);
    thread.rank = incident.processes[static_cast<size_t>(r)].rank = Rank{r};
    thread.is_main = thread.has_python = thread.looked_at = true;
    thread.stack = incident.stacks.Intern(std::move(frames));
    incident.process_of[Rank{r}] = static_cast<uint32_t>(r);
    incident.threads.push_back(std::move(thread));
  }
  return incident;
}

TEST(LoneCaller, OneRankInACollectiveOfItsOwnIsNamed) {
  const Finding finding = JudgedCase(HungWith({{"barrier", kLoneDistributed}, {"save_model", "train.py", 45}},
                                              {{"train_step", "train.py", 8}}))
                              .Only("collective-extra");
  EXPECT_EQ(finding.ranks, std::vector<Rank>{Rank{0}});
  EXPECT_EQ(finding.affected_ranks, (std::vector<Rank>{Rank{1}, Rank{2}}));
  EXPECT_EQ(finding.confidence, Confidence::possible);
  EXPECT_NE(finding.headline.find("barrier, called in save_model (train.py:45)"), std::string::npos)
      << finding.headline;
}

TEST(LoneCaller, OthersThatWaitForALockOrAreInACollectiveAsWellAreNone) {
  const LoneFrames saves = {{"barrier", kLoneDistributed}, {"save_model", "train.py", 45}};
  EXPECT_FALSE(JudgedCase(HungWith(saves, {{"file_lock", "train.py", 8}})).Fires("collective-extra"));
  EXPECT_FALSE(JudgedCase(HungWith(saves, {{"all_reduce", kLoneDistributed}, {"train_step", "train.py", 8}}))
                   .Fires("collective-extra"));
  // A send waits for one peer only.
  EXPECT_FALSE(
      JudgedCase(HungWith({{"send", kLoneDistributed}, {"give", "train.py", 45}}, {{"train_step", "train.py", 8}}))
          .Fires("collective-extra"));
}

Incident WithAnErrorOf(uint32_t process) {
  Incident incident = HungWith({{"train_step", "train.py", 8}}, {{"score", "train.py", 30}});
  SurvivedError error;
  error.raised.type = "ValueError";
  error.raised.place = {"read_rows", "train.py", 20};
  error.words = "could not convert string to float";
  error.speaker = process;
  incident.survived.push_back(error);
  return incident;
}

TEST(WentOn, TheRankThatCaughtAnErrorAndIsElsewhereLeftCallsOut) {
  const Finding finding = JudgedCase(WithAnErrorOf(0)).Only("collective-skipped");
  EXPECT_EQ(finding.ranks, std::vector<Rank>{Rank{0}});
  EXPECT_NE(finding.headline.find("continued after ValueError in read_rows (train.py:20)"), std::string::npos)
      << finding.headline;
}

TEST(WentOn, AnErrorOfAnotherRankSaysNothing) {
  EXPECT_FALSE(JudgedCase(WithAnErrorOf(1)).Fires("collective-skipped"));
  Incident both = WithAnErrorOf(0);
  both.survived.push_back(both.survived[0]);
  both.survived[1].speaker = 2;
  EXPECT_FALSE(JudgedCase(std::move(both)).Fires("collective-skipped"));
}

}  // namespace
}  // namespace tacet
