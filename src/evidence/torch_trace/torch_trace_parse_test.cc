// SPDX-License-Identifier: Apache-2.0
#include "torch_trace_parse.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(TorchTraceParse, ReadsAKernelWithItsCollective) {
  TraceEventRecord event;
  ASSERT_TRUE(ParseTraceEvent(
      R"j({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)", "pid": 0, "tid": 16,
          "ts": 3846202263307.447, "dur": 22904.079, "args": {"External id": 645, "queued": 0, "device": 0, "stream": 16,
          "correlation": 6109, "grid": [2, 1, 1], "Collective name": "allreduce", "In msg nelems": 16782336,
          "Out msg nelems": 16782336, "Group size": 4, "dtype": "BFloat16", "In split size": "[]", "Process Group Name": "0",
          "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1, 2, 3]", "Seq": 12}})j",
      &event));
  EXPECT_EQ(event.kind, TraceEventKind::kernel);
  EXPECT_EQ(event.start_ns, 3846202263307447);
  EXPECT_EQ(event.duration_ns, 22904079);
  EXPECT_EQ(event.correlation, 6109);
  EXPECT_EQ(event.external_id, 645);
  EXPECT_EQ(event.stream, 16);
  EXPECT_EQ(event.collective.name, "allreduce");
  EXPECT_EQ(event.collective.in_elements, 16782336);
  EXPECT_EQ(event.collective.group_ranks, "[0, 1, 2, 3]");
  EXPECT_EQ(event.collective.seq, 12);
}

TEST(TorchTraceParse, ReadsKeysInAnyOrderAndNumbersInStrings) {
  TraceEventRecord event;
  ASSERT_TRUE(ParseTraceEvent(
      R"({"args":{"correlation":"9","stream":"7"},"cat":"Kernel","dur":2,"name":"k","ph":"X","pid":1,"tid":7,"ts":5})",
      &event));
  EXPECT_EQ(event.kind, TraceEventKind::kernel);
  EXPECT_EQ(event.correlation, 9);
  EXPECT_EQ(event.stream, 7);
  EXPECT_EQ(event.start_ns, 5000);
}

TEST(TorchTraceParse, PassesOverFlowsOperatorsAndPythonFrames) {
  TraceEventRecord event;
  for (const char* text :
       {R"({"ph": "s", "id": 4534, "pid": 983, "tid": 983, "ts": 1.5, "cat": "ac2g", "name": "ac2g"})",
        R"({"ph": "X", "cat": "cpu_op", "name": "aten::empty", "ts": 1, "dur": 1})",
        R"({"ph": "X", "cat": "python_function", "name": "a.py(3): f", "ts": 1, "dur": 1})",
        R"({"ph": "X", "cat": "cuda_sync", "name": "Event Sync", "ts": 1, "dur": 1, "args": {"stream": 7}})",
        R"({"name": "process_name", "ph": "M", "ts": 0, "pid": 1, "args": {"name": "python"}})"}) {
    EXPECT_TRUE(ParseTraceEvent(text, &event)) << text;
    EXPECT_EQ(event.kind, TraceEventKind::other) << text;
  }
}

TEST(TorchTraceParse, RefusesWhatIsNoEvent) {
  TraceEventRecord event;
  for (const char* text :
       {"", "{", "[]", "{}", "{1}", R"({"ph")", R"({"ph": "X", "cat": "kernel", "name": "k", "ts": NaN, "dur": 1})",
        R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": -5})"})
    EXPECT_FALSE(ParseTraceEvent(text, &event)) << text;
}

TEST(TorchTraceParse, ConvertsMicrosecondsExactly) {
  EXPECT_EQ(MicrosecondsToNs("0.001", -1), 1);
  EXPECT_EQ(MicrosecondsToNs("3846202261462.162", -1), 3846202261462162);
  EXPECT_EQ(MicrosecondsToNs("1694128201427784", -1), 1694128201427784000);
  EXPECT_EQ(MicrosecondsToNs("12.3456789", -1), 12345);
  EXPECT_EQ(MicrosecondsToNs("1.5e3", -1), 1500000);
  EXPECT_EQ(MicrosecondsToNs("-2.5", -1), -2500);
  EXPECT_EQ(MicrosecondsToNs("NaN", -1), -1);
  EXPECT_EQ(MicrosecondsToNs("99999999999999999999", -1), -1);
  EXPECT_EQ(MicrosecondsToNs("1e300", -1), -1);
}

TEST(TorchTraceParse, ReadsShapesAndRankLists) {
  EXPECT_EQ(ParseDims("[[2048, 8192], [], [[3, 4]]]"), (std::vector<std::vector<int64_t>>{{2048, 8192}, {}, {3, 4}}));
  EXPECT_TRUE(ParseDims("").empty());
  EXPECT_EQ(ParseGroupRanks("[0, 4, 12]"), (std::vector<int32_t>{0, 4, 12}));
  EXPECT_TRUE(
      ParseGroupRanks("[0, 1, 2, ..., 28, ..., 63]").empty());  // cut by the profiler: the members are not known
  EXPECT_TRUE(ParseGroupRanks("[]").empty());
}

}  // namespace
}  // namespace tacet
