// SPDX-License-Identifier: Apache-2.0
#include "torch_trace_import.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "base/compressed_text.h"
#include "matrix_flops.h"

namespace tacet {

extern const Format kTorchTraceFormat;

namespace {

std::string Sample(const std::string& name) {
  std::ifstream in(std::string(TACET_SOURCE_DIR) + "/src/evidence/torch_trace/samples/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Fragment Read(std::string_view bytes, std::string_view path = "trace.json") {
  Fragment fragment;
  ReadTorchTrace({path, bytes, false}, fragment);
  EXPECT_EQ(fragment.bytes.total, bytes.size());
  EXPECT_EQ(fragment.bytes.understood + fragment.bytes.ignored + fragment.bytes.not_understood, fragment.bytes.total);
  return fragment;
}

bool Noted(const Fragment& fragment, std::string_view code) {
  for (const Diagnostic& diagnostic : fragment.diagnostics)
    if (diagnostic.code == code) return true;
  return false;
}

TEST(TorchTraceImport, ReadsTheGroupsOfAMesh) {
  const Fragment fragment = Read(Sample("torch_2_11_mesh_rank0.json"));
  ASSERT_EQ(fragment.timelines.size(), 1u);
  const Timeline& timeline = fragment.timelines[0];
  EXPECT_EQ(fragment.speakers[0].rank.value, 0);
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::stated);
  EXPECT_EQ(fragment.speakers[0].world_size, 8);
  EXPECT_EQ(timeline.devices.at(0).name, "NVIDIA H200");
  EXPECT_EQ(timeline.nccl_version, "2.28.9");
  ASSERT_EQ(timeline.collectives.size(), 4u);
  const TraceCollective& first = timeline.collectives[0];
  const Group& group = fragment.groups.at(static_cast<uint32_t>(first.group));
  EXPECT_EQ(group.members, (std::vector<Rank>{{0}, {1}}));
  EXPECT_EQ(first.kind, OpKind::all_reduce);
  EXPECT_EQ(first.in_elements, 262144);
  EXPECT_EQ(first.type, DataType::float32);
  EXPECT_EQ(fragment.groups.at(static_cast<uint32_t>(timeline.collectives[3].group)).members.size(), 4u);
  // Wall clock: ts and the base time added.
  EXPECT_GT(timeline.gpu.front().start_ns, 1'790'857'026'000'000'000);
  // The host issued it before the kernel ran.
  ASSERT_NE(first.gpu_event, kNoIndex);
  EXPECT_LT(first.enter_ns, timeline.gpu[first.gpu_event].start_ns);
  EXPECT_EQ(timeline.gpu[first.gpu_event].collective, 0u);
}

TEST(TorchTraceImport, FindsTheOperationsOfACoalescedKernelByItsLaunch) {
  const Fragment fragment = Read(Sample("torch_2_11_pipeline_rank1.json"));
  const Timeline& timeline = fragment.timelines[0];
  std::vector<OpKind> kinds;
  for (const TraceCollective& operation : timeline.collectives)
    if (operation.gpu_event != kNoIndex) kinds.push_back(operation.kind);
  EXPECT_EQ(kinds, (std::vector<OpKind>{OpKind::recv, OpKind::send}));
  EXPECT_EQ(timeline.collectives[0].peer.value, 0);
  EXPECT_EQ(timeline.collectives[1].peer.value, 2);
  EXPECT_EQ(timeline.collectives[0].in_elements, 1048576);
  EXPECT_EQ(timeline.steps.size(), 2u);
  EXPECT_EQ(timeline.memory.front().allocated > 0, true);
}

TEST(TorchTraceImport, ReadsTraceOfVersion1WithoutGroupsOrBaseTime) {
  const Fragment fragment = Read(Sample("torch_1_13_rank2.json"));
  const Timeline& timeline = fragment.timelines[0];
  EXPECT_EQ(fragment.speakers[0].rank.value, 2);
  ASSERT_EQ(timeline.gpu.size(), 5u);
  EXPECT_EQ(timeline.gpu[0].start_ns, 1694128201426556000 + 450'000);
  ASSERT_EQ(timeline.collectives.size(), 1u);
  EXPECT_EQ(timeline.collectives[0].kind, OpKind::all_reduce);
  EXPECT_EQ(timeline.collectives[0].in_elements, 394241);  // from the annotation
  EXPECT_EQ(timeline.collectives[0].type, DataType::float32);
  EXPECT_EQ(fragment.groups.at(static_cast<uint32_t>(timeline.collectives[0].group)).members.size(), 8u);
  EXPECT_EQ(timeline.launches.size(), 5u);
  ASSERT_EQ(timeline.matrix_work.size(), 1u);
  EXPECT_DOUBLE_EQ(timeline.matrix_work[0].flops, 2.0 * 256 * 1024 * 512);
  bool loads = false, waits = false;
  for (const HostRange& range : timeline.ranges) {
    loads |= range.work == HostWork::data_loading;
    waits |= range.work == HostWork::device_wait;
  }
  EXPECT_TRUE(loads);
  EXPECT_TRUE(waits);
}

TEST(TorchTraceImport, ReadsWhatStandsBehindTheEvents) {
  const Fragment fragment = Read(Sample("torch_2_7_on_demand_rocm.json"));
  const Timeline& timeline = fragment.timelines[0];
  EXPECT_EQ(fragment.speakers[0].rank.value, 4);
  ASSERT_EQ(timeline.collectives.size(), 1u);
  EXPECT_EQ(timeline.gpu[0].work, GpuWork::communication);
  EXPECT_EQ(timeline.gpu[0].start_ns, 1711964646000000000 + 140'500);
  EXPECT_EQ(timeline.collectives[0].kind, OpKind::all_gather);  // RCCL's kernel name does not tell, the call does
  EXPECT_EQ(timeline.collectives[0].seq, 17);
  EXPECT_EQ(timeline.collectives[0].enter_ns, 1711964646000000000 + 100'250);
  EXPECT_EQ(fragment.groups.at(0).members, (std::vector<Rank>{{0}, {4}}));
  EXPECT_EQ(fragment.groups.at(0).description, "DP");
}

TEST(TorchTraceImport, SurvivesUnescapedQuotesNanAndTrailingCommas) {
  const Fragment fragment = Read(Sample("torch_unescaped.json"));
  ASSERT_EQ(fragment.timelines[0].gpu.size(), 2u);
  EXPECT_EQ(fragment.timelines[0].gpu[0].end_ns - fragment.timelines[0].gpu[0].start_ns, 5500);
  EXPECT_EQ(fragment.timelines[0].collectives.size(), 1u);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
  EXPECT_FALSE(fragment.timelines[0].cut);
}

TEST(TorchTraceImport, TakesTheRankFromTheNameOnlyWhenTheContentIsSilent) {
  const std::string text =
      R"({"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1}]})";
  const Fragment fragment = Read(text, "trace_rank5.json");
  EXPECT_EQ(fragment.speakers[0].rank.value, 5);
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::assumed);
  EXPECT_TRUE(Noted(fragment, "rank-assumed"));
  EXPECT_EQ(Read(Sample("torch_1_13_rank2.json"), "trace_rank7.json").speakers[0].rank.value, 2);
}

