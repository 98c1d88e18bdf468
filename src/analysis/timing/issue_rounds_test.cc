// SPDX-License-Identifier: Apache-2.0
// Jobs whose records have no usable GPU times: who is late is told by when hosts issued operations.
#include "analysis/timing/issue_rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analysis/timing/straggler.h"

namespace tacet {
namespace {

constexpr int64_t kMs = 1'000'000, kBegin = 1'700'000'000'000'000'000;
constexpr int32_t kRanks = 4;

struct ExpertJob {
  int64_t late_ns = 0;                  // rank 1 sleeps so long between forward and backward pass
  int64_t clock_ahead_ns[kRanks] = {};  // of each rank's host
  bool hosts_wait = true;               // for the counts that experts are sent
  bool boxes = true;                    // else lines of the Inspector
  bool two_hosts = false;
};

// Steps of some 20 ms as black boxes have them: an all-to-all is a send to everybody and a receive from everybody, half
// of which have no times, and those of the others are wrong.
class ExpertRecord {
 public:
  explicit ExpertRecord(const ExpertJob& job) : job_(job) {
    incident_.files.emplace_back().format = job.boxes ? "black_box" : "inspector";
    Group& group = incident_.groups.emplace_back();
    group.comm_id = 7;
    group.size = kRanks;
    for (int32_t r = 0; r < kRanks; ++r) group.members.push_back({r});
    for (int32_t r = 0; r < kRanks; ++r) {
      incident_.process_of[{r}] = static_cast<uint32_t>(r);
      incident_.processes.push_back({.rank = {r}, .host = job.two_hosts && r >= kRanks / 2 ? "node1" : "node0"});
    }
    for (int32_t r = 0; r < kRanks && job.boxes; ++r) {
      CallStream& stream = incident_.streams.emplace_back();
      stream.source = CallSource::black_box;
      stream.rank = {r};
    }
  }

  Incident Run(int steps) {
    for (int step = 0; step < steps; ++step) {
      for (int layer = 0; layer < 2; ++layer) {
        Work(2 * kMs);
        Exchange();
        if (job_.hosts_wait) Wait();
        Work(kMs);
        Exchange();
      }
      hosts_[1] += job_.late_ns;
      for (int layer = 0; layer < 2; ++layer) {
        Work(3 * kMs);
        Exchange();
        Work(kMs);
        Exchange();
        Reduce(layer);
      }
      if (job_.hosts_wait) Wait();
      Work(2 * kMs);
    }
    return std::move(incident_);
  }

 private:
  void Work(int64_t ns) {
    for (int64_t& host : hosts_) host += ns + jitter_(random_);
  }
  // Until the last operation of all has ended.
  void Wait() {
    const int64_t last = *std::max_element(std::begin(hosts_), std::end(hosts_));
    for (int64_t& host : hosts_) host = last + kMs / 2;
  }
  void Exchange() {
    for (int32_t r = 0; r < kRanks; ++r)
      for (int32_t peer = 0; peer < kRanks; ++peer) {
        Add(r, OpKind::send, ++transfers_[r], peer, peer % 2 == 0);
        Add(r, OpKind::recv, ++transfers_[r], peer, peer % 2 == 1);
      }
  }
  void Reduce(int bucket) {
    ++reductions_;
    for (int32_t r = 0; r < kRanks; ++r) Add(r, OpKind::all_reduce, reductions_, -1, true, (bucket + 1) << 20);
  }
  void Add(int32_t rank, OpKind kind, int64_t seq, int32_t peer, bool measured, int64_t bytes = 4096) {
    const int64_t enter = hosts_[rank] + job_.clock_ahead_ns[rank];
    if (job_.boxes) {
      Call& call = incident_.streams[static_cast<size_t>(rank)].calls.emplace_back();
      call.group = GroupIndex{0};
      call.seq = static_cast<uint32_t>(seq);
      call.kind = kind;
      call.flags = IsPointToPoint(kind) ? kPointToPoint : 0;
      call.peer = {peer};
      call.type = DataType::uint8;
      call.in_elements = bytes;
      call.enter_wall_ns = enter;
    }
    if (!measured) return;
    Measurement& m = incident_.measurements.emplace_back();
    m.rank = {rank};
    m.comm = 7;
    m.comm_size = kRanks;
    m.group_rank = {rank};
    m.op = kind;
    m.peer = {peer};
    m.seq = seq;
    m.bytes = bytes;
    m.enter_wall_ns = enter;
    m.duration_ns = wrong_(random_);
    m.start_wall_ns = enter;
    m.finish_wall_ns = enter + m.duration_ns;
  }

