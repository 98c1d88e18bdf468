// SPDX-License-Identifier: Apache-2.0
#include "launch/run_verdict.h"

#include "base/json_writer.h"
#include "base/redact.h"
#include "base/text_scan.h"
#include "evidence/cited_lines.h"
#include "evidence/load.h"
#include "http/http_client.h"
#include "launch/run_folder.h"
#include "render/render_names.h"
#include "render/report/html_render.h"
#include "render/report/json_render.h"
#include "report/make_report.h"

namespace tacet {
namespace {

struct WebAddress {
  HttpAddress address;
  bool https = false;
  std::string path = "/";
};

// http://host[:port][/path], https://...
Result<WebAddress> ParseWebAddress(const std::string& url) {
  WebAddress web;
  std::string_view rest = url;
  web.https = TakeLiteral(rest, "https://");
  if (!web.https && !TakeLiteral(rest, "http://"))
    return Error{"'" + RedactSecrets(url).text + "' is not a valid webhook address",
                 "http://host:port/path or https://..."};
  const std::string_view where = rest.substr(0, rest.find_first_of("/?"));
  if (where.size() < rest.size()) web.path = std::string(rest.substr(where.size()));
  if (!web.path.starts_with('/')) web.path.insert(0, "/");
  std::string host(where.substr(where.rfind('@') == std::string_view::npos ? 0 : where.rfind('@') + 1));
  if (host.rfind(':') == std::string::npos || host.ends_with(']')) host += web.https ? ":443" : ":80";
  auto address = ParseHttpAddress(host, web.address);
  if (!address) return address.error();
  web.address = *address;
  return web;
}

}  // namespace

Result<Report> DiagnoseFolder(const std::string& folder) {
  auto loaded = LoadEvidence({folder}, {});
  if (!loaded) return loaded.error();
  CitedLines lines({folder});
  return MakeReport(
      std::move(loaded->fragments), {},
      {.read_line = [&](const auto& file, uint32_t line, uint64_t offset) { return lines.Read(file, line, offset); }});
}

bool KeepVerdict(const std::string& folder, const Report& report) {
  const bool json = WriteWholeFile(folder + "/verdict.json", RenderJson(report));
  return WriteWholeFile(folder + "/report.html", RenderHtml(report)) && json;
}

std::string DescribeForWebhook(const Report& report, const std::string& run, const std::string& host) {
  const std::string headline = RedactSecrets(report.verdict.headline).text;
  JsonWriter json;
  json.BeginObject().Key("schema").String("tacet.webhook.v1").Key("text");
  json.String("tacet: " + std::string(Name(report.verdict.status)) + " on " + host + ": " + headline);
  json.Key("status").String(Name(report.verdict.status)).Key("cause");
  if (report.verdict.cause.empty())
    json.Null();
  else
    json.String(report.verdict.cause);
  json.Key("confidence").String(Name(report.verdict.confidence)).Key("ranks").Ints(report.verdict.ranks);
  json.Key("headline").String(headline).Key("host").String(host).Key("run").String(run);
  return json.EndObject().Take();
}

Result<int> CheckWebhook(const std::string& url) {
  auto web = ParseWebAddress(url);
  if (!web) return web.error();
  return 0;
}

Result<int> PostWebhook(const std::string& url, const std::string& json) {
  auto web = ParseWebAddress(url);
  if (!web) return web.error();
  HttpClient client;
  HttpPost post;
  post.https = web->https;
  post.path = web->path;
  post.type = "application/json";
  post.body = json;
  auto reply = client.Post(web->address, post, {.connect_ms = 3000, .whole_ms = 10'000, .most_bytes = 1 << 16});
  if (!reply) return reply.error();
  if (reply->status >= 300) return Error{"the webhook answered with status " + std::to_string(reply->status), ""};
  return reply->status;
}

}  // namespace tacet