TEST(TorchTraceImport, StreamOfACompressedFileGivesTheSameTimeline) {
  for (const char* name : {"torch_2_11_mesh_rank0.json", "torch_2_11_pipeline_rank1.json", "torch_unescaped.json"}) {
    const std::string text = Sample(name);
    const Fragment plain = Read(text);
    Fragment streamed;
    ReadTorchTraceStream({"trace.json.gz", Gzip(text), false}, streamed);
    EXPECT_EQ(streamed.bytes.total, text.size());
    EXPECT_EQ(streamed.bytes.understood, plain.bytes.understood);
    ASSERT_EQ(streamed.timelines[0].gpu.size(), plain.timelines[0].gpu.size());
    EXPECT_EQ(streamed.timelines[0].collectives.size(), plain.timelines[0].collectives.size());
    EXPECT_EQ(streamed.timelines[0].end_ns, plain.timelines[0].end_ns);
  }
}

TEST(TorchTraceImport, ReadsTheBeginningOfACutFile) {
  const std::string text = Sample("torch_2_11_pipeline_rank1.json");
  const Fragment whole = Read(text);
  const Fragment fragment = Read(text.substr(0, text.size() * 3 / 4));
  EXPECT_TRUE(fragment.timelines[0].cut);
  EXPECT_TRUE(Noted(fragment, "truncated"));
  EXPECT_LE(fragment.timelines[0].gpu.size(), whole.timelines[0].gpu.size());
  EXPECT_EQ(fragment.speakers[0].rank.value, 1);
  Fragment compressed;
  const std::string gz = Gzip(text);
  ReadTorchTraceStream({"trace.json.gz", std::string_view(gz).substr(0, gz.size() / 2), false}, compressed);
  EXPECT_TRUE(compressed.timelines[0].cut);
  EXPECT_GT(compressed.bytes.total, 0u);
}

