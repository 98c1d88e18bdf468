// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/stack_reading.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

using Place = StackReading::Place;

struct Line {
  std::string_view function, file;
  uint32_t line = 1;
};
const Line kMain{"<module>", "/srv/train.py", 90};
const Line kStep{"step", "/srv/train.py", 40};
const Line kBarrier{"barrier", "/v/site-packages/torch/distributed/distributed_c10d.py", 5030};
const Line kLogger{"wrapper", "/v/site-packages/torch/distributed/c10d_logger.py", 83};
const Line kSynchronize{"synchronize", "/v/site-packages/torch/cuda/__init__.py", 1162};
const Line kRunBackward{"_engine_run_backward", "/v/site-packages/torch/autograd/graph.py", 829};
const Line kBackward{"backward", "/v/site-packages/torch/_tensor.py", 581};
const Line kWait{"wait", "/usr/lib/python3.12/threading.py", 327};
const Line kBootstrap{"_bootstrap", "/usr/lib/python3.12/threading.py", 1002};

class Job {
 public:
  ThreadStack& Add(int32_t rank, std::vector<Line> lines, bool main = true, uint32_t dump = 0, uint32_t file = 0) {
    std::vector<Frame> frames;
    ThreadStack thread;
    for (const Line& line : lines) {
      frames.push_back({incident.strings.Intern(line.function), incident.strings.Intern(line.file), line.line});
      thread.has_python = thread.has_python || line.file.ends_with(".py");
    }
    thread.rank = Rank{rank};
    thread.is_main = main;
    thread.dump = dump;
    thread.source.file = FileId{file};
    thread.stack = incident.stacks.Intern(std::move(frames));
    incident.threads.push_back(thread);
    return incident.threads.back();
  }
  StackReading Only() const {
    const auto readings = ReadStacks(incident);
    EXPECT_EQ(readings.size(), 1u);
    return readings.empty() ? StackReading{} : readings.front();
  }
  std::string_view Text(StringId id) const { return incident.strings.Get(id); }
  Incident incident;
};

TEST(StackReading, ACollectiveIsCommunicationAndTheUsersFrameIsNamed) {
  Job job;
  job.Add(3, {kBarrier, kLogger, kStep, kMain});
  const StackReading reading = job.Only();
  EXPECT_EQ(reading.rank, Rank{3});
  EXPECT_EQ(reading.place, Place::communication);
  EXPECT_TRUE(reading.certain);
  EXPECT_EQ(reading.where, "step (train.py:40)");
  EXPECT_EQ(reading.call, "barrier (distributed_c10d.py:5030)");
  EXPECT_EQ(job.Text(reading.innermost.function), "barrier");
}

TEST(StackReading, TheCallTheUserMadeIsNamedNotItsInnerPart) {
  Job job;
  const char* c10d = "/v/site-packages/torch/distributed/distributed_c10d.py";
  job.Add(0, {{"_new_process_group_helper", c10d, 2253}, {"init_process_group", c10d, 1838}, kLogger, kStep, kMain});
  EXPECT_EQ(job.Only().call, "init_process_group (distributed_c10d.py:1838)");
}

TEST(StackReading, SynchronizeIsAWaitForTheDevice) {
  Job job;
  job.Add(0, {kSynchronize, kStep, kMain});
  EXPECT_EQ(job.Only().place, Place::device_wait);
  EXPECT_TRUE(job.Only().certain);
}

TEST(StackReading, ACollectiveThatSynchronizesIsStillACollective) {
  Job job;
  job.Add(0, {kSynchronize, kBarrier, kStep, kMain});
  EXPECT_EQ(job.Only().place, Place::communication);
}

TEST(StackReading, TheUsersOwnFunctionIsOnTheHostButNotForCertain) {
  Job job;
  job.Add(2, {{"load_next_batch", "/srv/data/loader.py", 124}, kStep, kMain});
  const StackReading reading = job.Only();
  EXPECT_EQ(reading.place, Place::host);
  EXPECT_FALSE(reading.certain);
  EXPECT_EQ(reading.where, "load_next_batch (loader.py:124)");
  EXPECT_EQ(reading.call, "");
}

