// SPDX-License-Identifier: Apache-2.0
// Without a server; tests/live/clickhouse_test.py has a real one and several that misbehave.
#include "live/history_sink.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tacet