TEST(TorchTraceImport, ReadsTheBareArrayOfEvents) {
  const std::string text =
      R"([{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 1, "dur": 1,
           "args": {"correlation": 4}},
          {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5, "dur": 2, "args": {"correlation": 4}}])";
  EXPECT_EQ(kTorchTraceFormat.recognise(text, "x.json"), Recognition::yes);
  const Fragment fragment = Read(text, "trace_rank6.json");
  EXPECT_EQ(fragment.timelines.at(0).gpu.size(), 1u);
  EXPECT_EQ(fragment.timelines[0].launches.size(), 1u);
  EXPECT_EQ(fragment.speakers[0].rank.value, 6);
  EXPECT_FALSE(fragment.timelines[0].cut);
}

TEST(TorchTraceImport, OfDuplicateKeysTheLastCounts) {
  const Fragment fragment = Read(R"({"schemaVersion": 1, "schemaVersion": 2, "distributedInfo": {"rank": 1, "rank": 2},
               "traceEvents": [{"ph": "X", "cat": "kernel", "name": "a", "name": "b", "ts": 1, "ts": 3, "dur": 1}],
               "traceEvents": [{"ph": "X", "cat": "kernel", "name": "c", "ts": 9, "dur": 1}]})");
  const Timeline& timeline = fragment.timelines.at(0);
  ASSERT_EQ(timeline.gpu.size(), 2u);
  EXPECT_EQ(timeline.names.Get(timeline.gpu[0].name), "b");
  EXPECT_EQ(timeline.gpu[0].start_ns, 3000);
}

TEST(TorchTraceImport, EventsWithTimesThatAreNoNumbersAreLeftOut) {
  const Fragment fragment = Read(R"({"schemaVersion": 1, "traceEvents": [
        {"ph": "X", "cat": "kernel", "name": "k\d", "ts": Infinity, "dur": 1},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": NaN},
        {"ph": "X", "cat": "kernel", "name": "k\x\q", "ts": -nan, "dur": 1},
        {"ph": "X", "cat": "kernel", "name": "k", "ts": 1e400, "dur": 1},
        {"ph": "X", "cat": "kernel", "name": "good\u00e9\q", "ts": 4, "dur": 1}]})");
  EXPECT_EQ(fragment.timelines.at(0).gpu.size(), 2u);  // of the one without a duration the start is known
  EXPECT_GT(fragment.bytes.not_understood, 0u);
}

TEST(TorchTraceImport, ATraceOfGlooHasOperationsWithoutKernels) {
  const Fragment fragment =
      Read(R"({"schemaVersion": 1, "distributedInfo": {"backend": "gloo", "rank": 0, "world_size": 2}, "traceEvents": [
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 9, "tid": 9, "ts": 1, "dur": 100},
        {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "pid": 9, "tid": 9, "ts": 5, "dur": 2, "args":
          {"Collective name": "allreduce", "In msg nelems": 64, "Out msg nelems": 64, "Group size": 2, "dtype": "Float"}}]})");
  const Timeline& timeline = fragment.timelines.at(0);
  EXPECT_TRUE(timeline.gpu.empty());
  EXPECT_TRUE(Noted(fragment, "no-gpu-events"));
  ASSERT_EQ(timeline.collectives.size(), 1u);
  EXPECT_EQ(timeline.collectives[0].gpu_event, kNoIndex);
  EXPECT_EQ(timeline.collectives[0].kind, OpKind::all_reduce);
}

