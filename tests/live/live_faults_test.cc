// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "live/agent.h"
#include "live/server.h"
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
constexpr int kRanks = 4;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kRanks = 12;
#else
constexpr int kRanks = 64;
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
    std::printf("%s with %d ranks: %.1f s after the fault: %s\n", fault.c_str(), ranks, took,
                TextAt(report, "verdict.headline").c_str());
  }

  TemporaryFolder folder_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<Server> server_;
};

TEST_F(LiveFault, ARankThatIsStuckOnTheHost) { ExpectVerdict("stuck", "hang", {"rank-stuck-on-host"}); }
TEST_F(LiveFault, ARankThatIsKilled) { ExpectVerdict("dead", "hang", {"rank-dead"}); }
TEST_F(LiveFault, ARankThatIsFrozen) { ExpectVerdict("frozen", "hang", {"rank-frozen"}); }
TEST_F(LiveFault, AGpuThatNeverBegins) { ExpectVerdict("gpu", "hang", {"gpu-stalled"}); }
TEST_F(LiveFault, ALaunchThatNeverReturns) { ExpectVerdict("launch", "hang", {"gpu-stalled", "rank-stuck-on-host"}); }
TEST_F(LiveFault, DataThatNeverArrives) { ExpectVerdict("data", "hang", {"transport-stalled"}, {0, 1}); }
TEST_F(LiveFault, AReceiverThatGivesNoCredit) { ExpectVerdict("credit", "hang", {"transport-stalled"}, {-1, 0}); }
TEST_F(LiveFault, ARankThatSkipsACall) { ExpectVerdict("skip", "corrupt", {"collective-skipped"}); }

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
