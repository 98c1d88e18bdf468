// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "evidence/load.h"
#include "live/agent/agent.h"
#include "live/server/server.h"
#include "report/make_report.h"
#include "tests/live/fake_job.h"

namespace tacet {
namespace {

using fake::AskUntil;
using fake::FakeJob;
using fake::RanksAt;
using fake::TemporaryFolder;
using fake::TextAt;
using std::chrono::seconds;

// Sanitized processes are several times slower: fewer of them keep two cores free for the agent and the server.
#if defined(__SANITIZE_THREAD__)
constexpr int kRanks = 4, kManyRanks = 4;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kRanks = 12, kManyRanks = 12;
#else
constexpr int kRanks = 16, kManyRanks = 64;
#endif
constexpr int kGuilty = 37, kFaultStep = 40;

// A node's agent and a cluster's server in this process, watching one folder.
class LiveFault : public ::testing::Test {
 protected:
  void SetUp() override {
    AgentOptions agent;
    agent.boxes.root = folder_.path();
    agent.listen.port = 0;
    agent.ask_ras = false;
    auto started = Agent::Start(agent);
    ASSERT_TRUE(started.ok());
    agent_ = std::move(*started);
    ServerOptions server;
    server.agents.fixed = {{"127.0.0.1", agent_->port()}};
    server.listen.port = 0;
    auto serving = Server::Start(server);
    ASSERT_TRUE(serving.ok());
    server_ = std::move(*serving);
  }

  std::vector<std::string> JobArguments(const std::string& fault, int ranks) const {
    std::vector<std::string> words = {"--ranks", std::to_string(ranks), "--network", "--steps", "1000000", "--seconds",
                                      "120",     "--pause-us",          "20000"};
    if (fault.empty()) return words;
    for (const std::string& word :
         {std::string("--fault"), fault, std::string("--fault-rank"), std::to_string(kGuilty % ranks),
          std::string("--fault-step"), std::to_string(kFaultStep)})
      words.push_back(word);
    return words;
  }

  // Until the operations of the faulty step are issued; then the fault has happened.
  void WaitForTheFault() const {
    AskUntil(agent_->port(), "/api/v1/state?brief=1", seconds(120), [](const JsonValue& state) {
      const JsonValue* boxes = state.Find("boxes");
      if (boxes == nullptr) return false;
      return std::any_of(boxes->items.begin(), boxes->items.end(), [](const JsonValue& box) {
        const JsonValue* comms = box.Find("communicators");
        return comms != nullptr && !comms->items.empty() && comms->items[0].Find("issued") != nullptr &&
               comms->items[0].Find("issued")->Int() >= kFaultStep;
      });
    });
  }

  // `way`: from and to of the flow that the headline must name, seen from the guilty rank.
  void ExpectVerdict(const std::string& fault, const std::string& status, const std::vector<std::string>& causes,
                     std::pair<int, int> way = {0, 0}, int ranks = kRanks) {
    FakeJob job(folder_.path(), "train", JobArguments(fault, ranks));
    WaitForTheFault();
    const auto began = std::chrono::steady_clock::now();
    const std::vector<int> guilty = {kGuilty % ranks};
    const auto is_right = [&](const JsonValue& report) {
      return TextAt(report, "verdict.status") == status &&
             std::find(causes.begin(), causes.end(), TextAt(report, "verdict.cause")) != causes.end() &&
             RanksAt(report, "verdict.ranks") == guilty;
    };
    const auto near = [&](int distance) { return "rank " + std::to_string((guilty[0] + distance + ranks) % ranks); };
    const JsonValue report = AskUntil(server_->port(), "/api/v1/verdict", seconds(60), is_right);
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    EXPECT_TRUE(is_right(report)) << TextAt(report, "verdict.status") << " " << TextAt(report, "verdict.cause") << ": "
                                  << TextAt(report, "verdict.headline");
    EXPECT_EQ(TextAt(report, "schema"), "tacet.report.v1");
    if (way.first != way.second) {
      const std::string flow = near(way.first) + " -> " + near(way.second);
      EXPECT_NE(TextAt(report, "verdict.headline").find(flow), std::string::npos)
          << flow << ": " << TextAt(report, "verdict.headline");
    }
    ExpectTheSameAfterwards(TextAt(report, "verdict.status"), causes, guilty);
    std::printf("%s with %d ranks: %.1f s after the fault: %s\n", fault.c_str(), ranks, took,
                TextAt(report, "verdict.headline").c_str());
  }

