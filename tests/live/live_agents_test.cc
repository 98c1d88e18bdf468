// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

#include "evidence/black_box/black_box_parse.h"
#include "live/agent/agent.h"
#include "live/server/server.h"
#include "tests/live/fake_job.h"

namespace tacet {
namespace {

namespace fs = std::filesystem;
using fake::AskJson;
using fake::AskText;
using fake::AskUntil;
using fake::TemporaryFolder;
using fake::TextAt;
using fake::ValueAt;
using std::chrono::seconds;

std::string Sample(const std::string& name) { return TACET_SOURCE_DIR "/src/evidence/black_box/samples/" + name; }

std::unique_ptr<Agent> StartAgent(const std::string& root, int port = 0) {
  AgentOptions options;
  options.boxes.root = root;
  options.listen.port = port;
  options.interval_ms = 100;
  options.ask_ras = false;
  options.clean_up = false;
  auto agent = Agent::Start(options);
  EXPECT_TRUE(agent.ok()) << (agent ? "" : agent.error().message);
  return agent ? std::move(*agent) : nullptr;
}

size_t BoxCount(const JsonValue& state) {
  const JsonValue* boxes = state.Find("boxes");
  return boxes == nullptr ? 0 : boxes->items.size();
}

TEST(LiveAgent, WaitsForAFolderThatIsNotThereYet) {
  const TemporaryFolder folder;
  const auto agent = StartAgent(folder.path() + "/later");
  EXPECT_NE(TextAt(AskJson(agent->port(), "/api/v1/state"), "note").find("does not exist"), std::string::npos);
  fs::create_directories(folder.path() + "/later/job");
  fs::copy(Sample("healthy_rank0.box"), folder.path() + "/later/job/a-1.box");
  const JsonValue state =
      AskUntil(agent->port(), "/api/v1/state", seconds(60), [](const JsonValue& s) { return BoxCount(s) == 1; });
  ASSERT_EQ(BoxCount(state), 1u);
  EXPECT_EQ(TextAt(state, "note"), "");
}

TEST(LiveAgent, BadBoxesAreNamedAndTheOthersStayReadable) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() + "/job");
  const std::string base = folder.path() + "/job/";
  fs::copy(Sample("healthy_rank0.box"), base + "good.box");
  std::ofstream(base + "empty.box");
  std::ofstream(base + "text.box") << std::string(10000, 'x');
  std::ifstream in(Sample("healthy_rank0.box"), std::ios::binary);
  std::string other(std::istreambuf_iterator<char>(in), {});
  other[8] = 99;  // the version
  std::ofstream(base + "newer.box", std::ios::binary).write(other.data(), static_cast<long>(other.size()));
  fs::create_directory(base + "folder.box");
  fs::create_symlink("/etc/passwd", base + "link.box");
  ::mkfifo((base + "fifo.box").c_str(), 0600);
  const auto agent = StartAgent(folder.path());
  const JsonValue state = AskJson(agent->port(), "/api/v1/state");
  std::map<std::string, std::string> troubles;
  for (const JsonValue& box : state.Find("boxes")->items) troubles[TextAt(box, "name")] = TextAt(box, "trouble");
  EXPECT_EQ(troubles["job/good.box"], "");
  EXPECT_EQ(troubles["job/empty.box"], "no-black-box");
  EXPECT_EQ(troubles["job/text.box"], "no-black-box");
  EXPECT_EQ(troubles["job/newer.box"], "other-version");
  for (const char* name : {"job/folder.box", "job/link.box", "job/fifo.box"})
    EXPECT_EQ(troubles[name], "unreadable") << name;
  const std::string metrics = AskText(agent->port(), "/metrics");
  EXPECT_NE(metrics.find("tacet_boxes{trouble=\"other-version\"} 1"), std::string::npos) << metrics;
}

