// SPDX-License-Identifier: Apache-2.0
#include "pipeline_trace_parse.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "evidence/format.h"

namespace tacet {

extern const Format kPipelineTraceFormat;

namespace {

std::string Sample() {
  std::ifstream in(std::string(TACET_SOURCE_DIR) + "/src/evidence/pipeline_trace/samples/two_stages.json",
                   std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Fragment Read(std::string_view bytes) {
  Fragment fragment;
  kPipelineTraceFormat.read({"timeline.json", bytes, false}, fragment);
  EXPECT_EQ(fragment.bytes.understood + fragment.bytes.ignored + fragment.bytes.not_understood, bytes.size());
  return fragment;
}

TEST(PipelineTrace, ReadsWorkersAndOperations) {
  const Fragment fragment = Read(Sample());
  ASSERT_EQ(fragment.pipeline_traces.size(), 1u);
  const PipelineTrace& trace = fragment.pipeline_traces[0];
  EXPECT_EQ(trace.dp_size, 2);
  EXPECT_EQ(trace.stages, 2);
  EXPECT_FALSE(trace.cut);
  size_t forwards = 0;
  for (const PipelineOperation& operation : trace.operations) {
    if (operation.op != PipelineOp::forward_compute) continue;
    ++forwards;
    EXPECT_EQ(operation.end_ns - operation.start_ns, operation.stage == 0 ? 1'000'125 : 1'500'063);
    EXPECT_EQ(operation.microbatch, operation.seq);
  }
  EXPECT_EQ(forwards, 2u * 2 * 2 * 3);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(PipelineTrace, KeepsWhatStandsBeforeACut) {
  const std::string text = Sample();
  const Fragment fragment = Read(std::string_view(text).substr(0, text.size() / 2));
  EXPECT_TRUE(fragment.pipeline_traces[0].cut);
  EXPECT_TRUE(
      fragment.pipeline_traces[0].operations.empty());  // names of threads stand at the end: nobody can be placed
  EXPECT_FALSE(fragment.diagnostics.empty());
}

TEST(PipelineTrace, CountsOperationsOfUnknownKinds) {
  const Fragment fragment =
      Read(R"([{"name":"thread_name","pid":0,"tid":0,"ph":"M","args":{"name":"PP rank 0, TP rank 0, compute"}},)"
           R"({"name":"data-load","pid":0,"tid":0,"ts":1,"dur":2,"ph":"X","args":{"step":1,"seq_id":0}}])");
  ASSERT_EQ(fragment.pipeline_traces[0].operations.size(), 1u);
  EXPECT_EQ(fragment.pipeline_traces[0].operations[0].op, PipelineOp::other);
}

TEST(PipelineTrace, KeepsATransferThatEndsBeforeItsLastPartnerCame) {
  const Fragment fragment =
      Read(R"([{"name":"thread_name","pid":0,"tid":0,"ph":"M","args":{"name":"PP rank 0, TP rank 0, pp-comm"}},)"
           R"({"name":"forward-send","pid":0,"tid":0,"ts":100,"dur":-31.25,"ph":"X","args":{"step":1,"seq_id":0}}])");
  ASSERT_EQ(fragment.pipeline_traces[0].operations.size(), 1u);
  EXPECT_EQ(fragment.pipeline_traces[0].operations[0].end_ns, 68'750);
  EXPECT_EQ(fragment.bytes.not_understood, 0u);
}

TEST(PipelineTrace, SurvivesRubbish) {
  for (const char* text : {"", "[", "[{", "[{\"args\":[", "{}", "[{\"ph\":\"X\",\"ts\":NaN,\"dur\":1}]",
                           "[{\"ph\":\"X\",\"ts\":1e300,\"dur\":-1}]"})
    EXPECT_TRUE(Read(text).pipeline_traces[0].operations.empty()) << text;
}

TEST(PipelineTrace, IsRecognisedByItsOperations) {
  EXPECT_EQ(kPipelineTraceFormat.recognise(Sample().substr(0, 3000), "x"), Recognition::yes);
  for (const char* text :
       {"", "[1, 2]", "{\"traceEvents\": []}", "[{\"ph\":\"X\",\"name\":\"aten::mm\",\"args\":{\"step\":1}}]"})
    EXPECT_EQ(kPipelineTraceFormat.recognise(text, "timeline.json"), Recognition::no) << text;
}

}  // namespace
}  // namespace tacet