  // `tacet diagnose` on the boxes says what the server said.
  void ExpectTheSameAfterwards(const std::string& status, const std::vector<std::string>& causes,
                               const std::vector<int>& guilty) const {
    auto loaded = LoadEvidence({folder_.path()}, {});
    ASSERT_TRUE(loaded.ok());
    const Report report = MakeReport(std::move(loaded->fragments));
    // A job that computes nonsense comes to a standstill in the end.
    const bool stands_by_now = status == "corrupt" && report.verdict.status == Status::hang;
    EXPECT_TRUE(stands_by_now || Name(report.verdict.status) == status) << report.verdict.headline;
    EXPECT_NE(std::find(causes.begin(), causes.end(), report.verdict.cause), causes.end())
        << report.verdict.cause << ": " << report.verdict.headline;
    EXPECT_EQ(report.verdict.ranks, guilty) << report.verdict.headline;
  }

  TemporaryFolder folder_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<Server> server_;
};

TEST_F(LiveFault, ARankThatIsStuckOnTheHost) { ExpectVerdict("stuck", "hang", {"rank-stuck-on-host"}); }
TEST_F(LiveFault, ARankThatIsKilled) { ExpectVerdict("dead", "hang", {"rank-dead"}, {}, kManyRanks); }
TEST_F(LiveFault, ARankThatIsFrozen) { ExpectVerdict("frozen", "hang", {"rank-frozen"}); }
TEST_F(LiveFault, AGpuThatNeverBegins) { ExpectVerdict("gpu", "hang", {"gpu-stalled"}); }
TEST_F(LiveFault, ALaunchThatNeverReturns) { ExpectVerdict("launch", "hang", {"gpu-stalled", "rank-stuck-on-host"}); }
TEST_F(LiveFault, DataThatNeverArrives) { ExpectVerdict("data", "hang", {"transport-stalled"}, {0, 1}); }
TEST_F(LiveFault, AReceiverThatGivesNoCredit) { ExpectVerdict("credit", "hang", {"transport-stalled"}, {-1, 0}); }
TEST_F(LiveFault, ARankThatSkipsACall) { ExpectVerdict("skip", "corrupt", {"collective-skipped"}); }

// What real jobs do besides. Fewer ranks, so that two jobs fit on a test machine.
class AwkwardLiveFault : public LiveFault {
 protected:
  static std::vector<std::string> Words(const std::string& text) {
    std::vector<std::string> words;
    std::istringstream in("--network --steps 1000000 --seconds 120 --pause-us 20000 " + text);
    for (std::string word; in >> word;) words.push_back(word);
    return words;
  }
  static std::string Describe(const JsonValue& report) {
    std::string out = TextAt(report, "verdict.status") + " " + TextAt(report, "verdict.cause") + ":";
    for (const int rank : RanksAt(report, "verdict.ranks")) out += " " + std::to_string(rank);
    return out;
  }
  // Waits for that verdict; on the way no other hang may be told, since a person may act on it.
  void ExpectOnly(const std::string& job, const std::string& wanted, seconds limit = seconds(60)) {
    const std::string path = "/api/v1/verdict?job=" + job;
    const JsonValue report = AskUntil(server_->port(), path, limit, [&](const JsonValue& seen) {
      const std::string now = Describe(seen);
      if (TextAt(seen, "verdict.status") == "hang" && now != wanted) others_.push_back(now);
      return now == wanted;
    });
    EXPECT_EQ(Describe(report), wanted) << TextAt(report, "verdict.headline");
    std::printf("%s: %s\n", job.c_str(), TextAt(report, "verdict.headline").c_str());
  }
  void ExpectHealthy(const std::string& job, seconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
      const JsonValue report = fake::AskJson(server_->port(), "/api/v1/verdict?job=" + job);
      if (report.is_object()) {
        ASSERT_EQ(TextAt(report, "verdict.status"), "healthy") << TextAt(report, "verdict.headline");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
  int64_t LiveProcesses(const std::string& job) {
    const JsonValue report = fake::AskJson(server_->port(), "/api/v1/verdict?job=" + job);
    const JsonValue* live = fake::ValueAt(report, "live.processes_live");
    return live == nullptr ? -1 : live->Int(-1);
  }
  void WaitForProcesses(const std::string& job, int64_t count) {
    const auto end = std::chrono::steady_clock::now() + seconds(60);
    while (LiveProcesses(job) != count && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ASSERT_EQ(LiveProcesses(job), count);
  }
  std::vector<std::string> others_;
};

TEST_F(AwkwardLiveFault, OnlyOneOfSeveralGroupsHangs) {
  FakeJob job(folder_.path(), "grid",
              Words("--ranks 8 --tensor 4 --sync-every 1000000 --fault stuck --fault-rank 6 --fault-step 40"));
  ExpectOnly("grid", "hang rank-stuck-on-host: 6");
  EXPECT_TRUE(others_.empty()) << others_[0];
}

TEST_F(AwkwardLiveFault, AHangThatSpreadsFromOneGroupToAllIsTheFirstRanks) {
  FakeJob job(folder_.path(), "grid",
              Words("--ranks 8 --tensor 4 --sync-every 2 --fault stuck --fault-rank 3 --fault-step 40"));
  ExpectOnly("grid", "hang rank-stuck-on-host: 3");
  EXPECT_TRUE(others_.empty()) << others_[0];
}

TEST_F(AwkwardLiveFault, TwoRanksAreKilledAtOnce) {
  FakeJob job(folder_.path(), "pair",
              Words("--ranks 8 --fault dead --fault-rank 5 --other-fault dead --other-rank 2 --fault-step 40"));
  ExpectOnly("pair", "hang rank-dead: 2 5");
}

TEST_F(AwkwardLiveFault, ARestartUnderTheSameNameIsJudgedByItself) {
  {
    FakeJob first(folder_.path(), "again", Words("--ranks 6 --fault dead --fault-rank 1 --fault-step 40"));
    ExpectOnly("again", "hang rank-dead: 1");
  }  // torchrun kills the others and starts anew; the old boxes stay
  {
    FakeJob second(folder_.path(), "again", Words("--ranks 6"));
    WaitForProcesses("again", 6);
    ExpectHealthy("again", seconds(8));
  }
  FakeJob third(folder_.path(), "again", Words("--ranks 6 --fault stuck --fault-rank 4 --fault-step 40"));
  ExpectOnly("again", "hang rank-stuck-on-host: 4");
}

TEST_F(AwkwardLiveFault, TwoJobsOfOneNameAtTheSameTimeAreKeptApart) {
  FakeJob healthy(folder_.path(), "twins", Words("--ranks 4"));
  WaitForProcesses("twins", 4);
  FakeJob hangs(folder_.path(), "twins", Words("--ranks 4 --fault stuck --fault-rank 3 --fault-step 40"));
  ExpectOnly("twins", "hang rank-stuck-on-host: 3");
}

TEST_F(AwkwardLiveFault, AJobThatEndsBesideOneThatBeginsAlarmsNobody) {
  FakeJob ends(folder_.path(), "ends", {"--ranks", "4", "--network", "--steps", "150", "--pause-us", "20000"});
  FakeJob begins(folder_.path(), "begins", Words("--ranks 4"));
  ExpectHealthy("begins", seconds(8));
  ExpectHealthy("ends", seconds(4));
}

// A node that goes down, a scheduler that kills: nobody is left to wait, and nobody hangs.
TEST_F(AwkwardLiveFault, AJobAllOfWhoseProcessesDieIsACrash) {
  std::chrono::steady_clock::time_point died;
  {
    FakeJob job(folder_.path(), "fallen", Words("--ranks 4"));
    WaitForProcesses("fallen", 4);
    std::this_thread::sleep_for(seconds(2));
    died = std::chrono::steady_clock::now();
  }
  const JsonValue report = AskUntil(server_->port(), "/api/v1/verdict?job=fallen", seconds(60),
                                    [](const JsonValue& seen) { return TextAt(seen, "verdict.status") == "crash"; });
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - died).count();
  EXPECT_EQ(TextAt(report, "verdict.status"), "crash") << TextAt(report, "verdict.headline");
  EXPECT_EQ(TextAt(report, "verdict.cause"), "rank-dead");
  EXPECT_NE(TextAt(report, "verdict.headline").find("All 4 processes are gone without a clean exit"), std::string::npos)
      << TextAt(report, "verdict.headline");
  std::printf("all died: %.1f s later: %s\n", took, TextAt(report, "verdict.headline").c_str());
}

// Not a hang: all get on, at the pace of the slowest.
TEST_F(AwkwardLiveFault, ASlowRankAlarmsNobody) {
  FakeJob job(folder_.path(), "slow", Words("--ranks 4 --slow-rank 0 --slow-us 900000"));
  ExpectHealthy("slow", seconds(15));
}

// A first collective may take minutes for good reasons, so nothing is said early; a process that is gone is told at
// once.
TEST_F(AwkwardLiveFault, ARankThatDiesBeforeTheFirstCollectiveIsNamed) {
  FakeJob job(folder_.path(), "first", Words("--ranks 4 --fault dead --fault-rank 2 --fault-step 1"));
  ExpectOnly("first", "hang rank-dead: 2");
}

TEST_F(AwkwardLiveFault, ARankThatIsLostInACheckpointIsNamedWhenTheOthersWait) {
  FakeJob job(folder_.path(), "saves",
              Words("--ranks 4 --rest-every 40 --rest-ms 3000 --fault dead --fault-rank 1 --fault-step 41"));
  ExpectOnly("saves", "hang rank-dead: 1");
}

// The table of the live page: what is said of a job stays when its processes are gone, in grey.
TEST_F(AwkwardLiveFault, AJobThatEndedKeepsItsVerdictInTheTable) {
  const auto row_of = [](const JsonValue& report, const std::string& job) -> const JsonValue* {
    const JsonValue* table = fake::ValueAt(report, "live.table");
    if (table == nullptr) return nullptr;
    for (const JsonValue& row : table->items)
      if (TextAt(row, "job") == job) return &row;
    return nullptr;
  };
  const auto is_ended = [](const JsonValue* row) {
    return row != nullptr && row->Find("ended") != nullptr && row->Find("ended")->boolean;
  };
  FakeJob running(folder_.path(), "running", Words("--ranks 2"));
  {
    FakeJob stuck(folder_.path(), "stuck", Words("--ranks 4 --fault stuck --fault-rank 2 --fault-step 40"));
    ExpectOnly("stuck", "hang rank-stuck-on-host: 2");
    const JsonValue report = fake::AskJson(server_->port(), "/api/v1/verdict");
    const JsonValue* row = row_of(report, "stuck");
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(TextAt(*row, "status"), "hang");
    EXPECT_EQ(RanksAt(*row, "ranks"), std::vector<int>{2});
    EXPECT_FALSE(is_ended(row));
    EXPECT_EQ(row->Find("host_count")->Int(), 1);
    EXPECT_LT(row->Find("since_wall_ns")->Int(), fake::ValueAt(report, "live.wall_ns")->Int());
    EXPECT_EQ(TextAt(fake::ValueAt(report, "live.table")->items.front(), "job"), "stuck") << "the worst first";
  }
  const JsonValue after = AskUntil(server_->port(), "/api/v1/verdict", seconds(60),
                                   [&](const JsonValue& report) { return is_ended(row_of(report, "stuck")); });
  const JsonValue* row = row_of(after, "stuck");
  ASSERT_TRUE(is_ended(row));
  EXPECT_EQ(TextAt(*row, "status"), "hang");
  EXPECT_EQ(RanksAt(*row, "ranks"), std::vector<int>{2}) << "judged while it could be seen, and not anew";
  EXPECT_FALSE(is_ended(row_of(after, "running")));
}

// The nearest healthy look-alike: every rank stops for longer than a hang would take to be seen, then goes on.
TEST_F(LiveFault, AJobThatPausesIsHealthy) {
  FakeJob job(folder_.path(), "train",
              {"--ranks", "8", "--network", "--steps", "1000000", "--seconds", "600", "--pause-us", "20000",
               "--rest-every", "100", "--rest-ms", "6000"});
  WaitForTheFault();
  const auto end = std::chrono::steady_clock::now() + seconds(25);
  while (std::chrono::steady_clock::now() < end) {
    const JsonValue report = fake::AskJson(server_->port(), "/api/v1/verdict");
    ASSERT_EQ(TextAt(report, "verdict.status"), "healthy") << TextAt(report, "verdict.headline");
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  EXPECT_TRUE(job.IsRunning());
}

}  // namespace
}  // namespace tacet