// For the log, and for whoever asks /healthz; the agent itself is well.
TEST(LiveAgent, SaysOnceWhatIsWrongWithBoxes) {
  const TemporaryFolder folder;
  fs::copy(Sample("healthy_rank0.box"), folder.path() + "/good.box");
  std::ofstream(folder.path() + "/text.box") << std::string(10000, 'x');
  fs::create_symlink("/etc/passwd", folder.path() + "/li\nnk.box");
  AgentOptions options;
  options.boxes.root = folder.path();
  options.listen.port = 0;
  options.interval_ms = 100;
  options.ask_ras = options.clean_up = false;
  std::mutex lock;
  std::vector<std::string> said;
  options.say = [&](const std::string& what) {
    const std::lock_guard held(lock);
    said.push_back(what);
  };
  auto agent = Agent::Start(options);
  ASSERT_TRUE(agent.ok());
  const int port = (*agent)->port();
  const std::string health = AskText(port, "/healthz");
  EXPECT_TRUE(health.starts_with("ok\n")) << health;
  EXPECT_NE(health.find("text.box cannot be read: "), std::string::npos) << health;
  EXPECT_NE(health.find("li?nk.box cannot be read: "), std::string::npos) << health;
  EXPECT_EQ(health.find("good.box"), std::string::npos) << health;
  // Something new is said after many looks; the old is not said again.
  std::ofstream(folder.path() + "/later.box") << "x";
  const auto later = [&] {
    const std::lock_guard held(lock);
    return said.size() >= 3;
  };
  for (int i = 0; i < 600 && !later(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  agent->reset();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_NE(said[2].find("later.box"), std::string::npos);
}

TEST(LiveAgent, OfTooManyBoxesTheNewestAreWatched) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b", "z", "y", "x"}) {  // two old ones first
    fs::copy(Sample("healthy_rank0.box"), folder.path() + "/" + name + ".box");
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  AgentOptions options;
  options.boxes.root = folder.path();
  options.boxes.most_boxes = 3;
  options.listen.port = 0;
  options.ask_ras = options.clean_up = false;
  auto agent = Agent::Start(options);
  ASSERT_TRUE(agent.ok());
  std::vector<std::string> names;
  for (const BoxState& box : (*agent)->state()->host.boxes) names.push_back(box.name);
  EXPECT_EQ(names, (std::vector<std::string>{"x.box", "y.box", "z.box"}));
  EXPECT_NE(AskText((*agent)->port(), "/metrics").find("tacet_agent_boxes_left_out 2\n"), std::string::npos);
  EXPECT_NE(AskText((*agent)->port(), "/healthz").find("too many"), std::string::npos);
}

TEST(LiveAgent, ABoxThatIsCutOrRewrittenWhileItIsWatchedDoesNoHarm) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/x-1.box";
  fs::copy(Sample("hang_waiting_rank0.box"), path);
  fs::copy(Sample("healthy_rank0.box"), folder.path() + "/good.box");
  const auto agent = StartAgent(folder.path());
  const auto trouble_is = [](const std::string& wanted) {
    return [wanted](const JsonValue& state) {
      const JsonValue* boxes = state.Find("boxes");
      return boxes != nullptr && boxes->items.size() == 2 && TextAt(boxes->items[1], "trouble") == wanted &&
             TextAt(boxes->items[0], "trouble").empty();
    };
  };
  const auto becomes = [&](const std::string& wanted) {
    return trouble_is(wanted)(AskUntil(agent->port(), "/api/v1/state", seconds(60), trouble_is(wanted)));
  };
  EXPECT_TRUE(becomes(""));
  fs::resize_file(path, 5000);
  EXPECT_NE(AskText(agent->port(), "/api/v1/boxes/x-1.box?newest=1024"), "");
  fs::resize_file(path, 0);
  EXPECT_TRUE(becomes("no-black-box"));
  std::ofstream(path, std::ios::binary) << std::string(1 << 20, '\xff');
  EXPECT_TRUE(becomes("no-black-box"));
  fs::remove(path);
  fs::copy(Sample("hang_waiting_rank0.box"), path);
  EXPECT_TRUE(becomes(""));
}

// As many as a careless monitoring tool leaves open. The library alone would let eight of them hold everybody up.
TEST(LiveAgent, ClientsThatSayNothingHoldNobodyUp) {
  const TemporaryFolder folder;
  const auto agent = StartAgent(folder.path());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(agent->port()));
  std::vector<int> idle;
  for (int i = 0; i < 300; ++i) {
    idle.push_back(::socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(::connect(idle.back(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    if (i % 2 == 0) {
      ASSERT_EQ(::send(idle.back(), "GET /met", 8, MSG_NOSIGNAL), 8);
    }
  }
  EXPECT_TRUE(AskText(agent->port(), "/healthz").starts_with("ok\n"));
  for (const int one : idle) ::close(one);
}

TEST(LiveAgent, GivesSmallCopiesOfTheBoxesItWatchesAndOfNothingElse) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() + "/a job");
  fs::copy(Sample("hang_waiting_rank0.box"), folder.path() + "/a job/x-1.box");
  std::ofstream(folder.path() + "/secret.txt") << "no";
  const auto agent = StartAgent(folder.path());
  const std::string copy = AskText(agent->port(), "/api/v1/boxes/" + EncodeUrlPath("a job/x-1.box") + "?newest=4");
  EXPECT_EQ(ParseBlackBox(copy).trouble, BoxTrouble::none);
  EXPECT_LT(copy.size(), fs::file_size(Sample("hang_waiting_rank0.box")));
  for (const char* path : {"/api/v1/boxes/secret.txt", "/api/v1/boxes/../secret.txt", "/api/v1/boxes/%2e%2e/secret.txt",
                           "/api/v1/boxes//etc/passwd", "/api/v1/boxes/a%20job/x-1.box?newest=x", "/nothing"})
    EXPECT_EQ(AskText(agent->port(), path), "") << path;
}

TEST(LiveAgent, SaysSoWhenThePortIsTaken) {
  const TemporaryFolder folder;
  const auto agent = StartAgent(folder.path());
  AgentOptions options;
  options.boxes.root = folder.path();
  options.listen.port = agent->port();
  const auto second = Agent::Start(options);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("in use"), std::string::npos);
}

