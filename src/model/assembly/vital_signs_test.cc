// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/vital_signs.h"

#include <gtest/gtest.h>

#include "model/assembly/assembly.h"

namespace tacet {
namespace {

constexpr int64_t kVitalHourNs = int64_t{3600} * 1'000'000'000;

// The box of one process; `at_ns` is its last beat.
Fragment Box(int32_t rank, int64_t pid, int64_t at_ns, const char* host = "node01") {
  Fragment box;
  box.path = "job/" + std::to_string(pid) + ".box";
  box.format = "black_box";
  box.speakers.push_back({.rank = {rank}, .rank_certainty = Certainty::stated, .host = host, .pid = pid});
  Group group;
  group.comm_id = 7;
  group.size = 2;
  group.members = {{-1}, {-1}};
  group.members[static_cast<size_t>(rank)] = {rank};
  box.groups.push_back(group);
  CallStream& stream = box.streams.emplace_back();
  stream.source = CallSource::black_box;
  stream.knows_finish = true;
  stream.captured_wall_ns = at_ns;
  for (uint32_t seq = 1; seq <= 2; ++seq) {
    Call& call = stream.calls.emplace_back();
    call.group = GroupIndex{0};
    call.seq = seq;
    call.kind = OpKind::all_reduce;
    call.state = seq == 1 ? CallState::completed : CallState::started;
  }
  Pulse& pulse = box.pulses.emplace_back();
  pulse.pid = pid;
  pulse.start_jiffies = 1000 + static_cast<uint64_t>(pid);
  pulse.last_beat_wall_ns = at_ns;
  InFlight& flight = box.in_flight.emplace_back();
  flight.group = GroupIndex{0};
  flight.call = 1;
  flight.seq = 2;
  return box;
}

void See(Fragment& witness, int64_t pid, uint64_t start) {
  Sight& sight = witness.sights.emplace_back();
  sight.pid = pid;
  sight.start_jiffies = start;
  sight.state = TaskState::gone;
}

// Pods on the host's network: one host name, the same pid in each, started in the same moment.
Fragment PodBox(int32_t rank, const char* path) {
  Fragment box = Box(rank, 7, kVitalHourNs);
  box.path = path;
  return box;
}

template <typename... Boxes>
std::vector<Fragment> Together(Boxes... boxes) {
  std::vector<Fragment> all;
  (all.push_back(std::move(boxes)), ...);
  return all;
}

Incident Join(std::vector<Fragment> boxes) {
  auto incidents = Assemble(std::move(boxes));
  EXPECT_EQ(incidents.size(), 1u);
  return std::move(incidents.at(0));
}

TEST(VitalSigns, ReachTheIncidentWithTheirRanks) {
  std::vector<Fragment> boxes = Together(Box(1, 41, kVitalHourNs), Box(0, 40, kVitalHourNs));
  See(boxes[1], 41, 1041);
  const Incident incident = Join(std::move(boxes));
  ASSERT_EQ(incident.pulses.size(), 2u);
  EXPECT_EQ(incident.pulses[0].rank, Rank{0});
  EXPECT_EQ(incident.pulses[1].rank, Rank{1});
  ASSERT_EQ(incident.sights.size(), 1u);
  EXPECT_EQ(incident.sights[0].rank, Rank{1});
  EXPECT_EQ(incident.processes[incident.sights[0].speaker].rank, Rank{0});
  ASSERT_EQ(incident.in_flight.size(), 2u);
  for (const InFlight& flight : incident.in_flight) {
    const CallStream& stream = incident.streams[flight.stream];
    EXPECT_EQ(stream.rank, flight.rank);
    EXPECT_EQ(stream.calls[flight.call].seq, 2u);
    EXPECT_EQ(stream.calls[flight.call].group, flight.group);
  }
}

TEST(VitalSigns, OfTwoAttemptsTheLaterOneCounts) {
  std::vector<Fragment> boxes =
      Together(Box(0, 40, kVitalHourNs), Box(1, 41, kVitalHourNs), Box(1, 31, kVitalHourNs / 2));
  boxes[2].streams[0].calls.resize(1);
  boxes[2].streams[0].calls.resize(5, boxes[2].streams[0].calls[0]);  // the earlier attempt has more to tell
  See(boxes[0], 31, 1031);
  const Incident incident = Join(std::move(boxes));
  ASSERT_EQ(incident.pulses.size(), 2u);
  EXPECT_EQ(incident.pulses[1].pid, 41);
  EXPECT_TRUE(incident.sights.empty());
  EXPECT_EQ(incident.in_flight.size(), 2u);
  EXPECT_EQ(incident.StreamOf({1}, CallSource::black_box)->calls.size(), 2u);
}

TEST(VitalSigns, OfPodsThatShareHostAndPidTheRankThatWasReadCounts) {
  std::vector<Fragment> boxes = Together(PodBox(0, "job/a.box"), PodBox(1, "job/b.box"));
  See(boxes[1], 7, 1007);
  boxes[1].sights[0].rank = {1};
  const Incident incident = Join(std::move(boxes));
  ASSERT_EQ(incident.sights.size(), 1u);
  EXPECT_EQ(incident.sights[0].rank, Rank{1});
}

TEST(VitalSigns, SightsOfStrangersAreLeftOut) {
  std::vector<Fragment> boxes = Together(Box(0, 40, kVitalHourNs), Box(1, 41, kVitalHourNs, "node02"));
  See(boxes[0], 41, 1041);  // same pid and start, but on another host
  See(boxes[0], 99, 1099);
  See(boxes[0], 40, 1);
  EXPECT_TRUE(Join(std::move(boxes)).sights.empty());
}

}  // namespace
}  // namespace tacet
