// SPDX-License-Identifier: Apache-2.0
#include "live/history/clickhouse_client.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "base/utf8.h"

namespace tacet {
namespace {

constexpr size_t kMostSaid = 300;

bool IsIdentifier(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && text.size() <= 128 && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

std::string DecodePercent(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr == text.data() + i + 3) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// "Code: 60, e.displayText() = DB::Exception: Table tacet.operations doesn't exist." -> 60
int CodeIn(std::string_view text) {
  int code = 0;
  if (text.starts_with("Code: ")) std::from_chars(text.data() + 6, text.data() + text.size(), code);
  return code;
}

// Which refusals may end by themselves or by an administrator: who may come in, load, limits, and what Prepare mends.
bool MayWorkLater(int status, int code) {
  static constexpr int kLater[] = {
      60,  81,             // no such table, no such database: made again
      192, 193, 194, 195,  // unknown user, wrong password, not from this address (before 20.x)
      497, 516,            // not allowed, authentication failed
      159, 160, 164, 201, 202, 209, 210, 241, 242, 243, 252, 290, 319, 439, 999,  // slow, read-only, quota, load, space
  };
  if (code != 0) return std::find(std::begin(kLater), std::end(kLater), code) != std::end(kLater);
  return status == 401 || status == 403 || status == 404 || status == 408 || status == 429 || status >= 500;
}

// Who may come in, and tables that are to be made: no batch is at fault.
bool IsAboutUs(int code) {
  static constexpr int kAboutUs[] = {60, 81, 192, 193, 194, 195, 497, 516};
  return std::find(std::begin(kAboutUs), std::end(kAboutUs), code) != std::end(kAboutUs);
}

std::string_view FirstLine(std::string_view text) { return text.substr(0, text.find('\n')); }

std::string SaidBy(const std::string& body) {
  std::string said = EscapeForTerminal(FirstLine(body));
  if (said.size() > kMostSaid) said = said.substr(0, kMostSaid) + "...";
  return said;
}

}  // namespace

Result<ClickHouseAddress> ParseClickHouseUrl(std::string_view url) {
  const auto wrong = [&](std::string why) {
    return Error{
        "'" + std::string(url.substr(0, 6)) + "...' is not a valid address of a ClickHouse server: " + why,
        "http://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]; TACET_CLICKHOUSE_PASSWORD keeps the password out of it"};
  };
  ClickHouseAddress address;
  address.https = url.starts_with("https://");
  if (!address.https && !url.starts_with("http://")) return wrong("it starts with neither http:// nor https://");
  std::string_view rest = url.substr(address.https ? 8 : 7);
  const size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    std::string_view database = rest.substr(slash + 1);
    if (database.ends_with('/')) database.remove_suffix(1);
    if (!database.empty()) address.database = database;
    rest = rest.substr(0, slash);
  }
  if (!IsIdentifier(address.database)) return wrong("a database name has letters, digits and _ only");
  if (const size_t at = rest.rfind('@'); at != std::string_view::npos) {
    const std::string_view who = rest.substr(0, at);
    const size_t colon = who.find(':');
    address.user = DecodePercent(who.substr(0, colon));
    if (colon != std::string_view::npos) address.password = DecodePercent(who.substr(colon + 1));
    rest = rest.substr(at + 1);
  }
  auto server = ParseHttpAddress(rest, {"", address.https ? 8443 : 8123});
  if (!server || server->host.empty() || server->port == 0) return wrong("it has no host, or no valid port");
  address.server = *server;
  return address;
}

std::string Show(const ClickHouseAddress& address) {
  return (address.https ? "https://" : "http://") + Show(address.server) + "/" + address.database;
}

ClickHouseAnswer ClickHouseClient::Query(const std::string& statement, const std::string& body) {
  HttpPost post;
  post.https = address_.https;
  post.path = "/?query=" + EncodeUrlPath(statement);
  post.body = body;
  if (!address_.user.empty()) post.headers.emplace_back("X-ClickHouse-User", address_.user);
  if (!address_.password.empty()) post.headers.emplace_back("X-ClickHouse-Key", address_.password);
  auto reply = http_.Post(address_.server, post, limits_);
  if (!reply) return {ClickHouseOutcome::later, reply.error().message};
  if (reply->status == 200) return {ClickHouseOutcome::done, std::move(reply->body)};
  std::string said = SaidBy(reply->body);
  if (said.empty()) said = "HTTP status " + std::to_string(reply->status);
  const int code = CodeIn(reply->body);
  const bool later = MayWorkLater(reply->status, code);
  return {later ? ClickHouseOutcome::later : ClickHouseOutcome::refused, std::move(said), later && !IsAboutUs(code)};
}

ClickHouseAnswer ClickHouseClient::Prepare() {
  ClickHouseAnswer answer = Query("SELECT version()", "");
  if (answer.outcome != ClickHouseOutcome::done) return answer;
  const ClickHouseVersion version = ParseClickHouseVersion(answer.text);
  if (version.major == 0) return {ClickHouseOutcome::later, "what answers there is not a ClickHouse server"};
  note_ = version.IsAtLeast(19, 6) ? ""
                                   : "ClickHouse " + SaidBy(answer.text) +
                                         " knows no TTL: drop old partitions with deploy/clickhouse/drop_old.sql";
  // A user that may insert but not create is enough where an administrator has made the table.
  answer = Query("EXISTS TABLE " + address_.database + ".operations", "");
  if (answer.outcome == ClickHouseOutcome::done && answer.text.starts_with('1')) return answer;
  answer = Query(CreateDatabaseStatement(address_.database), "");
  if (answer.outcome != ClickHouseOutcome::done) return answer;
  return Query(CreateTableStatement(address_.database, version), "");
}

ClickHouseAnswer ClickHouseClient::Insert(const std::string& rows) {
  return Query(InsertStatement(address_.database), rows);
}

}  // namespace tacet