std::unique_ptr<Server> StartServer(AgentSource source, int workers = 16) {
  ServerOptions options;
  options.agents = std::move(source);
  options.listen.port = 0;
  options.poll.interval_ms = 500;
  options.poll.workers = workers;
  auto server = Server::Start(options);
  EXPECT_TRUE(server.ok()) << (server ? "" : server.error().message);
  return server ? std::move(*server) : nullptr;
}

int64_t NumberAt(const JsonValue& document, std::string_view path) {
  const JsonValue* value = ValueAt(document, path);
  return value == nullptr ? -1 : value->Int(-1);
}

TEST(LiveServer, GoesOnWhenAgentsVanishAndReturn) {
  const TemporaryFolder folder;
  fs::copy(Sample("healthy_rank0.box"), folder.path() + "/x-1.box");
  auto stays = StartAgent(folder.path());
  auto leaves = StartAgent(folder.path());
  const int port = leaves->port();
  const auto server = StartServer({{{"127.0.0.1", stays->port()}, {"127.0.0.1", port}}, "", ""});
  const auto reaches = [](int64_t count) {
    return [count](const JsonValue& agents) { return NumberAt(agents, "reachable") == count; };
  };
  EXPECT_EQ(NumberAt(AskUntil(server->port(), "/api/v1/agents", seconds(60), reaches(2)), "reachable"), 2);
  leaves.reset();
  EXPECT_EQ(NumberAt(AskUntil(server->port(), "/api/v1/agents", seconds(60), reaches(1)), "reachable"), 1);
  EXPECT_EQ(TextAt(AskJson(server->port(), "/api/v1/verdict"), "schema"), "tacet.report.v1");
  leaves = StartAgent(folder.path(), port);
  EXPECT_EQ(NumberAt(AskUntil(server->port(), "/api/v1/agents", seconds(90), reaches(2)), "reachable"), 2);
}

TEST(LiveServer, ReadsTheListOfAgentsAgain) {
  const TemporaryFolder folder;
  const auto agent = StartAgent(folder.path());
  const std::string list = folder.path() + "/agents";
  std::ofstream(list) << "# none yet\n";
  const auto server = StartServer({{}, list, ""});
  std::ofstream(list) << "127.0.0.1:" << agent->port() << " # the first\n";
  const JsonValue agents = AskUntil(server->port(), "/api/v1/agents", seconds(90),
                                    [](const JsonValue& a) { return NumberAt(a, "reachable") == 1; });
  EXPECT_EQ(NumberAt(agents, "reachable"), 1);
}

