// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "http/http_client.h"
#include "live/history/clickhouse_schema.h"

namespace tacet {

struct ClickHouseAddress {
  HttpAddress server;
  bool https = false;
  std::string user, password;
  std::string database = "tacet";
};
// "http://clickhouse:8123", "https://tacet:secret@clickhouse/training". Port 8123 (https 8443), database tacet.
Result<ClickHouseAddress> ParseClickHouseUrl(std::string_view url);
std::string Show(const ClickHouseAddress& address);  // without the password

enum class ClickHouseOutcome {
  done,
  later,    // not reached, too slow, overloaded, or not let in: the same may work another time
  refused,  // the server read it and will not have it: another schema, malformed rows
};
struct ClickHouseAnswer {
  ClickHouseOutcome outcome = ClickHouseOutcome::done;
  std::string text;  // the answer, or what is wrong
  // It was asked for later, by a server that let us in: that may be for what was sent, and then it never is.
  bool may_be_for_ever = false;
};

// One server, one table. Used by one thread at a time; every call ends within the limits.
class ClickHouseClient {
 public:
  explicit ClickHouseClient(ClickHouseAddress address, HttpLimits limits = {2000, 10000, 1 << 20})
      : address_(std::move(address)), limits_(limits) {}
  // Makes database and table unless they are there. To be repeated after any failure.
  ClickHouseAnswer Prepare();
  ClickHouseAnswer Insert(const std::string& rows);
  const std::string& note() const { return note_; }  // what this server cannot do, empty when it can all

 private:
  ClickHouseAnswer Query(const std::string& statement, const std::string& body);

  ClickHouseAddress address_;
  HttpLimits limits_;
  HttpClient http_;
  std::string note_;
};

}  // namespace tacet
