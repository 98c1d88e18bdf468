// SPDX-License-Identifier: Apache-2.0
// What torchrun tells beside an exception: a restart that failed, another rank that failed first, a signal's meaning.
#include <gtest/gtest.h>

#include "rules/testing/judged_case.h"

namespace tacet {
namespace {

Event& RaiseInOutput(JobSketch& job, int32_t rank, std::string_view type, std::string_view text) {
  Event& event = job.Say(rank, EventKind::exception);
  event.Make<Raised>().type = type;
  event.text = text;
  event.source.file = FileId{0};
  return event;
}

Event& ExitOf(JobSketch& job, int32_t rank, int32_t local, int64_t pid, std::optional<bool> first) {
  Event& event = job.Tell(EventKind::process_exited);
  event.source.file = FileId{0};
  event.source.line = 1000 + static_cast<uint32_t>(pid);
  if (rank >= 0) event.rank = Rank{rank};
  event.pid = pid;
  auto& end = event.Make<ProcessEnd>();
  end.code = 1;
  end.local_rank = local;
  end.first_failure = first;
  return event;
}

// Rank 2 fails, torchrun restarts the job, and then `local` fails as rank `again`.
Diagnosis Restarted(int32_t again, int32_t local) {
  JobSketch job(4, {});
  job.GiveOutputs();
  RaiseInOutput(job, 2, "OSError", "no such shard").source.line = 5;
  ExitOf(job, -1, 2, 10, std::nullopt);
  Event& later = job.Tell(EventKind::exception);
  later.Make<Raised>().type = "torch.AcceleratorError";
  later.text = "CUDA error: busy";
  later.source = {FileId{0}, 1015, 0};
  ExitOf(job, again, local, 20, true);
  ExitOf(job, 3, 3, 21, false).As<ProcessEnd>();
  return JudgedCase(job).Verdict();
}

TEST(FailedRestart, TheSecondErrorIsToldBesideTheFirst) {
  const Diagnosis verdict = Restarted(2, 2);
  EXPECT_EQ(verdict.cause, "application-exception");
  EXPECT_EQ(verdict.ranks, Ranks({2}));
  EXPECT_NE(verdict.headline.find("the restart failed, too: rank 2 raised torch.AcceleratorError: CUDA error: busy"),
            std::string::npos)
      << verdict.headline;
}

TEST(FailedRestart, AnotherNodeIsNoRestart) {
  const Diagnosis verdict = Restarted(2, 0);
  EXPECT_EQ(verdict.headline.find("restart"), std::string::npos) << verdict.headline;
}

TEST(FirstFailure, OfAnotherRankIsMentioned) {
  const auto judge = [](bool told) {
    JobSketch job(4, {});
    job.GiveOutputs();
    RaiseInOutput(job, 2, "ValueError", "bad shape");
    if (told) RaiseInOutput(job, 1, "ValueError", "bad shape");
    ExitOf(job, 1, 1, 20, true);
    return JudgedCase(job).Only("application-exception");
  };
  const Finding finding = judge(false);
  EXPECT_NE(finding.headline.find("torchrun names rank 1 as the first to fail"), std::string::npos) << finding.headline;
  EXPECT_EQ(finding.confidence, Confidence::likely);
  EXPECT_EQ(judge(true).headline.find("torchrun"), std::string::npos) << "its own error is there";
}

TEST(EndedThread, AJobThatThenHangsHangsBecauseOfIt) {
  const auto judge = [](bool thread, bool hangs) {
    JobSketch job(4, {});
    job.GiveOutputs();
    RaiseInOutput(job, 2, "KeyError", "in thread Thread-1 (prefetch) 'tokens'").Make<Raised>().in_thread = thread;
    job.Wait(600 * kSecondNs);
    if (hangs)
      for (const int32_t r : {0, 1, 3}) job.TimeOut(r, 12);
    return JudgedCase(job).Only("application-exception");
  };
  EXPECT_EQ(judge(true, true).status, Status::hang);
  EXPECT_NE(judge(true, true).headline.find("ended only this thread"), std::string::npos);
  EXPECT_EQ(judge(false, true).headline.find("ended only this thread"), std::string::npos);
  EXPECT_EQ(judge(true, false).status, Status::crash);
}

TEST(EndedThread, OneThatEndedBeforeAHangIsTold) {
  const auto judge = [](bool in_thread, bool hangs) {
    JobSketch job(4, {});
    job.GiveOutputs();
    job.Wait(600 * kSecondNs);
    if (hangs)
      for (const int32_t r : {0, 1, 3}) job.TimeOut(r, 12);
    Incident incident = job.Finish();
    SurvivedError& error = incident.survived.emplace_back();
    error.raised.type = "KeyError";
    error.raised.place = {"produce", "train.py", 958};
    error.raised.in_thread = in_thread;
    error.words = "in thread Thread-1 (produce) 'text'";
    return JudgedCase(std::move(incident)).Verdict();
  };
  const Diagnosis told = judge(true, true);
  EXPECT_NE(told.headline.find("KeyError ended a thread in produce (train.py:958): 'text'"), std::string::npos)
      << told.headline;
  EXPECT_EQ(judge(false, true).headline.find("KeyError ended"), std::string::npos) << "the process caught it";
  EXPECT_EQ(judge(true, false).headline.find("KeyError ended"), std::string::npos) << "nothing hangs";
}

TEST(EndAdvice, EachSignalHasItsOwnMeaningAndWordOfTheKernel) {
  const auto advice = [](int64_t code, const char* name) {
    JobSketch job(4, {});
    job.GiveOutputs();
    Event& event = ExitOf(job, 2, 2, 20, true);
    event.Make<ProcessEnd>().code = code;
    event.Make<ProcessEnd>().how = name;
    const Finding finding = JudgedCase(job).Only("rank-dead");
    return finding.fix.at(0) + finding.fix.at(1);
  };
  EXPECT_NE(advice(-4, "SIGILL").find("invalid opcode"), std::string::npos);
  EXPECT_NE(advice(-4, "SIGILL").find("lscpu"), std::string::npos);
  EXPECT_NE(advice(-8, "SIGFPE").find("divide error"), std::string::npos);
  EXPECT_NE(advice(-7, "SIGBUS").find("memory failure"), std::string::npos);
  EXPECT_NE(advice(-11, "SIGSEGV").find("segfault"), std::string::npos);
}

}  // namespace
}  // namespace tacet
