// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "evidence/flight_recorder/flight_recorder_test_dump.h"

namespace tacet {
namespace {

const CallStream& StreamOf(const Fragment& fragment) { return fragment.streams.at(0); }
const Call& CallAt(const Fragment& fragment, size_t index) { return fragment.streams.at(0).calls.at(index); }
const Group& GroupOf(const Fragment& fragment, const Call& call) {
  return fragment.groups.at(static_cast<size_t>(call.group));
}
// "name enqueued/completed" of each row of pg_status, "-" where its group is not known.
std::vector<std::string> ProgressOf(const Fragment& fragment) {
  std::vector<std::string> rows;
  for (const GroupProgress& row : StreamOf(fragment).progress)
    rows.push_back((row.group == GroupIndex::none ? "-" : fragment.groups[static_cast<size_t>(row.group)].name) + " " +
                   std::to_string(row.last_enqueued) + "/" + std::to_string(row.last_completed));
  return rows;
}

TEST(FlightRecorderImport, ReadsARealHang) {
  const std::string bytes = ReadSample("v2.10_hang_nccl_trace_rank_0");
  const Fragment fragment = ReadFlight(bytes, "run/v2.10_hang_nccl_trace_rank_0");
  EXPECT_TRUE(AddsUp(fragment, bytes.size()));
  EXPECT_EQ(fragment.bytes.understood, bytes.size());
  EXPECT_TRUE(fragment.diagnostics.empty());
  ASSERT_EQ(fragment.speakers.size(), 1u);
  EXPECT_EQ(fragment.speakers[0].rank, Rank{0});
  EXPECT_EQ(fragment.speakers[0].rank_certainty, Certainty::assumed);
  EXPECT_EQ(fragment.speakers[0].world_size, 8);
  ASSERT_EQ(fragment.events.size(), 1u);
  EXPECT_EQ(fragment.events[0].kind, EventKind::nccl_version);
  EXPECT_EQ(fragment.events[0].As<Version>().number, "2.28.9");

  const CallStream& stream = StreamOf(fragment);
  EXPECT_EQ(stream.source, CallSource::flight_recorder);
  EXPECT_TRUE(stream.from_start);
  EXPECT_TRUE(stream.knows_start);
  EXPECT_TRUE(stream.knows_finish);
  EXPECT_FALSE(stream.only_active);
  EXPECT_FALSE(stream.cut);
  EXPECT_FALSE(stream.stub);
  ASSERT_EQ(stream.calls.size(), 56u);
  EXPECT_EQ(ProgressOf(fragment), (std::vector<std::string>{"71994ac1b1b448fde31999fe98c557bcb07a31a5 14/13",
                                                            "ad56679d2c95f00a464e146ac76c2deb475d8262 42/39"}));
  const Call& last = stream.calls.back();
  EXPECT_EQ(last.kind, OpKind::all_reduce);
  EXPECT_EQ(last.seq, 14u);
  EXPECT_EQ(last.state, CallState::enqueued);
  EXPECT_EQ(last.type, DataType::float32);
  EXPECT_EQ(last.in_elements, 1048576);
  EXPECT_EQ(last.record, 55u);
  EXPECT_EQ(last.timeout_ms, 20000u);
  EXPECT_EQ(last.enter_wall_ns, 1794702489120156288);
  EXPECT_EQ(last.finish_wall_ns, kNoTime);
  EXPECT_EQ(last.flags, 0);
  EXPECT_EQ(bytes[last.offset], '}');
  const Group& group = GroupOf(fragment, last);
  EXPECT_EQ(group.description, "mesh_dp") << "pg_config leaves it empty, the entry has it";
  EXPECT_EQ(group.members, (std::vector<Rank>{{0}, {2}, {4}, {6}}));
  EXPECT_EQ(group.size, 4);
  ASSERT_EQ(fragment.stacks.Get(last.stack).size(), 5u);
  EXPECT_EQ(fragment.strings.Get(fragment.stacks.Get(last.stack)[4].function), "<module>");
  EXPECT_EQ(stream.calls[0].flags, kRetired);
  EXPECT_NEAR(stream.calls[0].duration_ms, 347.4, 0.1);
  EXPECT_EQ(stream.captured_wall_ns, 1794702520239743750);
}

TEST(FlightRecorderImport, TakesTheRankFromTheNameOnlyAndSaysWhenThereIsNone) {
  EXPECT_EQ(ReadFlight(WriteDump({EntryText{}}), "a/comm_lib_trace_rank_17").speakers.at(0).rank, Rank{17});
  EXPECT_EQ(ReadFlight(WriteDump({EntryText{}}), "a/_dump_5.json").speakers.at(0).rank, Rank{5});
  const Fragment nameless = ReadFlight(WriteDump({EntryText{}}), "trace.pkl");
  EXPECT_FALSE(nameless.speakers.at(0).rank.known());
  EXPECT_EQ(nameless.speakers.at(0).rank_certainty, Certainty::none);
  EXPECT_NE(FindDiagnostic(nameless, "rank-unknown"), nullptr);
}

TEST(FlightRecorderImport, NumbersPointToPointByItsOwnCounterAndFindsThePeer) {
  const Fragment fragment = ReadFlight(WriteDump({
      {.record = 0, .collective_seq = 4, .p2p_seq = 9, .name = "nccl:send 0->1", .is_p2p = true},
      {.record = 1, .collective_seq = 4, .p2p_seq = 10, .name = "nccl:recv 0<-3", .is_p2p = true},
      {.record = 2, .collective_seq = 5, .p2p_seq = 10, .name = "nccl:_reduce_oop"},
  }));
  EXPECT_EQ(CallAt(fragment, 0).kind, OpKind::send);
  EXPECT_EQ(CallAt(fragment, 0).seq, 9u);
  EXPECT_EQ(CallAt(fragment, 0).peer, GroupRank{1});
  EXPECT_TRUE(CallAt(fragment, 0).has(kPointToPoint));
  EXPECT_EQ(CallAt(fragment, 1).kind, OpKind::recv);
  EXPECT_EQ(CallAt(fragment, 1).peer, GroupRank{3});
  EXPECT_EQ(CallAt(fragment, 2).kind, OpKind::reduce);
  EXPECT_EQ(CallAt(fragment, 2).seq, 5u);
  EXPECT_FALSE(CallAt(fragment, 2).has(kPointToPoint));
  EXPECT_FALSE(CallAt(fragment, 2).peer.known());
}

TEST(FlightRecorderImport, ReadsTheNamesOfOtherRecorders) {
  const Fragment fragment = ReadFlight(WriteDump({{.record = 0, .name = "gloo:all_reduce"},
                                                  {.record = 1, .name = "xccl:_all_gather_base"},
                                                  {.record = 2, .name = "ncclx:broadcast"},
                                                  {.record = 3, .name = "nccl2:all_to_all_single"},
                                                  {.record = 4, .name = "vendor:teleport"}}));
  const OpKind kinds[] = {OpKind::all_reduce, OpKind::all_gather, OpKind::broadcast, OpKind::all_to_all,
                          OpKind::unknown};
  for (size_t i = 0; i < std::size(kinds); ++i) EXPECT_EQ(CallAt(fragment, i).kind, kinds[i]) << i;
  EXPECT_EQ(fragment.strings.Get(CallAt(fragment, 4).name), "vendor:teleport");
  EXPECT_TRUE(fragment.events.empty()) << "comm_lib_version of a gloo dump is not NCCL's";
}

TEST(FlightRecorderImport, NamesGroupsByNumberBeforeVersion15) {
  const Fragment fragment = ReadFlight(ReadSample("v1.4_nccl_trace_rank_1"));
  ASSERT_EQ(fragment.groups.size(), 2u);
  EXPECT_EQ(GroupOf(fragment, CallAt(fragment, 1)).name, "1");
  EXPECT_EQ(GroupOf(fragment, CallAt(fragment, 1)).members, (std::vector<Rank>{{1}, {3}}));
  const Fragment list = ReadFlight(ReadSample("v2.2_list_nccl_trace_rank_2"));
  ASSERT_EQ(list.groups.size(), 1u);
  EXPECT_EQ(list.groups[0].name, "0");
  EXPECT_TRUE(list.groups[0].members.empty());
  EXPECT_TRUE(StreamOf(list).from_start) << "no record_id, but the group begins with its first operation";
  EXPECT_FALSE(StreamOf(list).knows_start);
}

TEST(FlightRecorderImport, MakesGroupsThatOnlyEntriesName) {
  const Fragment fragment =
      ReadFlight(WriteDump({{.record = 0}, {.record = 1, .pg_id = 3, .group = "77", .description = "late"}}));
  ASSERT_EQ(fragment.groups.size(), 2u);
  EXPECT_EQ(fragment.groups[1].name, "77");
  EXPECT_EQ(fragment.groups[1].description, "late");
  EXPECT_TRUE(fragment.groups[1].members.empty());
  EXPECT_EQ(fragment.groups[1].size, -1);
}

TEST(FlightRecorderImport, TellsGroupsOfOneNameApartByTheirDescription) {
  const Fragment fragment = ReadFlight(WriteDump({{.record = 0, .pg_id = 1, .group = "ab", .description = "mesh_dp"},
                                                  {.record = 1, .pg_id = 2, .group = "ab", .description = "mesh_tp"},
                                                  {.record = 2, .pg_id = 1, .group = "ab", .description = "mesh_dp"}},
                                                 {}, {{"ab", "", "[0, 1]"}}));
  ASSERT_EQ(fragment.groups.size(), 2u);
  EXPECT_EQ(fragment.groups[0].description, "mesh_dp");
  EXPECT_EQ(CallAt(fragment, 0).group, CallAt(fragment, 2).group);
  EXPECT_NE(CallAt(fragment, 0).group, CallAt(fragment, 1).group);
}

TEST(FlightRecorderImport, KeepsTheFileOrderOfUnsortedRanks) {
  const Fragment fragment = ReadFlight(WriteDump({EntryText{}}, {}, {{"0", "default_pg", "[3, 1, 0, 2]"}}));
  EXPECT_EQ(fragment.groups.at(0).members, (std::vector<Rank>{{3}, {1}, {0}, {2}}));
}

// pg_status is keyed by a number of this rank alone; pg_config by name. Entries have both.
TEST(FlightRecorderProgress, FollowsEntriesFromPgIdToGroup) {
  const Fragment fragment = ReadFlight(WriteDump({{.record = 0, .pg_id = 5, .group = "9", .description = "x"}},
                                                 {{"5", 7, -1, 6}}, {{"0", "default_pg", "[0]"}, {"9", "x", "[0]"}}));
  EXPECT_EQ(ProgressOf(fragment), (std::vector<std::string>{"9 7/6"}));
}

TEST(FlightRecorderProgress, PairsCountedNamesAndNumbersInTheirOrder) {
  EXPECT_EQ(ProgressOf(ReadFlight(ReadSample("v2.9_active_nccl_trace_rank_5"))),
            (std::vector<std::string>{"0 12/12", "3 310/310", "12 44/44", "40 9001/8999"}));
}

TEST(FlightRecorderProgress, LeavesOutWhatCouldBeEitherOfTwo) {
  const std::vector<GroupText> groups = {{"0", "default_pg", "[0]"}, {"aa", "", "[0]"}, {"bb", "", "[0]"}};
  EXPECT_EQ(ProgressOf(ReadFlight(WriteDump({}, {{"1", 3, -1, 3}, {"2", 4, -1, 4}}, groups))),
            (std::vector<std::string>{"- 3/3", "- 4/4"}));
  const std::vector<GroupText> counted = {{"0", "default_pg", "[0]"}, {"1", "a", "[0]"}, {"2", "b", "[0]"}};
  EXPECT_EQ(ProgressOf(ReadFlight(WriteDump({}, {{"0", 9, -1, 9}, {"2", 3, -1, 3}}, counted))),
            (std::vector<std::string>{"0 9/9", "- 3/3"}));
}

TEST(FlightRecorderProgress, MatchesTheLastRowWithTheLastGroup) {
  const std::vector<GroupText> groups = {{"0", "default_pg", "[0]"}, {"aa", "", "[0]"}, {"bb", "", "[0]"}};
  const EntryText known = {.record = 0, .pg_id = 2, .group = "aa", .description = "tp"};
  EXPECT_EQ(ProgressOf(ReadFlight(WriteDump({known}, {{"1", 3, -1, 3}, {"2", 4, -1, 4}}, groups))),
            (std::vector<std::string>{"bb 3/3", "aa 4/4"}));
}

TEST(FlightRecorderProgress, DoesNotPairWhenTheCountersDisagree) {
  const std::vector<GroupText> groups = {
      {"0", "default_pg", "[0]"}, {"1", "a", "[0]"}, {"2", "b", "[0]"}, {"3", "c", "[0]"}, {"4", "d", "[0]"}};
  const Fragment fragment =
      ReadFlight(WriteDump({{.record = 0, .pg_id = 1, .group = "4", .description = "d"},
                            {.record = 1, .pg_id = 2, .group = "1", .description = "a"}},
                           {{"1", 1, -1, 0}, {"2", 1, -1, 0}, {"3", 5, -1, 5}, {"4", 6, -1, 6}}, groups));
  EXPECT_EQ(ProgressOf(fragment), (std::vector<std::string>{"4 1/0", "1 1/0", "- 5/5", "- 6/6"}));
}

// The known lies of records, one test each.

TEST(FlightRecorderLies, ScheduledSaysNothingOfTheStartWithoutTiming) {
  const Fragment off = ReadFlight(WriteDump({EntryText{}}, {{"0", 1, -1, -1}}));
  EXPECT_FALSE(StreamOf(off).knows_start);
  EXPECT_TRUE(StreamOf(ReadFlight(WriteDump({EntryText{}}, {{"0", 2, 1, 1}}))).knows_start);
  EXPECT_TRUE(StreamOf(ReadFlight(WriteDump({{.state = "started", .started = kDumpTime + 5}}))).knows_start);
}

TEST(FlightRecorderLies, CompletedAfterTheTimeoutWasAnAbort) {
  const int64_t limit = 600'000'000'000;
  const Fragment fragment = ReadFlight(WriteDump({
      {.record = 0, .state = "completed", .completed = kDumpTime + limit - 1},
      {.record = 1, .state = "completed", .completed = kDumpTime + limit},
      {.record = 2, .state = "completed", .completed = kDumpTime + limit, .timeout_ms = 0},
  }));
  EXPECT_FALSE(CallAt(fragment, 0).has(kEndedByAbort));
  EXPECT_TRUE(CallAt(fragment, 1).has(kEndedByAbort));
  EXPECT_EQ(CallAt(fragment, 1).state, CallState::completed);
  EXPECT_FALSE(CallAt(fragment, 2).has(kEndedByAbort)) << "no limit known";
}

TEST(FlightRecorderLies, RetiredIsNotCompleted) {
  const Fragment fragment = ReadFlight(WriteDump({{.retired = true}}));
  EXPECT_TRUE(CallAt(fragment, 0).has(kRetired));
  EXPECT_EQ(CallAt(fragment, 0).state, CallState::enqueued);
}

TEST(FlightRecorderLies, TheRingForgetsItsBeginningSilently) {
  const EntryText done = {.record = 41, .state = "completed", .completed = kDumpTime + 5};
  EXPECT_FALSE(StreamOf(ReadFlight(WriteDump({done}))).from_start);
  EXPECT_FALSE(StreamOf(ReadFlight(WriteDump({done}))).only_active);
}

TEST(FlightRecorderLies, GapsInRecordIdMeanThatCompletedEntriesWereLeftOut) {
  EXPECT_TRUE(StreamOf(ReadFlight(WriteDump({{.record = 3}, {.record = 6}}))).only_active);
  EXPECT_FALSE(StreamOf(ReadFlight(WriteDump({{.record = 3}, {.record = 4}}))).only_active);
  // The recorder was reset in between: the numbers start again, nothing was left out.
  EXPECT_FALSE(StreamOf(ReadFlight(WriteDump({{.record = 9}, {.record = 0}, {.record = 1}}))).only_active);
}

TEST(FlightRecorderLies, NoCompletedEntryThoughWorkCompletedMeansOnlyActive) {
  EXPECT_TRUE(StreamOf(ReadFlight(WriteDump({{.record = 8}, {.record = 9}}, {{"0", 10, -1, 8}}))).only_active);
  const EntryText done = {.record = 7, .state = "completed", .completed = kDumpTime + 5};
  EXPECT_FALSE(StreamOf(ReadFlight(WriteDump({done, {.record = 8}}, {{"0", 10, -1, 8}}))).only_active);
}

TEST(FlightRecorderLies, AnEmptyDumpOfARecorderThatWasOffIsAStub) {
  const Fragment stub = ReadFlight(ReadSample("v2.10_stub_nccl_trace_rank_1"));
  EXPECT_TRUE(stub.stub);
  EXPECT_TRUE(StreamOf(stub).stub);
  ASSERT_NE(FindDiagnostic(stub, "stub-dump"), nullptr);
  EXPECT_NE(FindDiagnostic(stub, "stub-dump")->hint.find("TORCH_FR_BUFFER_SIZE"), std::string::npos);
  EXPECT_NE(FindDiagnostic(stub, "stub-dump")->hint.find("TORCH_NCCL_TRACE_BUFFER_SIZE"), std::string::npos);
}

TEST(FlightRecorderLies, AnEmptyDumpOfActiveEntriesIsNoStub) {
  const Fragment idle = ReadFlight(WriteDump({}, {{"0", 14145, -1, 14145}}));
  EXPECT_FALSE(idle.stub);
  EXPECT_TRUE(StreamOf(idle).only_active);
  EXPECT_EQ(ProgressOf(idle), (std::vector<std::string>{"0 14145/14145"}));
  EXPECT_FALSE(ReadFlight(WriteDump({})).stub) << "a group is known, so the recorder was on";
}

TEST(FlightRecorderLies, MembersOfACoalescedGroupTakeTheStateOfItsEnd) {
  const Fragment fragment = ReadFlight(ReadSample("v2.9_coalesced_comm_lib_trace_rank_1"));
  ASSERT_EQ(StreamOf(fragment).calls.size(), 7u);
  EXPECT_EQ(CallAt(fragment, 0).flags, kRetired);
  for (const size_t member : {1, 2}) {
    const Call& call = CallAt(fragment, member);
    EXPECT_EQ(call.flags, kCoalescedMember | kRetired);
    EXPECT_EQ(call.state, CallState::completed);
    EXPECT_EQ(call.seq, 2u);
    EXPECT_EQ(call.finish_wall_ns, CallAt(fragment, 3).finish_wall_ns);
    EXPECT_LT(call.duration_ms, 0) << "the time of the whole group is not its own";
  }
  EXPECT_EQ(CallAt(fragment, 3).flags, kCoalescedEnd | kRetired);
  EXPECT_EQ(CallAt(fragment, 3).kind, OpKind::coalesced);
  EXPECT_EQ(CallAt(fragment, 3).in_elements, -1);
  for (const size_t member : {4, 5}) {
    EXPECT_EQ(CallAt(fragment, member).flags, kPointToPoint | kCoalescedMember);
    EXPECT_EQ(CallAt(fragment, member).state, CallState::enqueued);
  }
  EXPECT_EQ(CallAt(fragment, 6).flags, kPointToPoint | kCoalescedEnd) << "though its is_p2p is False";
  EXPECT_EQ(CallAt(fragment, 6).seq, 1u) << "the p2p number, not the collective one";
}

TEST(FlightRecorderLies, ACoalescedGroupOfOneCollectiveIsThatCollective) {
  // Its own state may run ahead of that of its group, or stay behind it.
  for (const auto& [own, whole] : {std::pair{"completed", "scheduled"}, std::pair{"scheduled", "completed"}}) {
    EntryText member{.collective_seq = 7, .name = "nccl:allreduce_coalesced", .state = own, .in = {{8}, {8}}};
    EntryText end{.record = 1, .collective_seq = 7, .name = "nccl:coalesced", .state = whole, .in = {}, .out = {}};
    const Fragment fragment = ReadFlight(WriteDump({member, end}));
    EXPECT_EQ(CallAt(fragment, 0).flags, 0);
    EXPECT_EQ(CallAt(fragment, 0).kind, OpKind::all_reduce);
    EXPECT_EQ(CallAt(fragment, 0).state,
              std::string_view(whole) == "completed" ? CallState::completed : CallState::enqueued);
    EXPECT_EQ(CallAt(fragment, 1).flags, kCoalescedMember) << "nothing of its own";
  }
}

TEST(FlightRecorderLies, TheEndOfABatchWhoseMembersAreLostTakesNoCollectiveAlong) {
  const EntryText before{.collective_seq = 7, .p2p_seq = 3, .state = "completed"};
  const EntryText end{.record = 1, .collective_seq = 7, .p2p_seq = 4, .name = "nccl:coalesced", .in = {}, .out = {}};
  const Fragment fragment = ReadFlight(WriteDump({before, end}));
  EXPECT_EQ(CallAt(fragment, 0).flags, 0);
  EXPECT_EQ(CallAt(fragment, 0).state, CallState::completed);
  EXPECT_EQ(CallAt(fragment, 1).flags, kPointToPoint | kCoalescedEnd);
}

TEST(FlightRecorderLies, ARealPipelineHasNoMemberThatStaysScheduled) {
  const Fragment fragment = ReadFlight(ReadSample("v2.10_pipeline_nccl_trace_rank_3"));
  size_t ends = 0, members = 0;
  for (const Call& call : StreamOf(fragment).calls) {
    EXPECT_EQ(call.state, CallState::completed) << call.record;
    ends += call.has(kCoalescedEnd);
    members += call.has(kCoalescedMember);
    if (IsPointToPoint(call.kind)) {
      EXPECT_TRUE(call.has(kCoalescedMember) && call.peer.known()) << call.record;
    }
  }
  EXPECT_EQ(members, 132u);
  EXPECT_EQ(ends, 75u);
}

TEST(FlightRecorderLies, MembersWithoutAnEndStayAsTheyAre) {
  const Fragment cut = ReadFlight(WriteDump({{.record = 0, .p2p_seq = 1, .name = "nccl:send 0->1", .is_p2p = true},
                                             {.record = 1, .p2p_seq = 1, .name = "nccl:recv 0<-1", .is_p2p = true}}));
  EXPECT_EQ(CallAt(cut, 0).flags, kPointToPoint);
  EXPECT_EQ(CallAt(cut, 0).state, CallState::enqueued);
}

TEST(FlightRecorderLies, OperationsOfOtherGroupsMayStandInsideACoalescedGroup) {
  const Fragment fragment = ReadFlight(WriteDump({
      {.record = 0, .p2p_seq = 1, .name = "nccl:send 0->1", .is_p2p = true},
      {.record = 1, .pg_id = 1, .group = "1", .description = "dp"},
      {.record = 2, .p2p_seq = 1, .name = "nccl:recv 0<-1", .is_p2p = true},
      {.record = 3,
       .p2p_seq = 1,
       .name = "nccl:coalesced",
       .state = "completed",
       .in = {},
       .out = {},
       .completed = kDumpTime + 9},
  }));
  EXPECT_EQ(CallAt(fragment, 0).state, CallState::completed);
  EXPECT_EQ(CallAt(fragment, 1).state, CallState::enqueued);
  EXPECT_EQ(CallAt(fragment, 1).flags, 0);
  EXPECT_EQ(CallAt(fragment, 2).state, CallState::completed);
}

TEST(FlightRecorderLies, AnEndOfAnotherNumberClosesNothing) {
  const Fragment fragment = ReadFlight(WriteDump({
      {.record = 0, .collective_seq = 4},
      {.record = 1,
       .collective_seq = 5,
       .name = "nccl:coalesced",
       .state = "completed",
       .in = {},
       .out = {},
       .completed = kDumpTime + 9},
  }));
  EXPECT_EQ(CallAt(fragment, 0).flags, 0);
  EXPECT_EQ(CallAt(fragment, 0).state, CallState::enqueued);
  EXPECT_EQ(CallAt(fragment, 1).flags, kCoalescedEnd);
  EXPECT_EQ(CallAt(fragment, 1).seq, 5u);
}

TEST(FlightRecorderLies, AnOperationWithTensorsIsNoEndWhateverItsName) {
  const Fragment fragment = ReadFlight(WriteDump({{.record = 0, .name = "nccl:all_gather_into_tensor_coalesced"},
                                                  {.record = 1, .name = "nccl:allreduce_coalesced"}}));
  EXPECT_EQ(CallAt(fragment, 0).kind, OpKind::all_gather);
  EXPECT_FALSE(CallAt(fragment, 0).has(kCoalescedEnd));
  EXPECT_EQ(CallAt(fragment, 1).kind, OpKind::all_reduce);
}

TEST(FlightRecorderLies, AnEndWhoseMembersTheRingLostKeepsItsOwnCounter) {
  const EntryText end = {
      .record = 9, .collective_seq = 0, .p2p_seq = 15, .name = "nccl:coalesced", .in = {}, .out = {}};
  EXPECT_EQ(CallAt(ReadFlight(WriteDump({end})), 0).seq, 15u);
  EXPECT_TRUE(CallAt(ReadFlight(WriteDump({end})), 0).has(kPointToPoint));
  // Before version 2.7 the members of coalesced collectives were not recorded.
  const EntryText collective = {
      .record = 9, .collective_seq = 6, .p2p_seq = 3, .name = "nccl:ALLGATHER_coalesced", .in = {}, .out = {}};
  EXPECT_EQ(CallAt(ReadFlight(WriteDump({{.record = 8, .collective_seq = 5, .p2p_seq = 3}, collective})), 1).flags,
            kCoalescedEnd);
  EXPECT_EQ(CallAt(ReadFlight(WriteDump({{.record = 8, .collective_seq = 5, .p2p_seq = 3}, collective})), 1).seq, 6u);
}

TEST(FlightRecorderLies, MembersWhoseCompletedEndWasLeftOutAreCompleted) {
  const auto send = [](int64_t record, int64_t seq) {
    return EntryText{.record = record, .collective_seq = 0, .p2p_seq = seq, .name = "nccl:send 0->1", .is_p2p = true};
  };
  const Fragment fragment = ReadFlight(WriteDump({send(0, 1), send(1, 1), send(3, 2), send(4, 2)}, {{"0", 2, -1, 1}}));
  ASSERT_TRUE(StreamOf(fragment).only_active);
  EXPECT_EQ(CallAt(fragment, 0).state, CallState::completed);
  EXPECT_TRUE(CallAt(fragment, 1).has(kCoalescedMember));
  EXPECT_EQ(CallAt(fragment, 2).state, CallState::enqueued);
  EXPECT_EQ(CallAt(fragment, 3).flags, kPointToPoint);
}

TEST(FlightRecorderImport, NotesAVersionNewerThanItKnowsAndNoOther) {
  const auto with_version = [](std::string_view version) {
    using namespace pickle;
    return ReadFlight(File(Dict({Of("version", Text(version)), Of("entries", List({EntryText{}.Write()}))})));
  };
  EXPECT_NE(FindDiagnostic(with_version("2.11"), "newer-version"), nullptr);
  EXPECT_NE(FindDiagnostic(with_version("3.0"), "newer-version"), nullptr);
  EXPECT_EQ(FindDiagnostic(with_version("2.10"), "newer-version"), nullptr);
  EXPECT_EQ(FindDiagnostic(with_version("2.9"), "newer-version"), nullptr);
}

// Real dumps of another project, with active entries only and timing off. They are not part of this one.
TEST(FlightRecorderPublic, ReadsDumpsOfActiveEntriesOfARealMegatronJob) {
  const std::filesystem::path folder = std::filesystem::path(TACET_SOURCE_DIR) / "../shared/public/nvrx";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the public dumps are not here";
  size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (!entry.is_regular_file() || !name.starts_with("_dump_")) continue;
    ++files;
    const std::string bytes = ReadWholeFile(entry.path());
    EXPECT_EQ(kFlightRecorderFormat.recognise(bytes, name), Recognition::yes) << entry.path();
    const Fragment fragment = ReadFlight(bytes, name);
    EXPECT_TRUE(fragment.diagnostics.empty()) << entry.path();
    EXPECT_EQ(fragment.bytes.understood, bytes.size());
    EXPECT_EQ(fragment.speakers.at(0).rank.value, std::stoi(name.substr(6)));
    EXPECT_EQ(fragment.speakers.at(0).world_size, 16);
    EXPECT_TRUE(StreamOf(fragment).only_active) << entry.path();
    EXPECT_FALSE(StreamOf(fragment).knows_start);
    EXPECT_FALSE(fragment.stub);
    for (const GroupProgress& row : StreamOf(fragment).progress) EXPECT_NE(row.group, GroupIndex::none) << entry.path();
    for (const Call& call : StreamOf(fragment).calls) {
      EXPECT_EQ(call.state, CallState::enqueued);
      EXPECT_NE(call.kind, OpKind::unknown);
    }
  }
  EXPECT_EQ(files, 32u);
}

}  // namespace
}  // namespace tacet
