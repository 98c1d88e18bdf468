// SPDX-License-Identifier: Apache-2.0
#include "evidence/flight_recorder/flight_recorder_parse.h"

#include <gtest/gtest.h>

#include "evidence/flight_recorder/flight_recorder_keys.h"
#include "evidence/flight_recorder/flight_recorder_test_dump.h"

namespace tacet {
namespace {

using namespace pickle;

Recognition Recognise(std::string_view bytes, std::string_view name) {
  return kFlightRecorderFormat.recognise(bytes.substr(0, kPrefixBytes), name);
}

TEST(FlightRecorderRecognition, SaysYesToEverySampleByItsContent) {
  ASSERT_GE(SampleNames().size(), 15u);
  for (const std::string& name : SampleNames()) EXPECT_EQ(Recognise(ReadSample(name), "x"), Recognition::yes) << name;
}

TEST(FlightRecorderRecognition, SaysNoToWhatOtherToolsWrite) {
  const std::string others[] = {
      "host:12:34 [0] NCCL INFO NCCL version 2.28.9+cuda12.8\n",
      "[rank3]:[E626 16:48:25.440243908 ProcessGroupNCCL.cpp:670] [Rank 3] Some NCCL operations have failed\n",
      "[  12.345678] Out of memory: Killed process 123 (python3)\n",
      "Thread 0x00007f (most recent call first):\n  File \"train.py\", line 3 in <module>\n",
      "#       size         count      type   redop    root     time   algbw   busbw\n",
      R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "pg_config": [{"pg_name": "0"}]},
          "traceEvents": []})",
      R"({"header": {"id": "0x7f"}, "metadata": {"rank": 0}, "coll_perf": {"coll": "AllReduce"}})",
      R"([{"name": "entries", "version": 1}])",
      File(Dict({Of("segments", List({})), Of("device_traces", List({}))})),
      File(List({Int(1), Int(2)})),
      "",
  };
  for (const std::string& bytes : others)
    EXPECT_EQ(Recognise(bytes, "some.file"), Recognition::no) << bytes.substr(0, 40);
}

TEST(FlightRecorderRecognition, SaysMaybeToWhatHasADumpsNameAndCouldBeOne) {
  for (const std::string& bytes : {std::string(), std::string("\x80"), std::string("cos\nsystem\n(S'id'\ntR."),
                                   File(Text("x")), std::string("{\"a\": 1}")}) {
    EXPECT_EQ(Recognise(bytes, "logs/nccl_trace_rank_3"), Recognition::maybe) << bytes;
    EXPECT_EQ(Recognise(bytes, "other"), Recognition::no) << bytes;
  }
  EXPECT_EQ(Recognise("host:12:34 [0] NCCL INFO hello\n", "nccl_trace_rank_3.log"), Recognition::no);
}

TEST(FlightRecorderRecognition, KnowsALargeDumpWhosePrefixHoldsNoEntryYet) {
  std::string ranks = "[0";
  for (int i = 1; i < 30000; ++i) ranks += ", " + std::to_string(i);
  const std::string bytes = WriteDump({EntryText{}}, {}, {{"0", "default_pg", ranks + "]"}});
  ASSERT_EQ(bytes.substr(0, kPrefixBytes).find("profiling_name"), std::string::npos);
  EXPECT_EQ(Recognise(bytes, "x"), Recognition::yes);
}

TEST(FlightRecorderVersion, ComparesAsNumbersNotAsAFraction) {
  EXPECT_LT(ParseFlightVersion("2.9"), ParseFlightVersion("2.10"));
  EXPECT_LT(ParseFlightVersion("1.5"), ParseFlightVersion("2.0"));
  EXPECT_EQ(ParseFlightVersion("2.1"), (FlightVersion{2, 1}));
  EXPECT_EQ(ParseFlightVersion("nonsense"), (FlightVersion{}));
}