  const ExpertJob job_;
  Incident incident_;
  int64_t hosts_[kRanks] = {kBegin, kBegin, kBegin, kBegin};
  int64_t transfers_[kRanks] = {}, reductions_ = 0;
  std::mt19937_64 random_{5};
  std::uniform_int_distribution<int64_t> jitter_{0, kMs / 2}, wrong_{kMs / 10, 40 * kMs};
};

StragglerReport Read(const ExpertJob& job) { return FindStragglersInMeasurements(ExpertRecord(job).Run(60)); }

TEST(IssueTimes, NameALateHostWhereLengthsOfExchangesAreWrong) {
  for (const bool boxes : {true, false}) {
    const StragglerReport report = Read({.late_ns = 8 * kMs, .boxes = boxes});
    ASSERT_EQ(report.stragglers.size(), 1u) << boxes;
    EXPECT_EQ(report.stragglers[0].rank, Rank{1});
    EXPECT_EQ(report.stragglers[0].trust, Trust::possible) << "kernels may have waited for nobody";
    EXPECT_NEAR(report.stragglers[0].cost, 8.0 / 30, 0.06);
  }
}

TEST(IssueTimes, NameNobodyInTheSameJobWithoutDelay) {
  for (const bool boxes : {true, false}) EXPECT_TRUE(Read({.boxes = boxes}).stragglers.empty()) << boxes;
}

// Ranks 0 and 1 are on one host, 2 and 3 on another.
TEST(IssueTimes, AreComparedOnOneHostAlone) {
  const int64_t ahead = 30 * kMs;
  EXPECT_TRUE(Read({.clock_ahead_ns = {0, 0, ahead, ahead}, .two_hosts = true}).stragglers.empty());
  EXPECT_TRUE(Read({.clock_ahead_ns = {ahead, ahead, 0, 0}, .two_hosts = true}).stragglers.empty());
  const StragglerReport report = Read({.late_ns = 8 * kMs, .clock_ahead_ns = {0, 0, ahead, ahead}, .two_hosts = true});
  ASSERT_EQ(report.stragglers.size(), 1u);
  EXPECT_EQ(report.stragglers[0].rank, Rank{1});
}

// Nobody waits for a host that is behind all the time: its GPU has work in store.
TEST(IssueTimes, OfAHostThatIsAlwaysBehindBlameNobody) {
  EXPECT_TRUE(Read({.clock_ahead_ns = {0, 5 * kMs, 0, 0}, .hosts_wait = false}).stragglers.empty());
}

TEST(IssueTimes, JoinExchangesOfAllMembersAlone) {
  const Incident whole = ExpertRecord({}).Run(20);
  EXPECT_GT(MatchIssues(whole, CallSource::black_box).exchanges, 6u * 20);
  Incident ring = ExpertRecord({}).Run(20);
  for (CallStream& stream : ring.streams)
    std::erase_if(stream.calls, [&](const Call& call) {
      const int32_t distance = (call.peer.value - stream.rank.value + kRanks) % kRanks;
      return call.has(kPointToPoint) && distance != (call.kind == OpKind::send ? 1 : kRanks - 1);
    });
  EXPECT_EQ(MatchIssues(ring, CallSource::black_box).exchanges, 0u) << "a rank of a ring waits for its neighbors alone";
}

}  // namespace
}  // namespace tacet
