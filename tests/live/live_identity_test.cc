// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>

#include "http/peer_identity.h"
#include "live/agent/agent.h"
#include "live/server/server.h"
#include "tests/live/fake_job.h"

namespace tacet {
namespace {

namespace fs = std::filesystem;
using fake::AskJson;
using fake::AskText;
using fake::AskTextAs;
using fake::AskUntil;
using fake::FakeJob;
using fake::RanksAt;
using fake::TemporaryFolder;
using fake::TextAt;
using std::chrono::seconds;

constexpr int64_t kVictim = 64201, kAttacker = 64202;

// A process of one user that listens where RAS would, and says the same to everybody.
class RasOfUser {
 public:
  RasOfUser(int64_t uid, const std::string& answer, uint16_t port = 0, uint32_t address = INADDR_LOOPBACK) {
    int told[2];
    if (::pipe(told) != 0) return;
    pid_ = ::fork();
    if (pid_ == 0) Serve(uid, answer, port, address, told[1]);
    ::close(told[1]);
    if (::read(told[0], &port_, sizeof port_) != sizeof port_) port_ = 0;
    ::close(told[0]);
  }
  ~RasOfUser() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  uint16_t port() const { return port_; }

 private:
  [[noreturn]] static void Serve(int64_t uid, const std::string& answer, uint16_t port, uint32_t where, int told) {
    if (::setuid(static_cast<uid_t>(uid)) != 0) ::_exit(1);
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(where);
    socklen_t size = sizeof address;
    auto* const plain = reinterpret_cast<sockaddr*>(&address);
    if (::bind(listener, plain, size) != 0 || ::listen(listener, 4) != 0) ::_exit(1);
    ::getsockname(listener, plain, &size);
    port = ntohs(address.sin_port);
    if (::write(told, &port, sizeof port) != sizeof port) ::_exit(1);
    while (true) {
      const int client = ::accept(listener, nullptr, nullptr);
      char question[256];
      if (::recv(client, question, sizeof question, 0) > 0) ::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
      ::close(client);
    }
  }
  pid_t pid_ = -1;
  uint16_t port_ = 0;
};

TEST(OwnerOfListener, IsWhoeverOpenedTheSocketAndNobodyWhereUsersShareAPort) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can play two users";
  const RasOfUser one(kAttacker, "");
  ASSERT_NE(one.port(), 0);
  EXPECT_EQ(OwnerOfListener(one.port()), kAttacker);
  const RasOfUser other(kVictim, "", one.port(), INADDR_LOOPBACK + 1);  // 127.0.0.2
  ASSERT_EQ(other.port(), one.port());
  EXPECT_EQ(OwnerOfListener(one.port()), -1);
}

// Two users of one node, an agent that runs as root, and a server that judges in a process of its own.
class TwoUsers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can play two users";
    ::chmod(folder_.path().c_str(), 01777);
    AgentOptions agent;
    agent.boxes.root = folder_.path();
    agent.listen.port = 0;
    agent.interval_ms = 200;
    agent.ras = {"127.0.0.1", ras_.port()};
    auto started = Agent::Start(agent);
    ASSERT_TRUE(started.ok()) << started.error().message;
    agent_ = std::move(*started);
    ServerOptions server;
    server.agents.fixed = {{"127.0.0.1", agent_->port()}};
    server.listen.port = 0;
    server.judge.program = {TACET_FILE, "serve", "--judge"};
    auto serving = Server::Start(server);
    ASSERT_TRUE(serving.ok()) << serving.error().message;
    server_ = std::move(*serving);
  }

  static std::vector<std::string> Arguments(const std::string& fault) {
    std::vector<std::string> words = {"--ranks",   "4",   "--network",  "--steps", "1000000",
                                      "--seconds", "120", "--pause-us", "20000"};
    if (!fault.empty()) words.insert(words.end(), {"--fault", fault, "--fault-rank", "1", "--fault-step", "40"});
    return words;
  }
  JsonValue Verdict(const std::string& job, int64_t uid, const std::string& wanted) {
    return AskUntil(server_->port(), "/api/v1/verdict?job=" + job + "&uid=" + std::to_string(uid), seconds(90),
                    [&](const JsonValue& v) { return TextAt(v, "verdict.status") == wanted; });
  }
  // The boxes of one user that are read and live.
  size_t LiveBoxes(int64_t uid) const {
    const auto state = agent_->state();
    return static_cast<size_t>(std::count_if(state->host.boxes.begin(), state->host.boxes.end(),
                                             [&](const BoxState& box) { return box.uid == uid && box.IsLive(); }));
  }
  void WaitForBoxes(int64_t uid, size_t count) {
    AskUntil(agent_->port(), "/api/v1/state", seconds(60), [&](const JsonValue&) { return LiveBoxes(uid) >= count; });
    ASSERT_GE(LiveBoxes(uid), count);
  }

  // Whoever is first on the port of RAS answers there for everybody.
  RasOfUser ras_{::geteuid() == 0 ? kAttacker : ::geteuid(), "NCCL version 2.28.3 says the attacker\n"};
  TemporaryFolder folder_;
  std::unique_ptr<Agent> agent_;
  std::unique_ptr<Server> server_;
};