TEST(FlightRecorderVersion, ReadsTheBareListOfPyTorch22) {
  StringTable strings;
  const FlightDump dump = ParseFlightDump(ReadSample("v2.2_list_nccl_trace_rank_2"), strings);
  ASSERT_EQ(dump.ending, FlightEnding::whole) << dump.problem;
  EXPECT_EQ(dump.version, "");
  ASSERT_EQ(dump.entries.size(), 5u);
  const FlightEntry& first = dump.entries[0];
  EXPECT_EQ(first.created_ns, kDumpTime / 1000 * 1000);  // written in microseconds
  EXPECT_EQ(first.collective_seq, 1);
  EXPECT_EQ(first.p2p_seq, -1);
  EXPECT_EQ(first.record_id, -1);
  EXPECT_EQ(first.in_elements, 1024 * 256);
  EXPECT_EQ(first.state, FlightState::completed);
  EXPECT_EQ(dump.entries[4].state, FlightState::scheduled);
  EXPECT_EQ(first.offset, 4u);
}

TEST(FlightRecorderVersion, ReadsTheIntegerGroupsOfVersion12) {
  StringTable strings;
  const std::string bytes =
      File(Dict({Of("entries",
                    List({Dict({Of("pg_id", Int(1)), Of("seq_id", Int(7)), Of("profiling_name", Text("nccl:broadcast")),
                                Of("time_created_ns", Int(kDumpTime))})})),
                 Of("version", Text("1.2")),
                 Of("pg_config", Dict({{Int(0), List({Int(0), Int(1), Int(2)})}, {Int(1), List({Int(2), Int(0)})}}))}));
  const FlightDump dump = ParseFlightDump(bytes, strings);
  ASSERT_EQ(dump.ending, FlightEnding::whole) << dump.problem;
  EXPECT_EQ(dump.version, "1.2");
  ASSERT_EQ(dump.groups.size(), 2u);
  EXPECT_EQ(strings.Get(dump.groups[1].name), "1");
  EXPECT_EQ(dump.rank_lists[dump.groups[1].ranks], (std::vector<int32_t>{2, 0}));
  ASSERT_EQ(dump.entries.size(), 1u);
  EXPECT_EQ(dump.entries[0].collective_seq, 7);
}

TEST(FlightRecorderVersion, ReadsEveryReleaseFrom14To210) {
  struct Expected {
    const char* sample;
    const char* version;
    size_t entries, groups, statuses;
    const char* library;
  };
  for (const Expected& expected :
       {Expected{"v1.4_nccl_trace_rank_1", "1.4", 8, 2, 0, ""}, Expected{"v2.1_nccl_trace_rank_3", "2.1", 8, 2, 0, ""},
        Expected{"v2.4_nccl_trace_rank_3", "2.4", 8, 2, 2, ""},
        Expected{"v2.9_active_nccl_trace_rank_5", "2.9", 2, 4, 4, "2.27.3"},
        Expected{"v2.9_coalesced_comm_lib_trace_rank_1", "2.9", 7, 2, 1, "2.27.5"},
        Expected{"v2.10_hang_nccl_trace_rank_0", "2.10", 56, 3, 2, "2.28.9"},
        Expected{"v2.10_pipeline_nccl_trace_rank_3", "2.10", 208, 1, 1, "2.28.9"},
        Expected{"v2.9_torch_rank_3.json", "2.9", 8, 2, 2, "2.27.5"},
        Expected{"_dump_3.json", "2.9", 8, 2, 2, "2.27.5"}, Expected{"v2.10_gloo_rank_1.json", "2.10", 4, 1, 0, ""}}) {
    StringTable strings;
    const FlightDump dump = ParseFlightDump(ReadSample(expected.sample), strings);
    EXPECT_EQ(dump.ending, FlightEnding::whole) << expected.sample << dump.problem;
    EXPECT_EQ(dump.version, expected.version) << expected.sample;
    EXPECT_EQ(dump.entries.size(), expected.entries) << expected.sample;
    EXPECT_EQ(dump.groups.size(), expected.groups) << expected.sample;
    EXPECT_EQ(dump.statuses.size(), expected.statuses) << expected.sample;
    EXPECT_EQ(dump.library_version, expected.library) << expected.sample;
    EXPECT_EQ(dump.skipped_entries, 0u) << expected.sample;
  }
}