TEST(StackReading, LoadersQueuesImportsAndLibrariesAreTheHost) {
  const std::vector<std::vector<Line>> stacks = {
      {kWait, {"get", "queue.py"}, {"__next__", "torch/utils/data/dataloader.py", 631}, kStep, kMain},
      {{"get", "/usr/lib/python3.12/queue.py"}, kStep, kMain},
      {{"_find_and_load", "<frozen importlib._bootstrap>"}, kStep, kMain},
      {{"open", "/v/site-packages/PIL/Image.py"}, kStep, kMain},
      {{"_load", "/v/site-packages/torch/serialization.py"}, kStep, kMain},
      {{"readinto", "/usr/lib/python3.12/socket.py"}, kStep, kMain},
      {{"sleep", "<built-in>"}, kStep, kMain},
  };
  for (const auto& stack : stacks) {
    Job job;
    job.Add(0, stack);
    EXPECT_EQ(job.Only().place, Place::host) << stack[0].file;
    EXPECT_TRUE(job.Only().certain) << stack[0].file;
  }
}

TEST(StackReading, TorchCodeThatMayWaitInsideIsUnknown) {
  for (const Line& line : {Line{"forward", "/v/site-packages/torch/nn/modules/linear.py"},
                           Line{"step", "/v/site-packages/torch/optim/adam.py"},
                           Line{"forward", "/v/site-packages/flash_attn/flash_attn_interface.py"}}) {
    Job job;
    job.Add(0, {line, kStep, kMain});
    EXPECT_EQ(job.Only().place, Place::unknown) << line.file;
    EXPECT_EQ(job.Only().where, "step (train.py:40)");
  }
}

TEST(StackReading, AWrapperAroundForwardIsNotCommunication) {
  Job job;
  job.Add(0, {{"forward", "/v/site-packages/torch/nn/modules/linear.py"},
              {"forward", "/v/site-packages/torch/distributed/fsdp/fully_sharded_data_parallel.py"},
              kStep,
              kMain});
  EXPECT_EQ(job.Only().place, Place::unknown);
}

TEST(StackReading, FramesOutsideTheUsersFunctionDoNotCount) {
  Job job;
  job.Add(0, {{"score", "/srv/evaluate.py"}, kBarrier, kStep, kMain});
  EXPECT_EQ(job.Only().place, Place::host);
}

TEST(StackReading, BackwardAloneIsUnknown) {
  Job job;
  job.Add(0, {kRunBackward, kBackward, kStep, kMain});
  job.Add(0, {}, false);
  EXPECT_EQ(job.Only().place, Place::unknown);
  EXPECT_EQ(job.Only().where, "step (train.py:40)");
}

TEST(StackReading, InBackwardTheThreadOfAutogradTells) {
  Job job;
  job.Add(0,
          {{"all_reduce", "/v/site-packages/torch/distributed/distributed_c10d.py", 7}, {"hook", "/srv/hooks.py", 5}},
          false);
  job.Add(0, {kWait, kBootstrap}, false);
  job.Add(0, {kRunBackward, kBackward, kStep, kMain});
  const StackReading reading = job.Only();
  EXPECT_EQ(reading.place, Place::communication);
  EXPECT_EQ(reading.where, "hook (hooks.py:5)");
}