// One program that plays many agents, on one port each. Some answer slowly, some nonsense, some not at all.
TEST(LiveServer, SlowAndBrokenAgentsDelayNobody) {
  const std::string state = WriteState({}, StateForm::brief);
  std::atomic<int> answered{0};
  std::vector<std::unique_ptr<HttpServer>> agents;
  AgentSource source;
  for (int i = 0; i < 40; ++i) {
    auto agent = HttpServer::Start({"127.0.0.1", 0}, 2, [&, i](const HttpRequest&) -> HttpReply {
      if (i % 4 == 1) std::this_thread::sleep_for(std::chrono::seconds(4));
      if (i % 4 == 2) return {200, "application/json", "{\"schema\":\"tacet.sta"};
      if (i % 4 == 3) return {500, "text/plain", "no"};
      ++answered;
      return {200, "application/json", state};
    });
    ASSERT_TRUE(agent.ok());
    source.fixed.push_back({"127.0.0.1", (*agent)->port()});
    agents.push_back(std::move(*agent));
  }
  const auto server = StartServer(source, 8);
  const JsonValue seen = AskUntil(server->port(), "/api/v1/agents", seconds(90),
                                  [](const JsonValue& a) { return NumberAt(a, "reachable") == 10; });
  EXPECT_EQ(NumberAt(seen, "reachable"), 10);
  // Each of the ten is asked again and again although thirty fail: wait for many rounds.
  const auto end = std::chrono::steady_clock::now() + seconds(90);
  while (answered < 100 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_GE(answered, 100);
  EXPECT_EQ(NumberAt(AskJson(server->port(), "/api/v1/agents"), "reachable"), 10);
}

std::string ErrorOf(const JsonValue& agents, size_t index) {
  const JsonValue* list = agents.Find("agents");
  return list != nullptr && list->items.size() > index ? TextAt(list->items[index], "error") : "";
}

TEST(LiveServer, SaysWhatIsWrongWithEachAgentAndWithTheList) {
  const TemporaryFolder folder;
  const auto good = StartAgent(folder.path());
  const auto answer = [](std::string body) {
    return std::move(*HttpServer::Start({"127.0.0.1", 0}, 2, [body](const HttpRequest&) {
      return HttpReply{200, "application/json", body};
    }));
  };
  const auto other = answer("{\"schema\":\"tacet.state.v2\",\"boxes\":[]}");
  const auto page = answer("<html>");
  const auto huge = answer(std::string(17 << 20, ' '));
  const int ports[] = {good->port(), other->port(), page->port(), huge->port(), 1};
  AgentSource source;
  for (const int port : ports) source.fixed.push_back({"127.0.0.1", port});
  source.fixed.push_back({"no-such-host.invalid", 9560});
  source.file = folder.path() + "/no-such-file";
  const auto server = StartServer(source);
  const JsonValue seen = AskUntil(server->port(), "/api/v1/agents", seconds(90), [](const JsonValue& a) {
    return NumberAt(a, "reachable") == 1 && !ErrorOf(a, 1).empty() && !ErrorOf(a, 2).empty() &&
           !ErrorOf(a, 3).empty() && !ErrorOf(a, 4).empty() && !ErrorOf(a, 5).empty();
  });
  EXPECT_EQ(NumberAt(seen, "reachable"), 1);
  EXPECT_EQ(ErrorOf(seen, 0), "");
  EXPECT_NE(ErrorOf(seen, 1).find("tacet.state.v2"), std::string::npos) << ErrorOf(seen, 1);
  EXPECT_NE(ErrorOf(seen, 2).find("not complete JSON"), std::string::npos) << ErrorOf(seen, 2);
  EXPECT_NE(ErrorOf(seen, 3).find("larger than"), std::string::npos) << ErrorOf(seen, 3);
  EXPECT_NE(ErrorOf(seen, 4).find("nothing listens at 127.0.0.1:1"), std::string::npos) << ErrorOf(seen, 4);
  EXPECT_NE(ErrorOf(seen, 5).find("cannot resolve 'no-such-host.invalid'"), std::string::npos) << ErrorOf(seen, 5);
  EXPECT_NE(TextAt(seen, "list_error").find("no-such-file"), std::string::npos);
  const std::string health = AskText(server->port(), "/healthz");
  EXPECT_NE(health.find("1 of 6 agents answer"), std::string::npos) << health;
  EXPECT_NE(health.find("no-such-file"), std::string::npos) << health;
}

// Agents that take a connection and never say a word. Each request to them may take a minute here.
TEST(LiveServer, EndsAtOnceWhileAgentsHang) {
  const int silent = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(silent, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(silent, 64), 0);
  ASSERT_EQ(::getsockname(silent, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ServerOptions options;
  options.agents.fixed.assign(1, {"127.0.0.1", ntohs(address.sin_port)});
  options.listen.port = 0;
  options.poll.limits = {.connect_ms = 1000, .whole_ms = 60'000};
  auto server = Server::Start(options);
  ASSERT_TRUE(server.ok());
  const int taken = ::accept(silent, nullptr, nullptr);  // it asks
  ASSERT_GE(taken, 0);
  const auto began = std::chrono::steady_clock::now();
  server->reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(20));
  ::close(taken);
  ::close(silent);
}

TEST(LiveServer, ShowsThePageAndTheMetrics) {
  const auto server = StartServer({{{"127.0.0.1", 1}}, "", ""});
  const std::string page = AskText(server->port(), "/");
  EXPECT_NE(page.find("connect-src 'self'"), std::string::npos);
  EXPECT_NE(page.find("\"live\""), std::string::npos);
  EXPECT_NE(AskText(server->port(), "/metrics").find("tacet_serve_agents{state=\"down\"} 1"), std::string::npos);
  EXPECT_EQ(AskText(server->port(), "/api/v1/verdict?job=none"), "");
}

}  // namespace
}  // namespace tacet
