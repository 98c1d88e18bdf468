// SPDX-License-Identifier: Apache-2.0
#include "http/web_access.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

namespace tacet {
namespace {

constexpr char kUsers[] =
    "# comment\n"
    "basic_auth_users:\n"
    "  prometheus: $2y$04$abcdefghijklmnopqrstuufznL8bkzdtHwLhca4To/v9Lo9bA7fR6\n"  // "pass"
    "bearer_tokens_sha256:\n"
    "  alice: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  # 'test'\n"
    "operators: [prometheus]\n"
    "user_ids:\n"
    "  alice: 1004\n";

std::string WriteConfig(const std::string& text) {
  const std::string path = ::testing::TempDir() + "/tacet-web-" + std::to_string(::getpid()) + ".yml";
  std::ofstream(path) << text;
  return path;
}

TEST(WebConfig, ReadsTheFormOfPrometheusExporters) {
  auto config = ParseWebConfig(
      "tls_server_config:\n  cert_file: a.crt\n  key_file: \"/k/a.key\"\n  client_ca_file: c.crt\n"
      "  client_auth_type: RequireAndVerifyClientCert\n  min_version: TLS13\nhttp_server_config:\n  http2: true\n",
      "/etc/tacet");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->tls->cert_file, "/etc/tacet/a.crt");
  EXPECT_EQ(config->tls->key_file, "/k/a.key");
  EXPECT_TRUE(config->tls->client_certificate_required);
  EXPECT_TRUE(config->AsksWhoItIs());
  auto users = ParseWebConfig(kUsers, "");
  ASSERT_TRUE(users.ok()) << users.error().message;
  EXPECT_EQ(users->basic_auth_users.size(), 1u);
  EXPECT_EQ(users->user_ids["alice"], 1004);
  EXPECT_EQ(*users->operators, std::vector<std::string>{"prometheus"});
}

TEST(WebConfig, RefusesWhatWouldProtectNothing) {
  for (const char* bad :
       {"basic_auth_users:\n  a: secret\n", "tls_server_config:\n  cert_file: a\n", "nonsense: 1\n", "  a: b\n",
        "bearer_tokens_sha256:\n  a: 12\n", "user_ids:\n  a: x\n", "words\n",
        "tls_server_config:\n  cert_file: a\n  key_file: b\n  client_auth_type: RequestClientCert\n",
        "tls_server_config:\n  cert_file: a\n  key_file: b\n  client_auth_type: RequireAndVerifyClientCert\n"})
    EXPECT_FALSE(ParseWebConfig(bad, "").ok()) << bad;
}

TEST(WebAccess, RefusesAddressesThatOthersReachWithoutTlsAndUsers) {
  const auto error_for = [](const char* host, bool insecure, const std::string& config) {
    WebAccessOptions options;
    options.insecure = insecure;
    options.config_file = config;
    auto access = WebAccess::Make(options, {host, 9560});
    return access ? std::string() : access.error().message;
  };
  EXPECT_EQ(error_for("127.0.0.1", false, ""), "");
  EXPECT_EQ(error_for("::1", false, ""), "");
  EXPECT_EQ(error_for("localhost", false, ""), "");
  EXPECT_NE(error_for("0.0.0.0", false, "").find("neither TLS nor users"), std::string::npos);
  EXPECT_NE(error_for("::", false, "").find("which other hosts can reach"), std::string::npos);
  EXPECT_NE(error_for("node7", false, WriteConfig(kUsers)).find("unencrypted"), std::string::npos);
  EXPECT_EQ(error_for("0.0.0.0", true, ""), "");
}

HttpRequest From(bool local, int64_t uid, std::vector<std::pair<std::string, std::string>> headers = {}) {
  HttpRequest request;
  request.path = "/metrics";
  request.peer.is_local = local;
  request.peer.uid = uid;
  request.headers = std::move(headers);
  return request;
}

TEST(WebAccess, LocalUsersSeeTheirOwnAndRootSeesAll) {
  auto access = WebAccess::Make({}, {"127.0.0.1", 0});
  ASSERT_TRUE(access.ok());
  HttpRequest user = From(true, 4242), root = From(true, 0), nobody = From(true, -1), stranger = From(false, -1);
  EXPECT_FALSE((*access)->Admit(user).has_value());
  EXPECT_TRUE(user.viewer.Sees(4242));
  EXPECT_FALSE(user.viewer.Sees(4243));
  EXPECT_FALSE((*access)->Admit(root).has_value());
  EXPECT_TRUE(root.viewer.Sees(4242));
  EXPECT_FALSE((*access)->Admit(nobody).has_value());
  EXPECT_FALSE(nobody.viewer.Sees(4242));
  EXPECT_FALSE(nobody.viewer.Sees(-1));
  EXPECT_EQ((*access)->Admit(stranger)->status, 401);
}

TEST(WebAccess, TokensAndPasswordsNameUsers) {
  WebAccessOptions options;
  options.config_file = WriteConfig(kUsers);
  options.insecure = true;
  auto access = WebAccess::Make(options, {"0.0.0.0", 0});
  ASSERT_TRUE(access.ok()) << access.error().message;
  HttpRequest alice = From(false, -1, {{"authorization", "Bearer test"}, {"host", "evil.example"}});
  EXPECT_FALSE((*access)->Admit(alice).has_value());
  EXPECT_TRUE(alice.viewer.Sees(1004));
  EXPECT_FALSE(alice.viewer.Sees(1005));
  for (const char* wrong :
       {"Bearer tesu", "Bearer ", "Basic !!!", "Basic Og==", "Basic YWxpY2U6dGVzdA==", "Digest x", "x"}) {
    HttpRequest request = From(false, -1, {{"authorization", wrong}});
    ASSERT_TRUE((*access)->Admit(request).has_value()) << wrong;
    EXPECT_EQ((*access)->Admit(request)->status, 401) << wrong;
    EXPECT_FALSE(request.viewer.sees_all);
  }
  for (int i = 0; i < 2; ++i) {  // the second time from memory
    HttpRequest operator_asks = From(false, -1, {{"authorization", "Basic cHJvbWV0aGV1czpwYXNz"}});
    EXPECT_FALSE((*access)->Admit(operator_asks).has_value());
    EXPECT_TRUE(operator_asks.viewer.sees_all);
  }
  HttpRequest silent = From(false, -1);
  const auto refused = (*access)->Admit(silent);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->status, 401);
  EXPECT_FALSE(refused->challenge.empty());
  // A local user needs no token, and a wrong one is not forgiven.
  HttpRequest local = From(true, 7), lying = From(true, 0, {{"authorization", "Bearer no"}});
  EXPECT_FALSE((*access)->Admit(local).has_value());
  EXPECT_TRUE((*access)->Admit(lying).has_value());
}

TEST(WebAccess, PagesOfStrangersAreRefused) {
  WebAccessOptions options;
  options.host_names = {"tacet.example.org"};
  auto access = WebAccess::Make(options, {"127.0.0.1", 9570});
  ASSERT_TRUE(access.ok());
  const auto status = [&](const std::string& host, const std::string& origin) {
    HttpRequest request = From(true, 0, {{"host", host}});
    if (!origin.empty()) request.headers.emplace_back("origin", origin);
    const auto refused = (*access)->Admit(request);
    return refused ? refused->status : 200;
  };
  EXPECT_EQ(status("127.0.0.1:9570", ""), 200);
  EXPECT_EQ(status("[::1]:9570", ""), 200);
  EXPECT_EQ(status("localhost:9570", "http://localhost:9570"), 200);
  EXPECT_EQ(status("Tacet.Example.org", ""), 200);
  EXPECT_EQ(status("evil.example:9570", ""), 421);
  EXPECT_EQ(status("127.0.0.1.evil.example:9570", ""), 421);
  EXPECT_EQ(status("localhost:9570", "http://evil.example"), 403);
  EXPECT_EQ(status("localhost:9570", "null"), 403);
}

}  // namespace
}  // namespace tacet