TEST(StackReading, AThreadOfAutogradThatRunsTellsMoreThanTheMainThread) {
  const Line reduce{"reduce_bucket", "/v/site-packages/deepspeed/runtime/zero/stage3.py", 1500};
  Job job;
  job.Add(0, {kRunBackward, kBackward, kStep, kMain});
  job.Add(0, {kWait, kBootstrap}, false).state = "idle";
  job.Add(0, {reduce}, false).state = "active";
  const StackReading reading = job.Only();
  EXPECT_EQ(reading.call, "reduce_bucket (stage3.py:1500)");
  EXPECT_EQ(reading.where, "step (train.py:40)");
  EXPECT_EQ(reading.place, Place::unknown) << "where it waits, if it does, is not shown";
  Job idle;
  idle.Add(0, {kRunBackward, kBackward, kStep, kMain});
  idle.Add(0, {reduce}, false).state = "idle";
  EXPECT_EQ(idle.Only().where, "step (train.py:40)");
  EXPECT_TRUE(idle.Only().call.empty());
}

TEST(StackReading, AutogradsThreadsDoNotCountOutsideBackward) {
  Job job;
  job.Add(0, {{"hook", "/srv/hooks.py", 5}}, false);
  job.Add(0, {kSynchronize, kStep, kMain});
  EXPECT_EQ(job.Only().place, Place::device_wait);
}

TEST(StackReading, ANativeWaitInBackwardIsNotTheHost) {
  Job job;
  job.Add(0, {{"pthread_cond_wait", "libc.so.6", 0},
              {"torch::autograd::Engine::execute(int)", "libtorch_cpu.so", 0},
              kBackward,
              kStep,
              kMain});
  EXPECT_EQ(job.Only().place, Place::unknown);
}

TEST(StackReading, AMainThreadThatOnlyWaitsYieldsToTheThreadThatTrains) {
  Job job;
  job.Add(0, {kWait, {"main", "/srv/launch.py"}, {"<module>", "/srv/launch.py"}});
  job.Add(0, {kBarrier, kStep, kBootstrap}, false);
  EXPECT_EQ(job.Only().place, Place::communication);
  EXPECT_FALSE(job.Only().thread->is_main);
}

TEST(StackReading, AMainThreadThatWaitsForItsLoaderIsNotHiddenByAHelperThread) {
  Job job;
  job.Add(0, {kWait, {"__next__", "torch/utils/data/dataloader.py"}, kStep, kMain});
  job.Add(0, {kSynchronize, {"save", "/srv/checkpoint.py"}, kBootstrap}, false);
  EXPECT_EQ(job.Only().place, Place::host);
  EXPECT_EQ(job.Only().call, "__next__ (dataloader.py:1)");
}

TEST(StackReading, WithoutAMainThreadTheOneWithMostUserFramesCounts) {
  Job job;
  job.Add(0, {kWait, kBootstrap}, false);
  job.Add(0, {kSynchronize, kStep, {"train", "/srv/train.py"}}, false);
  job.Add(0, {{"tick", "/srv/monitor.py"}}, false);
  EXPECT_EQ(job.Only().place, Place::device_wait);
}

TEST(StackReading, TheLatestDumpCounts) {
  Job job;
  job.Add(0, {kSynchronize, kStep, kMain}, true, 0);
  job.Add(0, {{"evaluate", "/srv/train.py", 12}, kStep, kMain}, true, 1);
  EXPECT_EQ(job.Only().where, "evaluate (train.py:12)");
}

TEST(StackReading, PythonFramesWinOverNativeOnesOfAnotherFile) {
  Job job;
  job.incident.files.resize(2);
  job.incident.files[1].modified_wall_ns = 5;
  job.Add(0, {kSynchronize, kStep, kMain}, true, 0, 0);
  job.Add(0, {{"__GI___poll", "poll.c"}, {"_PyEval_EvalFrameDefault", "ceval.c"}}, true, 0, 1);
  EXPECT_EQ(job.Only().place, Place::device_wait);
}

