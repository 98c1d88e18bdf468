// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/assembly.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tacet {
namespace {

constexpr int64_t kHourNs = int64_t{3600} * 1'000'000'000;
constexpr int64_t kNowNs = 1'700'000'000'000'000'000;

Group WorldOf(int32_t size, std::string name = "0", std::string description = "default_pg") {
  Group group;
  group.name = std::move(name);
  group.description = std::move(description);
  for (int32_t r = 0; r < size; ++r) group.members.push_back({r});
  return group;
}

// A dump of one rank with some calls on the world group.
Fragment Dump(int32_t rank, int32_t world, uint32_t calls, int64_t captured_ns = kNowNs) {
  Fragment fragment;
  fragment.path = "nccl_trace_rank_" + std::to_string(rank);
  fragment.format = "flight_recorder";
  fragment.speakers.push_back({.rank = {rank}, .rank_certainty = Certainty::assumed});
  fragment.groups.push_back(WorldOf(world));
  CallStream stream;
  stream.source = CallSource::flight_recorder;
  stream.captured_wall_ns = captured_ns;
  for (uint32_t i = 1; i <= calls; ++i) {
    Call call;
    call.group = GroupIndex{0};
    call.seq = i;
    call.name = fragment.strings.Intern("call " + std::to_string(i));
    call.stack = fragment.stacks.Intern({{fragment.strings.Intern("step"), fragment.strings.Intern("train.py"), i}});
    stream.calls.push_back(call);
  }
  fragment.streams.push_back(std::move(stream));
  return fragment;
}

Incident One(std::vector<Fragment> fragments) {
  auto jobs = Assemble(std::move(fragments));
  EXPECT_EQ(jobs.size(), 1u);
  return std::move(jobs.front());
}

size_t CountNotes(const Incident& incident, std::string_view code) {
  size_t count = 0;
  for (const Diagnostic& diagnostic : incident.diagnostics) count += diagnostic.code == code;
  return count;
}

TEST(Assembly, JoinsTheGroupsStringsAndStacksOfAllFiles) {
  std::vector<Fragment> files;
  for (int32_t r = 3; r >= 0; --r) files.push_back(Dump(r, 4, 3));
  const Incident incident = One(std::move(files));
  EXPECT_EQ(incident.world_size, 4);
  EXPECT_EQ(incident.groups.size(), 1u);
  ASSERT_EQ(incident.streams.size(), 4u);
  for (int32_t r = 0; r < 4; ++r) {
    const CallStream& stream = incident.streams[static_cast<size_t>(r)];
    EXPECT_EQ(stream.rank, Rank{r});
    EXPECT_EQ(incident.strings.Get(stream.calls[1].name), "call 2");
    const Frame& frame = incident.stacks.Get(stream.calls[2].stack)[0];
    EXPECT_EQ(incident.strings.Get(frame.file), "train.py");
    EXPECT_EQ(frame.line, 3u);
    EXPECT_EQ(incident.PathOf(stream.file), "nccl_trace_rank_" + std::to_string(r));
  }
}

TEST(Assembly, RejectsADumpOfAnotherRun) {
  std::vector<Fragment> files;
  for (int32_t r = 0; r < 4; ++r) files.push_back(Dump(r, 4, 3, r == 2 ? kNowNs - 30 * kHourNs : kNowNs));
  const Incident incident = One(std::move(files));
  EXPECT_EQ(incident.streams.size(), 3u);
  EXPECT_EQ(incident.StreamOf(Rank{2}, CallSource::flight_recorder), nullptr);
  ASSERT_EQ(CountNotes(incident, "stale-dump"), 1u);
}

// Runs of one job that follow each other within minutes.
Fragment DumpOfRun(int32_t rank, int64_t begin_ns) {
  Fragment dump = Dump(rank, 4, 3, begin_ns + 60'000'000'000);
  for (Call& call : dump.streams[0].calls) call.enter_wall_ns = begin_ns + int64_t{call.seq} * 1'000'000'000;
  return dump;
}

TEST(Assembly, ADumpThatEndsBeforeTheRunBeganIsOfAnEarlierRun) {
  std::vector<Fragment> files;
  for (const int32_t r : {0, 1, 2}) files.push_back(DumpOfRun(r, kNowNs));
  files.push_back(DumpOfRun(3, kNowNs - kHourNs / 6));
  const Incident incident = One(std::move(files));
  EXPECT_EQ(CountNotes(incident, "stale-dump"), 1u);
  EXPECT_EQ(incident.StreamOf({3}, CallSource::flight_recorder), nullptr);
}

TEST(Assembly, RunsMayFollowEachOtherWithinSeconds) {
  // Each run takes 60 s; ten seconds lie between them.
  std::vector<Fragment> files;
  for (const int32_t r : {0, 1}) files.push_back(DumpOfRun(r, kNowNs));
  for (const int32_t r : {2, 3}) files.push_back(DumpOfRun(r, kNowNs - int64_t{70} * 1'000'000'000));
  const Incident incident = One(std::move(files));
  EXPECT_EQ(CountNotes(incident, "stale-dump"), 2u);
}

TEST(Assembly, ADumpOfARankThatStoppedEarlyIsKeptWhileTheOthersMayHaveLostTheirBeginning) {
  std::vector<Fragment> files;
  for (const int32_t r : {0, 1, 2}) {
    files.push_back(DumpOfRun(r, kNowNs));
    files.back().streams[0].from_start = false;
  }
  files.push_back(DumpOfRun(3, kNowNs - kHourNs / 6));
  const Incident incident = One(std::move(files));
  EXPECT_EQ(CountNotes(incident, "stale-dump"), 0u);
  EXPECT_NE(incident.StreamOf({3}, CallSource::flight_recorder), nullptr);
}

TEST(Assembly, KeepsDumpsOfOneRunThatAreMinutesApart) {
  std::vector<Fragment> files;
  for (int32_t r = 0; r < 4; ++r) files.push_back(Dump(r, 4, 3, kNowNs - r * kHourNs / 4));
  EXPECT_EQ(One(std::move(files)).streams.size(), 4u);
}

TEST(Assembly, KeepsALoneOldDump) {
  std::vector<Fragment> files;
  files.push_back(Dump(0, 4, 3, kNowNs - 900 * kHourNs));
  EXPECT_EQ(One(std::move(files)).streams.size(), 1u);
}

TEST(Assembly, OfTwoRecordsOfARankTheFullerIsKept) {
  std::vector<Fragment> files;
  files.push_back(Dump(0, 2, 3));
  files.push_back(Dump(0, 2, 9));
  files.push_back(Dump(1, 2, 3));
  files[1].path = "nccl_trace_rank_0.again";
  const Incident incident = One(std::move(files));
  ASSERT_EQ(incident.streams.size(), 2u);
  EXPECT_EQ(incident.streams[0].calls.size(), 9u);
  EXPECT_EQ(CountNotes(incident, "duplicate-record"), 1u);
}

Fragment KernelLog(int64_t pid, std::string host) {
  Fragment fragment;
  fragment.path = "dmesg";
  fragment.format = "kernel_log";
  fragment.speakers.push_back({.host = std::move(host)});
  Event event;
  event.kind = EventKind::oom_kill;
  event.pid = pid;
  fragment.events.push_back(std::move(event));
  return fragment;
}

Fragment LogOf(int32_t rank, std::string host, int64_t pid) {
  Fragment fragment;
  fragment.path = "nccl_" + host + std::to_string(rank);
  fragment.format = "nccl_log";
  fragment.speakers.push_back(
      {.rank = {rank}, .rank_certainty = Certainty::stated, .host = std::move(host), .pid = pid, .world_size = 4});
  return fragment;
}

TEST(Assembly, TiesAKillToTheRankWithThatPidOnThatHost) {
  std::vector<Fragment> files;
  files.push_back(LogOf(0, "node1", 500));
  files.push_back(LogOf(1, "node2", 500));
  files.push_back(KernelLog(500, "node2"));
  const Incident incident = One(std::move(files));
  ASSERT_EQ(incident.events.size(), 1u);
  EXPECT_EQ(incident.events[0].rank, Rank{1});
}

TEST(Assembly, LeavesTheKillOfAForeignPidAlone) {
  std::vector<Fragment> files;
  files.push_back(LogOf(0, "node1", 500));
  files.push_back(LogOf(1, "node1", 501));
  files.push_back(KernelLog(900, "node1"));
  EXPECT_FALSE(One(std::move(files)).events[0].rank.known());
}

TEST(Assembly, LeavesAPidThatTwoHostsHaveAloneWhenTheHostIsNotTold) {
  std::vector<Fragment> files;
  files.push_back(LogOf(0, "node1", 500));
  files.push_back(LogOf(1, "node2", 500));
  files.push_back(KernelLog(500, ""));
  EXPECT_FALSE(One(std::move(files)).events[0].rank.known());
}

TEST(Assembly, MarksTheRecordsOfARankThatLostAPeer) {
  std::vector<Fragment> files;
  for (int32_t r = 0; r < 2; ++r) files.push_back(Dump(r, 2, 3));
  Event lost;
  lost.kind = EventKind::connection_lost;
  files[1].events.push_back(lost);
  const Incident incident = One(std::move(files));
  EXPECT_FALSE(incident.streams[0].ended_by_error);
  EXPECT_TRUE(incident.streams[1].ended_by_error);
}

TEST(Assembly, GroupsOfOneNameAndDifferentMembersAreTwo) {
  std::vector<Fragment> files;
  for (int32_t r = 0; r < 4; ++r) {
    Fragment file = Dump(r, 4, 1);
    Group half;
    half.name = "7";
    half.members = r < 2 ? std::vector<Rank>{{0}, {1}} : std::vector<Rank>{{2}, {3}};
    file.groups.push_back(half);
    Call call;
    call.group = GroupIndex{1};
    call.seq = 1;
    file.streams[0].calls.push_back(call);
    files.push_back(std::move(file));
  }
  const Incident incident = One(std::move(files));
  ASSERT_EQ(incident.groups.size(), 3u);
  EXPECT_EQ(incident.streams[0].calls.back().group, incident.streams[1].calls.back().group);
  EXPECT_NE(incident.streams[0].calls.back().group, incident.streams[2].calls.back().group);
}

TEST(Assembly, ACommunicatorTakesTheNameOfTheOneGroupWithItsMembers) {
  std::vector<Fragment> files;
  files.push_back(Dump(0, 2, 1));
  Fragment log = LogOf(1, "node1", 5);
  Group comm;
  comm.comm_id = 0xfeed;
  comm.size = 2;
  comm.members = {{0}, {1}};
  log.groups.push_back(comm);
  files.push_back(std::move(log));
  const Incident incident = One(std::move(files));
  const auto& named = incident.groups;
  const auto found = std::find_if(named.begin(), named.end(), [](const Group& g) { return g.comm_id == 0xfeed; });
  ASSERT_NE(found, named.end());
  // The log states a world of four, so this communicator of two may be any pair; its members decide.
  EXPECT_EQ(found->description, "default_pg");
}

TEST(Assembly, TwoRunsAreTwoJobs) {
  std::vector<Fragment> files;
  for (const char* run : {"a/", "b/"})
    for (int32_t r = 0; r < 2; ++r) {
      files.push_back(Dump(r, 2, 3));
      files.back().path = run + files.back().path;
    }
  const auto jobs = Assemble(std::move(files));
  ASSERT_EQ(jobs.size(), 2u);
  for (const Incident& job : jobs) EXPECT_EQ(job.streams.size(), 2u);
}

// "tasks 0-4095: Terminated" is one event of a reader and one for each rank of the job, as far as there is room.
TEST(Assembly, AnEndThatIsToldOfManyRanksIsToldOfEachAsFarAsThereIsRoom) {
  const auto ends_of = [](int32_t claimed) {
    Fragment fragment;
    fragment.format = "torch_log";
    Event& event = fragment.events.emplace_back();
    event.kind = EventKind::process_killed;
    event.speaker = kNobody;
    for (int32_t r = 0; r < claimed; ++r) event.ranks.push_back({r});
    std::vector<Fragment> fragments;
    fragments.push_back(std::move(fragment));
    return Assemble(std::move(fragments));
  };
  const auto few = ends_of(4096);
  ASSERT_EQ(few[0].events.size(), 4096u);
  for (size_t i = 0; i < few[0].events.size(); ++i) EXPECT_EQ(few[0].events[i].rank, (Rank{static_cast<int32_t>(i)}));
  EXPECT_TRUE(few[0].diagnostics.empty());
  const auto many = ends_of(60000);
  EXPECT_LT(many[0].events.size(), 20000u);
  ASSERT_FALSE(many[0].diagnostics.empty());
  EXPECT_EQ(many[0].diagnostics[0].code, "claimed-ranks");
}

// torchrun closes 11 and 12 when 13 has failed, starts 21 to 23, and closes those when 22 has failed.
TEST(Assembly, TheProcessesOfARestartAreNoFurtherRanks) {
  const auto size_of = [](const std::vector<std::pair<int64_t, bool>>& named) {
    std::vector<Fragment> files(1);
    files[0].format = "torch_log";
    uint32_t line = 0;
    for (const auto& [pid, closed] : named) {
      Event& event = files[0].events.emplace_back();
      event.kind = closed ? EventKind::process_killed : EventKind::process_exited;
      event.speaker = kNobody;
      event.pid = pid;
      event.source.line = ++line;
      if (!closed) event.Make<ProcessEnd>().local_rank = 0;
    }
    return One(std::move(files)).world_size;
  };
  EXPECT_EQ(size_of({{11, true}, {12, true}, {13, false}}), 3);
  EXPECT_EQ(size_of({{11, true}, {12, true}, {13, false}, {21, true}, {23, true}, {22, false}}), 3);
  EXPECT_EQ(size_of({{13, false}, {11, true}, {12, true}}), 3) << "in the order of old releases";
}

TEST(Assembly, NoFileGivesOneEmptyJob) {
  const Incident incident = One({});
  EXPECT_TRUE(incident.files.empty());
  EXPECT_TRUE(incident.AllRanks().empty());
}

TEST(Assembly, ASizeThatOneMemberClaimsAgainstTheOthersIsNotTheJobs) {
  const auto job = [](std::vector<int32_t> claims) {
    std::vector<Fragment> files;
    for (size_t r = 0; r < claims.size(); ++r) {
      Fragment& file = files.emplace_back();
      file.format = "nccl_log";
      file.path = "rank" + std::to_string(r) + ".log";
      Speaker& speaker = file.speakers.emplace_back();
      speaker.rank = Rank{static_cast<int32_t>(r)};
      speaker.rank_certainty = Certainty::stated;
      speaker.world_size = claims[r];
      Group& group = file.groups.emplace_back();
      group.comm_id = 77;
      group.size = claims[r];
    }
    return One(std::move(files)).world_size;
  };
  EXPECT_EQ(job({4, 4, 4, 5}), 4);
  EXPECT_EQ(job({5, 4}), 5);        // nobody knows who is right
  EXPECT_EQ(job({2, 2, 2, 4}), 4);  // rank 3 is there
}

}  // namespace
}  // namespace tacet