TEST(TorchTraceImport, DeepNestingInWhatDescribesTheJobIsRefused) {
  const std::string deep(100'000, '[');
  const Fragment fragment = Read("{\"schemaVersion\": 1, \"distributedInfo\": {\"pg_config\": " + deep +
                                 std::string(100'000, ']') + "}, \"traceEvents\": []}");
  EXPECT_FALSE(fragment.speakers.at(0).rank.known());
}

TEST(TorchTraceFormat, KnowsItsOwnAndNoOther) {
  for (const char* name : {"torch_2_11_mesh_rank0.json", "torch_2_11_pipeline_rank1.json", "torch_1_13_rank2.json",
                           "torch_2_7_on_demand_rocm.json", "torch_unescaped.json"}) {
    const std::string text = Sample(name);
    EXPECT_EQ(kTorchTraceFormat.recognise(std::string_view(text).substr(0, 2000), "x"), Recognition::yes) << name;
  }
  for (const char* text : {"", "[1,2]", "{\"header\": {\"id\": \"0x1\"}}", "[rank0]: Traceback", "{\"traceEvent\": 1}",
                           "[{\"name\":\"forward-compute\",\"ph\":\"X\"}]", "{\"entries\": [], \"version\": \"2.10\"}"})
    EXPECT_EQ(kTorchTraceFormat.recognise(text, "trace.json"), Recognition::no) << text;
  EXPECT_EQ(kTorchTraceFormat.recognise("{\"traceEvents\": [{\"cat\": \"toplevel\"", "x"), Recognition::maybe);
  // Members in another order, the events beyond what is looked at.
  EXPECT_EQ(kTorchTraceFormat.recognise("{\"baseTimeNanoseconds\": 5, \"deviceProperties\": [", "x"), Recognition::yes);
  EXPECT_EQ(kTorchTraceFormat.recognise("{\"schemaVersion\": 2, \"rules\": []}", "x"), Recognition::no);
}

TEST(MatrixFlops, CountsAMultiplyAddAsTwo) {
  EXPECT_DOUBLE_EQ(MatrixFlops("aten::mm", {{2, 3}, {3, 5}}), 60);
  EXPECT_DOUBLE_EQ(MatrixFlops("aten::addmm", {{5}, {2, 3}, {3, 5}}), 60);
  EXPECT_DOUBLE_EQ(MatrixFlops("aten::bmm", {{7, 2, 3}, {7, 3, 5}}), 420);
  EXPECT_DOUBLE_EQ(
      MatrixFlops("aten::_scaled_dot_product_flash_attention", {{1, 2, 8, 4}, {1, 2, 16, 4}, {1, 2, 16, 4}}),
      4.0 * 2 * 8 * 4 * 16);
  EXPECT_DOUBLE_EQ(MatrixFlops("aten::mm", {}), 0);
  EXPECT_DOUBLE_EQ(MatrixFlops("aten::mm", {{2}, {3, 5}}), 0);
}

TEST(TorchTraceImport, ReadsABombUpToALimitAndSaysSo) {
  const std::string member = Gzip(std::string(1 << 20, ' '));
  std::string bomb = Gzip("{\"schemaVersion\": 1, \"traceEvents\": [");
  for (int i = 0; i < 600; ++i) bomb += member;
  Fragment fragment;
  ReadTorchTraceStream({"trace_rank1.json.gz", bomb, false}, fragment);
  EXPECT_TRUE(Noted(fragment, "too-large"));
  EXPECT_TRUE(Noted(fragment, "truncated"));
  EXPECT_EQ(fragment.bytes.total, uint64_t{512} << 20);
}

}  // namespace
}  // namespace tacet
