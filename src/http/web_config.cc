// SPDX-License-Identifier: Apache-2.0
#include "http/web_config.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <system_error>

namespace tacet {
namespace {

constexpr size_t kMostConfigBytes = 1 << 20, kMostNames = 10000;

std::string_view WithoutBlanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// A '#' begins a comment at the start of a line or behind a blank, outside quotes.
std::string_view WithoutComment(std::string_view line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quote != 0)
      quote = line[i] == quote ? 0 : quote;
    else if (line[i] == '"' || line[i] == '\'')
      quote = line[i];
    else if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t'))
      return line.substr(0, i);
  }
  return line;
}

std::string Unquoted(std::string_view text) {
  text = WithoutBlanks(text);
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front())
    text = text.substr(1, text.size() - 2);
  return std::string(text);
}

std::vector<std::string> ListIn(std::string_view text) {  // "[a, b]"
  std::vector<std::string> items;
  text = text.substr(1, text.size() - 2);
  while (!WithoutBlanks(text).empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    items.push_back(Unquoted(item));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
  }
  return items;
}

// The little of YAML that such a file needs: names with values, one level of nesting, lists of words.
class ConfigReader {
 public:
  explicit ConfigReader(std::string folder) : folder_(std::move(folder)) {}

  Result<WebConfig> Read(std::string_view text) {
    for (int number = 1; !text.empty() && trouble_.empty(); ++number) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(text.size(), line.size() + 1));
      ReadLine(WithoutComment(line));
      if (!trouble_.empty()) trouble_ = "line " + std::to_string(number) + ": " + trouble_;
    }
    if (trouble_.empty()) CheckWhole();
    if (!trouble_.empty())
      return Error{"the web configuration cannot be used: " + trouble_, "docs/live.md shows one under \"Access\""};
    return std::move(config_);
  }

 private:
  void ReadLine(std::string_view line) {
    const bool inner = line.starts_with(' ') || line.starts_with('\t');
    const std::string_view content = WithoutBlanks(line);
    if (content.empty() || content == "---") return;
    if (content.starts_with("- ") && section_ == "operators")
      return config_.operators->push_back(Unquoted(content.substr(2)));
    const size_t colon = content.find(':');
    if (colon == std::string_view::npos)
      return Complain("'" + std::string(content) + "' is not of the form 'name: value'");
    const std::string name = Unquoted(content.substr(0, colon));
    const std::string_view value = WithoutBlanks(content.substr(colon + 1));
    inner ? ReadInner(name, Unquoted(value)) : ReadOuter(name, value);
  }

  void ReadOuter(const std::string& name, std::string_view value) {
    static constexpr std::string_view kSections[] = {"tls_server_config", "basic_auth_users", "bearer_tokens_sha256",
                                                     "user_ids", "http_server_config"};
    section_ = name;
    if (name == "operators") {
      config_.operators.emplace();
      if (value.starts_with('[') && value.ends_with(']')) config_.operators = ListIn(value);
      return;
    }
    if (std::find(std::begin(kSections), std::end(kSections), name) == std::end(kSections))
      return Complain("'" + name + "' is unknown");
    if (!value.empty() && value != "{}") return Complain("'" + name + "' must not have lines below it");
    if (name == "tls_server_config") config_.tls.emplace();
  }

  void ReadInner(const std::string& name, const std::string& value) {
    if (section_ == "tls_server_config") return ReadTls(name, value);
    if (section_ == "http_server_config") return;  // HTTP/2 and headers: there is no choice here
    auto& names = section_ == "basic_auth_users" ? config_.basic_auth_users : config_.bearer_tokens_sha256;
    if (names.size() >= kMostNames) return Complain("there are too many names");
    if (section_ == "basic_auth_users") {
      if (!value.starts_with("$2"))
        return Complain("the password of '" + name + "' is not hashed with bcrypt ($2y$...)");
      names[name] = value;
    } else if (section_ == "bearer_tokens_sha256") {
      if (value.size() != 64 || value.find_first_not_of("0123456789abcdef") != std::string::npos)
        return Complain("the token of '" + name + "' is not a SHA-256 in 64 hexadecimal digits");
      names[name] = value;
    } else if (section_ == "user_ids") {
      int64_t uid = -1;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), uid);
      if (error != std::errc() || end != value.data() + value.size() || uid < 0)
        return Complain("the user id of '" + name + "' is not a number");
      config_.user_ids[name] = uid;
    } else {
      Complain("'" + name + "' has no parent");
    }
  }

  void ReadTls(const std::string& name, const std::string& value) {
    TlsServerFiles& tls = *config_.tls;
    if (name == "cert_file")
      tls.cert_file = PathOf(value);
    else if (name == "key_file")
      tls.key_file = PathOf(value);
    else if (name == "client_ca_file")
      tls.client_ca_file = PathOf(value);
    else if (name == "min_version")
      tls.min_version = value;
    else if (name == "client_auth_type")
      ReadClientAuth(value);
    else if (name != "max_version" && name != "cipher_suites" && name != "curve_preferences" &&
             name != "prefer_server_cipher_suites" && name != "client_allowed_sans")
      Complain("'" + name + "' is unknown");
    else if (name == "client_allowed_sans")
      Complain("client_allowed_sans is not supported");
  }

  void ReadClientAuth(const std::string& value) {
    asks_clients_ = value == "RequireAndVerifyClientCert" || value == "VerifyClientCertIfGiven";
    config_.tls->client_certificate_required = value == "RequireAndVerifyClientCert";
    // What asks for a certificate and then believes any is no protection.
    if (!asks_clients_ && value != "NoClientCert")
      Complain("client_auth_type is RequireAndVerifyClientCert, VerifyClientCertIfGiven or NoClientCert");
  }

  void CheckWhole() {
    if (config_.tls && (config_.tls->cert_file.empty() || config_.tls->key_file.empty()))
      return Complain("tls_server_config needs cert_file and key_file");
    if (config_.tls && asks_clients_ && config_.tls->client_ca_file.empty())
      return Complain("client_auth_type needs client_ca_file");
    if (config_.tls && !asks_clients_ && !config_.tls->client_ca_file.empty())
      config_.tls->client_certificate_required = true;  // it says who may come, so it is meant
  }

  std::string PathOf(const std::string& value) const {
    return value.starts_with('/') || folder_.empty() ? value : folder_ + "/" + value;
  }
  void Complain(std::string what) {
    if (trouble_.empty()) trouble_ = std::move(what);
  }

  std::string folder_, section_, trouble_;
  bool asks_clients_ = false;
  WebConfig config_;
};

}  // namespace

Result<WebConfig> ParseWebConfig(std::string_view text, const std::string& folder) {
  return ConfigReader(folder).Read(text);
}

Result<WebConfig> ReadWebConfig(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{"cannot read the web configuration '" + path + "'", "name a file that this user can read"};
  std::string text(kMostConfigBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  const size_t slash = path.rfind('/');
  return ParseWebConfig(text, slash == std::string::npos ? "" : path.substr(0, slash));
}

}  // namespace tacet