TEST(FlightRecorderVersion, ReadsWhatPythonWritesInAnyProtocolAlike) {
  StringTable strings;
  const FlightDump want = ParseFlightDump(ReadSample("v2.10_python_protocol2_nccl_trace_rank_3"), strings);
  ASSERT_EQ(want.entries.size(), 8u);
  EXPECT_EQ(want.stacks.size(), 3u);  // the empty one, and two that the entries share
  for (const char* name : {"v2.10_python_protocol3_nccl_trace_rank_3", "v2.10_python_protocol4_nccl_trace_rank_3",
                           "v2.10_python_protocol5_nccl_trace_rank_3"}) {
    const FlightDump got = ParseFlightDump(ReadSample(name), strings);
    EXPECT_EQ(got.ending, FlightEnding::whole) << name << got.problem;
    ASSERT_EQ(got.entries.size(), want.entries.size()) << name;
    for (size_t i = 0; i < got.entries.size(); ++i) {
      EXPECT_EQ(got.entries[i].name, want.entries[i].name);
      EXPECT_EQ(got.entries[i].group_name, want.entries[i].group_name);
      EXPECT_EQ(got.entries[i].created_ns, want.entries[i].created_ns);
      EXPECT_EQ(got.entries[i].in_elements, want.entries[i].in_elements);
      EXPECT_EQ(got.entries[i].data_type, want.entries[i].data_type);
      EXPECT_EQ(got.entries[i].fields, want.entries[i].fields);
      EXPECT_EQ(got.entries[i].stack, want.entries[i].stack);
    }
    EXPECT_EQ(got.groups.size(), want.groups.size());
    EXPECT_EQ(got.statuses.size(), want.statuses.size());
    EXPECT_EQ(got.frames, want.frames);
  }
}

TEST(FlightRecorderVersion, ReadsListsAndDictsOfOneItemThatPythonWritesWithoutAMark) {
  StringTable strings;
  const FlightDump dump = ParseFlightDump(ReadSample("v2.10_python_single_nccl_trace_rank_0"), strings);
  ASSERT_EQ(dump.ending, FlightEnding::whole) << dump.problem;
  ASSERT_EQ(dump.groups.size(), 1u);
  EXPECT_EQ(strings.Get(dump.groups[0].description), "default_pg");
  EXPECT_EQ(dump.rank_lists[dump.groups[0].ranks].size(), 4u);
  ASSERT_EQ(dump.statuses.size(), 1u);
  EXPECT_EQ(dump.statuses[0].pg_id, 0);
  EXPECT_EQ(dump.statuses[0].last_completed, 3);
  ASSERT_EQ(dump.entries.size(), 1u);
  EXPECT_EQ(dump.entries[0].in_elements, 1024 * 256);
  EXPECT_EQ(strings.Get(dump.entries[0].data_type), "BFloat16");
}

TEST(FlightRecorderVersion, TakesRanksAsAListWhereAToolWroteOne) {
  StringTable strings;
  const std::string config = Dict({Of("5", Dict({Of("name", Text("5")), Of("ranks", List({Int(4), Int(6)}))}))});
  const FlightDump dump = ParseFlightDump(File(Dict({Of("version", Text("2.4")), Of("pg_config", config)})), strings);
  ASSERT_EQ(dump.groups.size(), 1u);
  EXPECT_EQ(dump.rank_lists[dump.groups[0].ranks], (std::vector<int32_t>{4, 6}));
}