TEST_F(TwoUsers, AJobOfTheSameNameNeitherForgesNorHidesAVerdict) {
  const FakeJob hangs(folder_.path(), "888", Arguments("stuck"), kAttacker);
  const FakeJob well(folder_.path(), "888", Arguments(""), kVictim);
  const FakeJob stuck(folder_.path(), "999", Arguments("stuck"), kVictim);
  const FakeJob moving(folder_.path(), "999", Arguments(""), kAttacker);
  EXPECT_EQ(TextAt(Verdict("888", kAttacker, "hang"), "verdict.status"), "hang");
  const JsonValue hidden = Verdict("999", kVictim, "hang");
  EXPECT_EQ(TextAt(hidden, "verdict.status"), "hang");
  EXPECT_EQ(RanksAt(hidden, "verdict.ranks"), std::vector<int>{1});
  EXPECT_EQ(TextAt(AskJson(server_->port(), "/api/v1/verdict?job=888&uid=64201"), "verdict.status"), "healthy");
  EXPECT_EQ(TextAt(AskJson(server_->port(), "/api/v1/verdict?job=999&uid=64202"), "verdict.status"), "healthy");
  // What A's process says on the port of RAS is about A's jobs, and not about V's.
  EXPECT_NE(AskText(agent_->port(), "/api/v1/ras?uid=64202").find("says the attacker"), std::string::npos);
  EXPECT_EQ(AskText(agent_->port(), "/api/v1/ras?uid=64201"), "");
  EXPECT_EQ(AskTextAs(kVictim, agent_->port(), "/api/v1/ras"), "");
  const std::string judged = AskText(server_->port(), "/api/v1/verdict?job=999&uid=64201");
  EXPECT_NE(judged.find(".box"), std::string::npos);
  EXPECT_EQ(judged.find("ras.txt"), std::string::npos) << "no input of V's verdict is RAS";
  const std::string metrics = AskText(agent_->port(), "/metrics");
  EXPECT_NE(metrics.find("tacet_hang_suspected{job_id=\"888\",uid=\"64202\"} 1"), std::string::npos);
  EXPECT_NE(metrics.find("tacet_hang_suspected{job_id=\"888\",uid=\"64201\"} 0"), std::string::npos);
}

