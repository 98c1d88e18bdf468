// SPDX-License-Identifier: Apache-2.0
// Secrets that are known by how they look.
#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/redact_span.h"

namespace tacet {
namespace {

enum class Alphabet { alphanumeric, upper, hex, word, url };  // url: letters, digits, '_', '-', '.'

bool IsOf(Alphabet alphabet, char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte >= 0x80) return false;
  switch (alphabet) {
    case Alphabet::alphanumeric: return std::isalnum(byte) != 0;
    case Alphabet::upper: return std::isupper(byte) != 0 || std::isdigit(byte) != 0;
    case Alphabet::hex: return std::isxdigit(byte) != 0;
    case Alphabet::word: return IsTokenCharacter(c);
    case Alphabet::url: return IsTokenCharacter(c) || c == '-' || c == '.';
  }
  return false;
}

size_t EndOfRun(std::string_view text, size_t at, Alphabet alphabet) {
  while (at < text.size() && IsOf(alphabet, text[at])) ++at;
  return at;
}

// What follows the prefix: at least, and where it has a fixed length exactly, so many characters.
struct Shape {
  std::string_view prefix;
  Alphabet alphabet;
  size_t least;
  size_t most;  // 0: any
  std::string_view kind;
};
constexpr Shape kShapes[] = {
    {"hf_", Alphabet::alphanumeric, 20, 0, "Hugging Face token"},
    {"api_org_", Alphabet::alphanumeric, 20, 0, "Hugging Face token"},
    {"sk-", Alphabet::url, 20, 0, "API key"},
    {"sk_live_", Alphabet::alphanumeric, 16, 0, "API key"},
    {"rk_live_", Alphabet::alphanumeric, 16, 0, "API key"},
    {"nvapi-", Alphabet::url, 20, 0, "API key"},
    {"gsk_", Alphabet::alphanumeric, 20, 0, "API key"},
    {"dapi", Alphabet::hex, 32, 32, "API key"},
    {"SG.", Alphabet::url, 30, 0, "API key"},
    {"AKIA", Alphabet::upper, 16, 16, "AWS access key"},
    {"ASIA", Alphabet::upper, 16, 16, "AWS access key"},
    {"AROA", Alphabet::upper, 16, 17, "AWS access key"},
    {"AIDA", Alphabet::upper, 16, 17, "AWS access key"},
    {"AIza", Alphabet::url, 35, 35, "Google API key"},
    {"ya29.", Alphabet::url, 20, 0, "Google access token"},
    {"GOCSPX-", Alphabet::url, 20, 0, "Google client secret"},
    {"ghp_", Alphabet::alphanumeric, 30, 0, "GitHub token"},
    {"gho_", Alphabet::alphanumeric, 30, 0, "GitHub token"},
    {"ghu_", Alphabet::alphanumeric, 30, 0, "GitHub token"},
    {"ghs_", Alphabet::alphanumeric, 30, 0, "GitHub token"},
    {"ghr_", Alphabet::alphanumeric, 30, 0, "GitHub token"},
    {"github_pat_", Alphabet::word, 20, 0, "GitHub token"},
    {"glpat-", Alphabet::url, 20, 0, "GitLab token"},
    {"xoxa-", Alphabet::url, 10, 0, "Slack token"},
    {"xoxb-", Alphabet::url, 10, 0, "Slack token"},
    {"xoxe-", Alphabet::url, 10, 0, "Slack token"},
    {"xoxp-", Alphabet::url, 10, 0, "Slack token"},
    {"xoxr-", Alphabet::url, 10, 0, "Slack token"},
    {"xoxs-", Alphabet::url, 10, 0, "Slack token"},
    {"xapp-", Alphabet::url, 20, 0, "Slack token"},
    {"npm_", Alphabet::alphanumeric, 36, 36, "package registry token"},
    {"pypi-", Alphabet::url, 40, 0, "package registry token"},
    {"dckr_pat_", Alphabet::url, 20, 0, "package registry token"},
};

// Without the end of a sentence.
size_t LastOfSecret(std::string_view text, size_t begin, size_t end) {
  while (end > begin && text[end - 1] == '.') --end;
  return end;
}

// The beginning of a secret in a text that was cut behind it: "hf_AbCdEfGh1..." Nobody can tell its length any more.
bool IsCutSecret(std::string_view text, size_t begin, size_t end) {
  const size_t last = LastOfSecret(text, begin, end);
  if (!text.substr(last).starts_with("...") || last - begin < 8) return false;
  const std::string_view kept = text.substr(begin, last - begin);
  const auto any = [&](int (*is)(int)) {
    return std::any_of(kept.begin(), kept.end(), [&](char c) { return is(static_cast<unsigned char>(c)) != 0; });
  };
  return any(std::isdigit) || (any(std::isupper) && any(std::islower));
}

std::optional<SecretSpan> ByPrefix(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at);
  for (const Shape& shape : kShapes) {
    if (!rest.starts_with(shape.prefix)) continue;
    const size_t begin = at + shape.prefix.size();
    const size_t end = EndOfRun(text, begin, shape.alphabet);
    const size_t length = end - begin;
    if (IsCutSecret(text, begin, end)) return SecretSpan{at, LastOfSecret(text, begin, end), shape.kind};
    if (length < shape.least || (shape.most != 0 && length > shape.most)) continue;
    if (shape.most != 0 && end < text.size() && IsTokenCharacter(text[end])) continue;
    // "sk-learn-pipelines-and-models" is a name: a key has a long piece of letters and digits.
    if (shape.alphabet == Alphabet::url && !IsMixed(text.substr(begin, length))) continue;
    return SecretSpan{at, LastOfSecret(text, begin, end), shape.kind};
  }
  return std::nullopt;
}

// eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U
std::optional<SecretSpan> JsonWebToken(std::string_view text, size_t at) {
  if (!text.substr(at).starts_with("eyJ")) return std::nullopt;
  const auto piece = [&](size_t from) {
    while (from < text.size() && (IsTokenCharacter(text[from]) || text[from] == '-')) ++from;
    return from;
  };
  const size_t header = piece(at);
  if (header - at < 12 || header >= text.size() || text[header] != '.') return std::nullopt;
  const size_t claims = piece(header + 1);
  if (claims - header < 8 || claims >= text.size() || text[claims] != '.') return std::nullopt;
  return SecretSpan{at, piece(claims + 1), "JSON web token"};
}

// -----BEGIN RSA PRIVATE KEY----- ... -----END RSA PRIVATE KEY-----, also with \n written out. A block whose end was
// cut off is one to the end of the text.
std::optional<SecretSpan> PrivateKey(std::string_view text, size_t at) {
  constexpr std::string_view kBegin = "-----BEGIN ", kDashes = "-----";
  if (!text.substr(at).starts_with(kBegin)) return std::nullopt;
  const size_t title = at + kBegin.size();
  const size_t title_end = text.find(kDashes, title);
  if (title_end == std::string_view::npos || title_end - title > 40) return std::nullopt;
  if (text.substr(title, title_end - title).find("PRIVATE KEY") == std::string_view::npos) return std::nullopt;
  const size_t end = text.find("-----END ", title_end);
  if (end == std::string_view::npos) return SecretSpan{at, text.size(), "private key"};
  const size_t close = text.find(kDashes, end + 9);
  return SecretSpan{at, close == std::string_view::npos ? text.size() : close + kDashes.size(), "private key"};
}

// https://user:password@host/path: the password, whatever it is.
std::optional<SecretSpan> UrlPassword(std::string_view text, size_t at) {
  if (!text.substr(at).starts_with("://")) return std::nullopt;
  const size_t begin = at + 3;
  const size_t authority_end = std::min(text.find_first_of(" \t\r\n\"'<>\\/?#,;", begin), text.size());
  const std::string_view authority = text.substr(begin, authority_end - begin);
  // fi_addr_efa://[fe80::4a9]:1:77: a host in brackets, and no user before it.
  if (authority.starts_with('[') && authority.find('@') == std::string_view::npos) return std::nullopt;
  const size_t host = authority.rfind('@');
  const size_t colon = authority.find(':');
  // Cut behind the password: https://user:passw...
  const bool cut = host == std::string_view::npos && colon != std::string_view::npos && authority.ends_with("...");
  if (cut && authority.find_first_not_of("0123456789.", colon + 1) != std::string_view::npos)
    return SecretSpan{begin + colon + 1, begin + authority.size() - 3, "password in a URL"};
  if (host == std::string_view::npos || colon == std::string_view::npos || colon + 1 >= host) return std::nullopt;
  if (authority.substr(colon + 1).starts_with("[redacted")) return std::nullopt;
  return SecretSpan{begin + colon + 1, begin + host, "password in a URL"};
}

// https://hooks.slack.com/services/T000/B000/XXXX
std::optional<SecretSpan> WebHook(std::string_view text, size_t at) {
  constexpr std::string_view kHost = "hooks.slack.com/services/";
  if (!text.substr(at).starts_with(kHost)) return std::nullopt;
  size_t end = at + kHost.size();
  while (end < text.size() && (IsTokenCharacter(text[end]) || text[end] == '/')) ++end;
  return SecretSpan{at + kHost.size(), end, "Slack web hook"};
}

}  // namespace

bool IsMixed(std::string_view text) {
  constexpr size_t kLongPiece = 8;
  size_t run = 0;
  bool digit = false, letter = false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x80 || std::isalnum(byte) == 0) {
      run = 0, digit = letter = false;
      continue;
    }
    ++run;
    (std::isdigit(byte) != 0 ? digit : letter) = true;
    if (run >= kLongPiece && digit && letter) return true;
  }
  return false;
}

std::optional<SecretSpan> FindSecretShape(std::string_view text, size_t at) {
  switch (text[at]) {
    case ':': return UrlPassword(text, at);
    case '-': return PrivateKey(text, at);
    case 'e': return JsonWebToken(text, at);
    default: break;
  }
  if (at > 0 && IsTokenCharacter(text[at - 1])) return std::nullopt;
  if (auto found = WebHook(text, at)) return found;
  return ByPrefix(text, at);
}

}  // namespace tacet
