// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "evidence/flight_recorder/flight_recorder_test_dump.h"

namespace tacet {
namespace {

const std::vector<Call>& CallsOf(const Fragment& fragment) { return fragment.streams.at(0).calls; }

TEST(FlightRecorderJson, SaysTheSameAsThePickle) {
  const Fragment pickle = ReadFlight(ReadSample("v2.4_nccl_trace_rank_3"));
  for (const char* name : {"v2.9_torch_rank_3.json", "_dump_3.json"}) {
    const Fragment json = ReadFlight(ReadSample(name), name);
    ASSERT_EQ(CallsOf(json).size(), CallsOf(pickle).size());
    for (size_t i = 0; i < CallsOf(json).size(); ++i) {
      const Call& a = CallsOf(json)[i];
      const Call& b = CallsOf(pickle)[i];
      EXPECT_EQ(json.groups.at(size_t(a.group)).name, pickle.groups.at(size_t(b.group)).name);
      EXPECT_EQ(a.seq, b.seq);
      EXPECT_EQ(a.kind, b.kind);
      EXPECT_EQ(a.state, b.state);
      EXPECT_EQ(a.flags, b.flags);
      EXPECT_EQ(a.type, b.type);
      EXPECT_EQ(a.in_elements, b.in_elements);
      EXPECT_EQ(a.enter_wall_ns, b.enter_wall_ns);
      EXPECT_EQ(a.start_wall_ns, b.start_wall_ns) << "0 is no time";
      EXPECT_EQ(a.finish_wall_ns, b.finish_wall_ns);
      EXPECT_EQ(json.strings.Get(a.shape), pickle.strings.Get(b.shape));
    }
    ASSERT_EQ(json.streams[0].progress.size(), 2u);
    EXPECT_EQ(json.streams[0].progress[1].last_enqueued, 4) << "written as a string";
    EXPECT_EQ(json.streams[0].progress[1].last_started, -1);
    EXPECT_FALSE(json.streams[0].knows_start);
    EXPECT_EQ(json.groups.at(1).members, (std::vector<Rank>{{2}, {3}}));
    EXPECT_EQ(json.events.at(0).As<Version>().number, "2.27.5");
    EXPECT_TRUE(json.diagnostics.empty()) << name;
    EXPECT_EQ(json.speakers[0].rank, Rank{3});
  }
}

TEST(FlightRecorderJson, KeepsTheFramesAndTheLinesOfAReDump) {
  const std::string text = ReadSample("_dump_3.json");
  const Fragment fragment = ReadFlight(text, "_dump_3.json");
  const Call& second = CallsOf(fragment).at(1);
  ASSERT_EQ(fragment.stacks.Get(second.stack).size(), 4u);
  EXPECT_EQ(fragment.stacks.Get(second.stack)[2].line, 41u);
  EXPECT_EQ(text[second.offset], '{');
  EXPECT_EQ(second.line, 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(second.offset), '\n'));
}

TEST(FlightRecorderJson, ReadsABareListAndIntegerGroups) {
  const Fragment list = ReadFlight(R"([{"pg_id":0,"seq_id":3,"profiling_name":"nccl:broadcast","time_created_us":5}])");
  ASSERT_EQ(CallsOf(list).size(), 1u);
  EXPECT_EQ(CallsOf(list)[0].seq, 3u);
  EXPECT_EQ(CallsOf(list)[0].enter_wall_ns, 5000);
  const Fragment groups = ReadFlight(R"({"version":"1.2","pg_config":{"4":[1,7]},"entries":[]})");
  EXPECT_EQ(groups.groups.at(0).name, "4");
  EXPECT_EQ(groups.groups.at(0).members, (std::vector<Rank>{{1}, {7}}));
}

TEST(FlightRecorderJson, TakesAStubWithoutEntriesForAStub) {
  EXPECT_TRUE(ReadFlight(R"({"nccl_comm_state":{},"pg_config":{},"pg_status":{},"version":"2.9"})").stub);
}

TEST(FlightRecorderJson, SurvivesValuesOfTheWrongKind) {
  const Fragment fragment = ReadFlight(
      R"({"version":7,"pg_config":[1,{"a":2}],"pg_status":{"0":null,"1":{"last_enqueued_collective":[1]}},
      "entries":[null,3,{"profiling_name":"nccl:all_reduce","record_id":"x","pg_id":0,"input_sizes":{"a":[1]},
      "output_sizes":[[1,"b"],3],"frames":[1,{"name":2}],"process_group":"g","state":{},"retired":1,"duration_ms":NaN}]})");
  ASSERT_EQ(CallsOf(fragment).size(), 1u);
  EXPECT_EQ(CallsOf(fragment)[0].in_elements, -1);
  EXPECT_EQ(CallsOf(fragment)[0].out_elements, -1);
  EXPECT_TRUE(CallsOf(fragment)[0].has(kRetired));
  EXPECT_LT(CallsOf(fragment)[0].duration_ms, 0);
  EXPECT_NE(FindDiagnostic(fragment, "entries-skipped"), nullptr);
}

TEST(FlightRecorderJson, ResolvesEscapes) {
  const Fragment fragment =
      ReadFlight(R"([{"pg_id":0,"seq_id":3,"profiling_name":"nccl:\u0061ll_reduce","process_group":["0","a\"b"]}])");
  EXPECT_EQ(CallsOf(fragment).at(0).kind, OpKind::all_reduce);
  EXPECT_EQ(fragment.groups.at(0).description, "a\"b");
}

TEST(FlightRecorderJson, SaysWhereBrokenJsonBreaks) {
  const std::string text = R"({"version":"2.9","entries":[{"profiling_name":"a","pg_id":1,"seq_id":2},}}oops)";
  const Fragment fragment = ReadFlight(text);
  EXPECT_EQ(CallsOf(fragment).size(), 1u);
  ASSERT_NE(FindDiagnostic(fragment, "json-malformed"), nullptr);
  EXPECT_GT(FindDiagnostic(fragment, "json-malformed")->source.offset, 60u);
  EXPECT_TRUE(AddsUp(fragment, text.size()));
  EXPECT_GT(fragment.bytes.not_understood, 0u);
}

}  // namespace
}  // namespace tacet