TEST_F(TwoUsers, ABoxOfAnotherThanItsProcessCountsForNothing) {
  const FakeJob job(folder_.path(), "777", Arguments(""), kVictim);
  WaitForBoxes(kVictim, 4);
  std::string box;
  for (const BoxState& one : agent_->state()->host.boxes)
    if (one.uid == kVictim && one.IsLive()) box = one.name;
  const std::string planted = folder_.path() + "/planted.box";
  fs::copy(folder_.path() + "/" + box, planted);
  ASSERT_EQ(::chown(planted.c_str(), kAttacker, kAttacker), 0);
  const auto trouble = [&]() -> std::string {
    for (const BoxState& one : agent_->state()->host.boxes)
      if (one.name == "planted.box") return one.trouble;
    return "not seen";
  };
  AskUntil(agent_->port(), "/api/v1/state", seconds(60), [&](const JsonValue&) { return trouble() != "not seen"; });
  EXPECT_EQ(trouble(), "foreign-process");
  EXPECT_NE(AskText(agent_->port(), "/healthz").find("planted.box cannot be read: it belongs to uid 64202"),
            std::string::npos);
  EXPECT_EQ(LiveBoxes(kAttacker), 0u);
}

TEST_F(TwoUsers, SeeTheirOwnJobsAndNotEachOthers) {
  const FakeJob secret(folder_.path(), "secret-job", Arguments(""), kVictim);
  WaitForBoxes(kVictim, 4);
  std::string box;
  for (const BoxState& one : agent_->state()->host.boxes)
    if (one.uid == kVictim) box = one.name;
  const std::string copy = "/api/v1/boxes/" + box + "?newest=4";
  AskUntil(server_->port(), "/api/v1/jobs", seconds(60),
           [&](const JsonValue& jobs) { return jobs.Find("jobs") != nullptr && !jobs.Find("jobs")->items.empty(); });
  for (const char* path : {"/api/v1/state", "/api/v1/boxes", "/metrics", "/healthz"}) {
    EXPECT_EQ(AskTextAs(kAttacker, agent_->port(), path).find("secret-job"), std::string::npos) << path;
    EXPECT_NE(AskTextAs(kAttacker, agent_->port(), path), "") << path;
  }
  EXPECT_EQ(AskTextAs(kAttacker, agent_->port(), copy), "");
  for (const char* path : {"/", "/api/v1/verdict", "/api/v1/jobs", "/api/v1/state", "/metrics"})
    EXPECT_EQ(AskTextAs(kAttacker, server_->port(), path).find("secret-job"), std::string::npos) << path;
  EXPECT_EQ(AskTextAs(kAttacker, server_->port(), "/api/v1/verdict?job=secret-job"), "");
  // The owner and root see it.
  EXPECT_NE(AskTextAs(kVictim, agent_->port(), "/api/v1/state").find("secret-job"), std::string::npos);
  EXPECT_NE(AskTextAs(kVictim, agent_->port(), copy), "");
  EXPECT_NE(AskTextAs(kVictim, server_->port(), "/api/v1/jobs").find("secret-job"), std::string::npos);
  EXPECT_NE(AskText(server_->port(), "/api/v1/jobs").find("secret-job"), std::string::npos);
}

// One mad judge must not end the server, nor keep it from saying that the job hangs.
TEST(LiveJudge, AHangIsToldEvenWhenItsBoxesCannotBeJudged) {
  const TemporaryFolder folder;
  AgentOptions agent;
  agent.boxes.root = folder.path();
  agent.listen.port = 0;
  agent.ask_ras = false;
  auto watching = Agent::Start(agent);
  ASSERT_TRUE(watching.ok());
  ServerOptions options;
  options.agents.fixed = {{"127.0.0.1", (*watching)->port()}};
  options.listen.port = 0;
  options.judge.program = {"/bin/false"};
  auto server = Server::Start(options);
  ASSERT_TRUE(server.ok());
  const FakeJob job(folder.path(), "555",
                    {"--ranks", "4", "--network", "--steps", "1000000", "--seconds", "120", "--pause-us", "20000",
                     "--fault", "stuck", "--fault-rank", "1", "--fault-step", "40"});
  const auto told = [](const JsonValue& jobs) {
    const JsonValue* list = jobs.Find("jobs");
    return list != nullptr && !list->items.empty() && TextAt(list->items[0], "status") == "hang" &&
           TextAt(list->items[0], "headline").find("could not be judged") != std::string::npos;
  };
  EXPECT_TRUE(told(AskUntil((*server)->port(), "/api/v1/jobs", seconds(90), told)));
}

}  // namespace
}  // namespace tacet