TEST(StackReading, NativeStacksTellToo) {
  const std::vector<std::pair<std::vector<Line>, Place>> stacks = {
      {{{"__GI___poll", "poll.c"},
        {"socketProgressOpt", "misc/socket.cc"},
        {"ncclCommInitRankDev", "init.cc"},
        {"_PyEval_EvalFrameDefault", "ceval.c"}},
       Place::communication},
      {{{"??", "libcuda.so.1"}, {"cudaStreamSynchronize", "libcudart.so.12"}, {"_PyEval_EvalFrameDefault", "ceval.c"}},
       Place::device_wait},
      {{{"__futex_abstimed_wait_common64", "futex.c"},
        {"take_gil", "ceval_gil.h"},
        {"_PyEval_EvalFrameDefault", "ceval.c"}},
       Place::host},
      {{{"clock_nanosleep", "c.c"},
        {"time_sleep", "timemodule.c"},
        {"_PyEval_EvalFrameDefault", "ceval.c"},
        {"ncclAllReduce", "x.cc"}},
       Place::host},
      {{{"pthread_cond_wait", "libc.so.6"}, {"worker", "pool.cc"}}, Place::unknown},
  };
  for (const auto& [stack, place] : stacks) {
    Job job;
    job.Add(0, stack);
    EXPECT_EQ(job.Only().place, place) << stack[0].function;
    EXPECT_EQ(job.Only().waits_for_gil, stack[1].function == "take_gil");
  }
}

TEST(StackReading, AThreadWithoutFramesIsUnknownAndStillRead) {
  Job job;
  job.Add(1, {});
  EXPECT_EQ(job.Only().place, Place::unknown);
  EXPECT_EQ(job.Only().where, "");
}

TEST(StackReading, TheHolderOfTheGilIsNoted) {
  Job job;
  job.Add(0, {kStep, kMain}).state = "active+gil";
  EXPECT_TRUE(job.Only().holds_gil);
}

TEST(StackReading, ThreadsOfNoKnownRankAreLeftOut) {
  Job job;
  job.Add(-1, {kStep, kMain});
  EXPECT_TRUE(ReadStacks(job.incident).empty());
}

TEST(GroupStacks, NamesTheRanksUnlikeTheMajorityWhateverTheirLines) {
  Job job;
  job.Add(0, {kSynchronize, {"step", "/srv/train.py", 40}, kMain});
  job.Add(1, {{"evaluate", "/srv/train.py", 9}, kStep, kMain});
  job.Add(2, {kSynchronize, {"step", "/srv/train.py", 41}, kMain});
  job.Add(3, {kSynchronize, {"step", "/srv/train.py", 42}, kMain});
  const auto readings = ReadStacks(job.incident);
  const auto groups = GroupStacks(job.incident, readings);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_TRUE(groups[0].majority);
  EXPECT_EQ(groups[0].ranks, (std::vector<Rank>{{0}, {2}, {3}}));
  EXPECT_EQ(readings[groups[1].example].where, "evaluate (train.py:9)");
  EXPECT_EQ(RanksUnlikeTheMajority(groups), std::vector<Rank>{Rank{1}});
}

TEST(GroupStacks, WithoutAMajorityNobodyIsNamed) {
  Job job;
  job.Add(0, {kSynchronize, kStep, kMain});
  job.Add(1, {kBarrier, kStep, kMain});
  const auto groups = GroupStacks(job.incident, ReadStacks(job.incident));
  EXPECT_EQ(groups.size(), 2u);
  EXPECT_TRUE(RanksUnlikeTheMajority(groups).empty());
  EXPECT_TRUE(RanksUnlikeTheMajority({}).empty());
}

TEST(StackReading, AThreadBesideALostMainThreadTellsNoPlaceOnTheHost) {
  for (const bool main : {true, false}) {
    Job job;
    job.Add(0, {kWait, kBootstrap}, main);
    EXPECT_EQ(job.Only().place, main ? Place::host : Place::unknown);
  }
  // What communicates does, whichever thread it is.
  Job job;
  job.Add(0, {kBarrier, kLogger, kStep}, false);
  EXPECT_EQ(job.Only().place, Place::communication);
}

}  // namespace
}  // namespace tacet
