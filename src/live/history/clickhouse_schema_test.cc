// SPDX-License-Identifier: Apache-2.0
#include "live/history/clickhouse_schema.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "base/json_reader.h"

namespace tacet {
namespace {

TEST(ClickHouseSchema, TheFileForAdministratorsIsWhatTheAgentMakes) {
  std::ifstream file(TACET_SOURCE_DIR "/deploy/clickhouse/schema.sql");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(CreateDatabaseStatement("tacet") + ";"), std::string::npos);
  std::string table = CreateTableStatement("tacet", {24, 8});
  table.pop_back();
  EXPECT_NE(text.str().find(table + ";"), std::string::npos) << table;
}

TEST(ClickHouseSchema, LeavesOutWhatAnOldServerDoesNotKnow) {
  const std::string old = CreateTableStatement("tacet", {18, 16}), modern = CreateTableStatement("tacet", {19, 6}, 7);
  for (const char* word : {"TTL", "LowCardinality", "COMMENT"}) {
    EXPECT_EQ(old.find(word), std::string::npos) << word;
    EXPECT_NE(modern.find(word), std::string::npos) << word;
  }
  EXPECT_NE(modern.find("INTERVAL 7 DAY"), std::string::npos);
}

TEST(ClickHouseSchema, ReadsVersions) {
  EXPECT_TRUE(ParseClickHouseVersion("24.8.4.13\n").IsAtLeast(24, 8));
  EXPECT_FALSE(ParseClickHouseVersion("18.16.1").IsAtLeast(19, 6));
  EXPECT_TRUE(ParseClickHouseVersion("20.1").IsAtLeast(19, 6));
  for (const char* text : {"", "24", "24.", "<html>", "x.y"}) EXPECT_EQ(ParseClickHouseVersion(text).major, 0) << text;
}

TEST(ClickHouseSchema, ARowHoldsExactlyTheColumnsOfTheInsert) {
  BoxState box;
  box.job = "tr\"ain\n";
  box.rank = 3;
  box.pid = 4711;
  CommState comm;
  comm.name = "dp";
  comm.rank = 1;
  comm.size = 4;
  box::Op op{};
  op.comm_id = 0xc0ffee;
  op.seq = 12;
  op.serial = UINT64_MAX;
  op.algorithm = static_cast<box::Algorithm>(200);  // a hostile box
  op.protocol = box::Protocol::ll128;
  const FinishedOperation finished{.box = &box,
                                   .comm = &comm,
                                   .op = &op,
                                   .kind = OpKind::all_reduce,
                                   .bytes = 4096,
                                   .duration_ns = 1500,
                                   .issue_wall_ns = 1'700'000'000'000'000'000,
                                   .finish_wall_ns = 1'700'000'001'000'000'000};
  std::string row;
  ASSERT_TRUE(AppendHistoryRow(finished, "node1", row));
  EXPECT_EQ(row.find('\n'), row.size() - 1);
  JsonValue value;
  bool truncated = false;
  ASSERT_TRUE(ParseJson(row, &value, &truncated)) << row;
  EXPECT_EQ(value.Find("time")->Int(0), 1'700'000'001);
  EXPECT_EQ(value.Find("job")->text, box.job);
  EXPECT_EQ(value.Find("comm")->text, "0xc0ffee");
  EXPECT_EQ(value.Find("algorithm")->text, "unknown");
  EXPECT_NE(row.find("\"serial\":18446744073709551615"), std::string::npos);
  const std::string insert = InsertStatement("tacet");
  size_t columns = 0;
  for (const auto& [key, member] : value.members) {
    EXPECT_NE(insert.find("`" + key + "`"), std::string::npos) << key;
    ++columns;
  }
  EXPECT_EQ(static_cast<size_t>(std::count(insert.begin(), insert.end(), '`')), 2 * columns);
}

TEST(ClickHouseSchema, AnOperationWithoutAKnownDurationHasNoRow) {
  const BoxState box;
  const box::Op op{};
  const FinishedOperation finished{.box = &box, .op = &op};
  std::string row;
  EXPECT_FALSE(AppendHistoryRow(finished, "node1", row));
  EXPECT_TRUE(row.empty());
}

}  // namespace
}  // namespace tacet
