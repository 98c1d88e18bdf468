// SPDX-License-Identifier: Apache-2.0
// Without a server; tests/live/clickhouse_test.py has a real one and several that misbehave.
#include "live/history/history_sink.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

namespace tacet {
namespace {

TEST(ClickHouseUrl, NamesServerUserAndDatabase) {
  auto plain = ParseClickHouseUrl("http://db1");
  ASSERT_TRUE(plain);
  EXPECT_EQ(Show(*plain), "http://db1:8123/tacet");
  auto whole = ParseClickHouseUrl("https://me:p%40ss:word@[::1]:9000/training/");
  ASSERT_TRUE(whole);
  EXPECT_EQ(Show(*whole), "https://[::1]:9000/training");  // without the password
  EXPECT_EQ(whole->user, "me");
  EXPECT_EQ(whole->password, "p@ss:word");
  EXPECT_EQ(ParseClickHouseUrl("https://db1")->server.port, 8443);
}

TEST(ClickHouseUrl, RefusesWhatNamesNoServer) {
  for (const char* url : {"", "db1:8123", "ftp://db1", "http://", "http:///tacet", "http://db1:x", "http://db1:0",
                          "http://db1/a;drop", "http://db1/a/b", "http://db1/1st"}) {
    const auto address = ParseClickHouseUrl(url);
    EXPECT_FALSE(address) << url;
  }
  EXPECT_EQ(ParseClickHouseUrl("http:/me:secret@db1").error().message.find("secret"), std::string::npos);
}

TEST(HistorySink, AFullQueueDropsAndCountsAndNeverWaits) {
  HistoryOptions options;
  options.address.server = {"127.0.0.1", 9};  // discard: nobody listens there
  options.batch_rows = 10;
  options.most_batches = 3;
  HistorySink sink(options);
  const BoxState box;
  const box::Op op{};
  const FinishedOperation finished{.box = &box, .op = &op, .duration_ns = 5};
  const FinishedOperation unseen{.box = &box, .op = &op};
  for (int i = 0; i < 100; ++i) {
    sink.Add(finished, "node1");
    sink.Add(unseen, "node1");
  }
  const HistorySink::Counts counts = sink.counts();
  EXPECT_EQ(counts.stored, 0u);
  EXPECT_EQ(counts.queued, 30u);  // the server must answer before a batch is taken from the queue
  EXPECT_EQ(counts.queue_full, 70u);
  EXPECT_FALSE(counts.well);
  std::vector<MetricFamily> families;
  sink.AppendTo(families);
  EXPECT_NE(RenderPrometheus(families).find("tacet_history_operations_total{outcome=\"queue_full\"} 70\n"),
            std::string::npos);
}

// A ClickHouse server that takes any batch but those with a certain row, for which it pleads lack of memory for ever.
TEST(HistorySink, ABatchThatIsNeverTakenHoldsUpNoOther) {
  std::atomic<bool> stop{false};
  std::atomic<int> inserted{0};
  const int listening = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listening, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::listen(listening, 16), 0);
  ASSERT_EQ(::getsockname(listening, reinterpret_cast<sockaddr*>(&address), &size), 0);
  std::thread server([&] {
    while (!stop) {
      const int client = ::accept(listening, nullptr, nullptr);
      if (client < 0) break;
      std::string asked;
      char piece[4096];
      for (ssize_t got = 1; got > 0;) {
        got = ::recv(client, piece, sizeof piece, 0);
        if (got > 0) asked.append(piece, static_cast<size_t>(got));
        const size_t head = asked.find("\r\n\r\n"), length = asked.find("Content-Length: ");
        if (head != std::string::npos && asked.size() >= head + 4 + std::stoul(asked.substr(length + 16))) break;
      }
      const bool bad = asked.find("\"poison\"") != std::string::npos;
      inserted += asked.find("INSERT") != std::string::npos && !bad;
      const std::string body = bad ? "Code: 241, e.displayText() = DB::Exception: Memory limit exceeded" : "1.1\n";
      const std::string reply = "HTTP/1.1 " + std::string(bad ? "500 Error" : "200 OK") +
                                "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
      if (::send(client, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) inserted = -1000;
      ::close(client);
    }
  });
  {
    HistoryOptions options;
    options.address.server = {"127.0.0.1", ntohs(address.sin_port)};
    options.batch_rows = 1;
    options.first_retry_ms = options.most_retry_ms = 5;
    options.gather_ms = 1;
    HistorySink sink(options);
    BoxState poison, good;
    poison.job = "poison";
    good.job = "good";
    const box::Op op{};
    sink.Add({.box = &poison, .op = &op, .duration_ns = 5}, "node1");
    for (int i = 0; i < 3; ++i) sink.Add({.box = &good, .op = &op, .duration_ns = 5}, "node1");
    for (int i = 0; i < 3000 && inserted < 3; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(inserted, 3);
    EXPECT_EQ(sink.counts().refused, 1u);
  }
  stop = true;
  ::shutdown(listening, SHUT_RDWR);
  server.join();
  ::close(listening);
}

}  // namespace
}  // namespace tacet
