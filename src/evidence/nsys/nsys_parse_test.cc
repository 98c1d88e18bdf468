// SPDX-License-Identifier: Apache-2.0
#include "nsys_parse.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "nsys_steps.h"

namespace tacet {
namespace {

std::string Little(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

std::string Payload(uint64_t domain, uint64_t schema, const std::string& fields) {
  return Little(domain, 8) + Little(schema, 8) + Little(fields.size(), 8) + Little(fields.size() + 32, 8) + fields;
}

TEST(NsysPayload, ReadsTheFieldsThatTheSchemaNames) {
  NsysPayloadSchemas schemas;
  schemas.Add(3, 16777216, 18, "NCCL communicator ID", -1);
  schemas.Add(3, 16777216, 5, "No. of ranks", 8);
  schemas.Add(3, 16777216, 5, "Rank", 12);
  schemas.Add(3, 16777216, 5, "CUDA device", 16);
  NsysNcclArguments arguments;
  ASSERT_TRUE(schemas.Decode(
      Payload(3, 16777216, Little(0xfedcba9876543210, 8) + Little(64, 4) + Little(17, 4) + Little(1, 4) + Little(0, 4)),
      &arguments));
  EXPECT_EQ(arguments.comm_id, 0xfedcba9876543210u);
  EXPECT_EQ(arguments.nranks, 64);
  EXPECT_EQ(arguments.rank, 17);
  EXPECT_EQ(arguments.bytes, -1);
}

TEST(NsysPayload, ReadsWhatTheExporterDecoded) {
  NsysNcclArguments arguments;
  EXPECT_TRUE(DecodeNsysJson(R"({"NCCL communicator ID": 18364758544493064720, "Message size [bytes]": 4194304,)"
                             R"( "Reduction operation": "Sum", "Peer rank": -1})",
                             &arguments));
  EXPECT_EQ(arguments.comm_id, 0xfedcba9876543210u);
  EXPECT_EQ(arguments.bytes, 4194304);
  EXPECT_EQ(arguments.peer, -1);
  EXPECT_EQ(arguments.reduction, -1) << "a name is no number";
  NsysNcclArguments nested;
  EXPECT_TRUE(DecodeNsysJson(R"({"payload": [{"NCCL communicator ID": "0x2a", "Rank": "3"}]})", &nested));
  EXPECT_EQ(nested.comm_id, 42u);
  EXPECT_EQ(nested.rank, 3);
  for (const char* text :
       {"", "{", "[]", "{\"Rank\": [1]}", "{\"Rank\": {}}", "{\"seqNumber\": 4}", "Rank 3", "{\"Rank\""})
    EXPECT_FALSE(DecodeNsysJson(text, &nested)) << text;
}

TEST(NsysPayload, LeavesOutWhatDoesNotFit) {
  NsysPayloadSchemas schemas;
  schemas.Add(3, 7, 18, "NCCL communicator ID", -1);
  schemas.Add(3, 7, 22, "Message size [bytes]", 8);
  schemas.Add(3, 7, 5, "Root", 1 << 30);
  schemas.Add(3, 7, 20, "Peer rank", 0);  // a double is no rank
  NsysNcclArguments arguments;
  EXPECT_TRUE(schemas.Decode(Payload(3, 7, Little(9, 8) + "abc"), &arguments));
  EXPECT_EQ(arguments.comm_id, 9u);
  EXPECT_EQ(arguments.bytes, -1);
  EXPECT_EQ(arguments.root, -1);
  EXPECT_EQ(arguments.peer, -1);
  EXPECT_FALSE(schemas.Decode(Payload(4, 7, Little(9, 8)), &arguments));
  EXPECT_FALSE(schemas.Decode("short", &arguments));
  EXPECT_FALSE(schemas.Decode("", &arguments));
}

TEST(NsysPayload, ASizeThatIsNoSizeIsNotTaken) {
  NsysPayloadSchemas schemas;
  schemas.Add(3, 7, 22, "Message size [bytes]", 0);
  NsysNcclArguments arguments;
  ASSERT_TRUE(schemas.Decode(Payload(3, 7, std::string(8, '\xff')), &arguments));
  EXPECT_EQ(arguments.bytes, -1);
}

std::vector<TrainingStep> StepsOf(const std::vector<std::string>& texts) {
  NsysStepMarks marks;
  int64_t at = 0;
  for (const std::string& text : texts) marks.Add(text, 0, at, at + 90), at += 100;
  return marks.Find();
}

TEST(NsysSteps, KnowsTheWaysToMarkAnIteration) {
  for (const std::string form : {"ProfilerStep#", "step ", "Step: ", "iteration ", "iter_", "ITERATION=", "batch "}) {
    const auto steps = StepsOf({form + "7", form + "8", form + "9"});
    ASSERT_EQ(steps.size(), 3u) << form;
    EXPECT_EQ(steps[0].number, 7) << form;
    EXPECT_EQ(steps[2].number, 9) << form;
  }
  EXPECT_EQ(StepsOf({"train_step", "train_step"}).size(), 2u);
  EXPECT_EQ(StepsOf({"train_step", "train_step"})[1].number, 1);
}

TEST(NsysSteps, PartsOfAStepAreNoSteps) {
  EXPECT_TRUE(StepsOf({"step forward", "step forward"}).empty());
  EXPECT_TRUE(StepsOf({"stepper 1", "stepper 2"}).empty());
  EXPECT_TRUE(StepsOf({"forward", "backward", "optimizer"}).empty());
  EXPECT_TRUE(StepsOf({"step 1"}).empty());  // one mark marks nothing
}

TEST(NsysSteps, NumbersThatBeginAgainAreCounted) {
  const auto steps = StepsOf({"batch 0", "batch 1", "batch 0", "batch 1"});
  ASSERT_EQ(steps.size(), 4u);
  EXPECT_EQ(steps[3].number, 3);
}

TEST(NsysSteps, TheLongerKindWins) {
  NsysStepMarks marks;
  for (int i = 0; i < 4; ++i) {
    marks.Add("iteration " + std::to_string(i), 0, i * 1000, i * 1000 + 990);
    marks.Add("step " + std::to_string(i), 0, i * 1000 + 900, i * 1000 + 950);  // the optimizer's
  }
  EXPECT_EQ(marks.Find().front().end_ns, 990);
}

TEST(NsysIds, AreTakenApart) {
  const int64_t global = 0x100000000000000 + int64_t{4711} * 0x1000000 + 4799;
  EXPECT_EQ(NsysPid(global), 4711);
  EXPECT_EQ(NsysTid(global), 4799);
}

}  // namespace
}  // namespace tacet