TEST(FlightRecorderPickle, ReadsIntegersOfEveryLength) {
  const auto read = [](const std::string& number) {
    StringTable strings;
    const FlightDump dump = ParseFlightDump(
        File(List({Dict({Of("profiling_name", Text("a")), Of("pg_id", Int(1)), Of("record_id", number)})})), strings);
    return dump.entries.empty() ? -99 : dump.entries[0].record_id;
  };
  EXPECT_EQ(read(Int(7)), 7);
  EXPECT_EQ(read(Int(300)), 300);
  EXPECT_EQ(read(Int(-1)), -1);
  EXPECT_EQ(read(Int(INT64_MAX)), INT64_MAX);
  EXPECT_EQ(read("\x8a" + Bytes(0, 1)), 0);
  EXPECT_EQ(read("\x8a\x01\xff"), -1);
  EXPECT_EQ(read("\x8a\x03" + Bytes(0x123456, 3)), 0x123456);
  EXPECT_EQ(read("\x8b" + Bytes(2, 4) + Bytes(0x1234, 2)), 0x1234);
  EXPECT_EQ(read("\x8a\x0a" + Bytes(1, 10)), -1) << "beyond 64 bits: not read";
}

TEST(FlightRecorderPickle, SharesStacksAndShapesThatRepeat) {
  StringTable strings;
  const FlightDump dump = ParseFlightDump(ReadSample("v2.10_hang_nccl_trace_rank_0"), strings);
  EXPECT_LT(dump.stacks.size(), 8u);
  const FlightEntry& entry = dump.entries[0];
  ASSERT_EQ(dump.stacks[entry.stack].count, 5u);
  const auto frame = [&](uint32_t i) { return dump.frames[dump.stack_frames[dump.stacks[entry.stack].begin + i]]; };
  EXPECT_EQ(strings.Get(frame(0).function), "all_reduce") << "innermost first";
  EXPECT_EQ(frame(0).line, 3068u);
  EXPECT_EQ(strings.Get(frame(4).function), "<module>");
  EXPECT_EQ(strings.Get(entry.shape), "[[262144]]");
}

TEST(FlightRecorderPickle, CountsElementsOverAllTensors) {
  const auto read = [](std::vector<std::vector<int64_t>> sizes) {
    StringTable strings;
    EntryText entry;
    entry.in = std::move(sizes);
    const FlightDump dump = ParseFlightDump(WriteDump({entry}), strings);
    return std::pair(dump.entries.at(0).in_elements, std::string(strings.Get(dump.entries.at(0).shape)));
  };
  EXPECT_EQ(read({{2, 3}, {4}}), std::pair(int64_t{10}, std::string("[[2, 3], [4]]")));
  EXPECT_EQ(read({{}}), std::pair(int64_t{1}, std::string("[[]]"))) << "a scalar";
  EXPECT_EQ(read({}), std::pair(int64_t{0}, std::string("[]")));
  EXPECT_EQ(read({{0, 5}}).first, 0);
  EXPECT_EQ(read({{int64_t{1} << 40, int64_t{1} << 40}}).first, -1) << "more than 64 bits hold";
  EXPECT_EQ(read({{int64_t{1} << 60}}).first, -1) << "elements times bytes would overflow";
  EXPECT_EQ(read({{-1, 5}}).first, -1);
  EXPECT_EQ(read({{int64_t{1} << 58}, {int64_t{1} << 58}}).first, -1);
  const std::string text = read(std::vector<std::vector<int64_t>>(50, {1024})).second;
  EXPECT_EQ(text.size(), 80u);
  EXPECT_TRUE(text.ends_with("...")) << text;
  EXPECT_EQ(read(std::vector<std::vector<int64_t>>(1, std::vector<int64_t>(65, 1))).first, -1) << "no tensor has that";
}

TEST(FlightRecorderPickle, LeavesOutWhatIsNoEntry) {
  StringTable strings;
  const std::string bytes =
      File(Dict({Of("version", Text("2.10")), Of("entries", List({Dict({}), EntryText{}.Write(), Int(3), Dict({})}))}));
  const FlightDump dump = ParseFlightDump(bytes, strings);
  EXPECT_EQ(dump.entries.size(), 1u);
  EXPECT_EQ(dump.skipped_entries, 2u);
}

}  // namespace
}  // namespace tacet
