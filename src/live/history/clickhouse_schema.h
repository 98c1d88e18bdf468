// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "live/agent/box_watch.h"

namespace tacet {

struct ClickHouseVersion {
  int major = 0, minor = 0;
  bool IsAtLeast(int wanted_major, int wanted_minor) const {
    return major != wanted_major ? major > wanted_major : minor >= wanted_minor;
  }
};
// "18.16.1", "24.8.4.13"; 0.0 for anything else.
ClickHouseVersion ParseClickHouseVersion(std::string_view text);

inline constexpr int kHistoryDays = 90;

// One row a finished operation and rank. deploy/clickhouse/schema.sql holds the same for a server of today. Servers
// older than 19.6 know no TTL and have LowCardinality only as an experiment: there both are left out.
std::string CreateDatabaseStatement(std::string_view database);
std::string CreateTableStatement(std::string_view database, ClickHouseVersion version, int days = kHistoryDays);
// "INSERT INTO tacet.operations (time, job, ...) FORMAT JSONEachRow"
std::string InsertStatement(std::string_view database);

// Appends the row of an operation as a line of JSON; nothing for one whose duration nobody saw.
bool AppendHistoryRow(const FinishedOperation& finished, std::string_view host, std::string& out);

}  // namespace tacet
