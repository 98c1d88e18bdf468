// SPDX-License-Identifier: Apache-2.0
// Secrets that the name in front of them gives away: PASSWORD=..., "apiKey": "...", --hf-token ..., Authorization: ...
#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

#include "base/redact_span.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kLongestName = 80;

bool IsNameCharacter(char c) { return IsTokenCharacter(c) || c == '-' || c == '.'; }

// "AWS_SECRET_ACCESS_KEY", "secretAccessKey" and "--secret-access-key" have the same words.
std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> words(1);
  for (size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (c == '_' || c == '-' || c == '.') {
      if (!words.back().empty()) words.emplace_back();
      continue;
    }
    const bool hump = i > 0 && std::isupper(c) != 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (hump && !words.back().empty()) words.emplace_back();
    words.back() += static_cast<char>(std::tolower(c));
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

template <size_t n>
bool IsOneOf(std::string_view word, const std::array<std::string_view, n>& list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// How much a name says. A password is one whatever it looks like; a "token" may be a piece of text as well.
enum class NameKind { none, password, key, token, header };

NameKind KindOf(std::string_view name) {
  static constexpr std::array<std::string_view, 4> kPasswords = {"password", "passwd", "passphrase", "passwort"};
  static constexpr std::array<std::string_view, 10> kJoined = {
      "apikey",    "apitoken",   "authtoken",  "accesstoken",     "secretkey",
      "accesskey", "privatekey", "accountkey", "sharedaccesskey", "secretaccesskey"};
  static constexpr std::array<std::string_view, 14> kOfKeys = {
      "api",     "access",     "secret",  "private", "account", "shared",       "auth",
      "signing", "encryption", "license", "master",  "deploy",  "subscription", "webhook"};
  // Tokens of a text, and of a scheduler.
  static constexpr std::array<std::string_view, 22> kTextTokens = {
      "eos",   "bos",   "pad", "unk",        "sep", "cls",   "mask",  "special", "next",  "stop", "last",
      "first", "image", "per", "unexpected", "end", "start", "begin", "audio",   "video", "new",  "each"};
  const std::vector<std::string> words = WordsOf(name);
  if (words.empty()) return NameKind::none;
  const std::string& last = words.back();
  const std::string before = words.size() > 1 ? words[words.size() - 2] : "";
  if (IsOneOf(last, kPasswords) || (last == "pwd" && words.size() > 1)) return NameKind::password;
  if (last == "authorization" || (last == "auth" && before == "proxy")) return NameKind::header;
  if (IsOneOf(last, kJoined)) return NameKind::key;
  if (last == "key" && IsOneOf(before, kOfKeys)) return NameKind::key;
  if (last == "secret" || last == "secrets" || last == "credential" || last == "credentials") return NameKind::token;
  if (last == "token" && !IsOneOf(before, kTextTokens)) return NameKind::token;
  if (last == "sig" && words.size() == 1) return NameKind::token;
  return NameKind::none;
}

std::string_view WordFor(NameKind kind) {
  return kind == NameKind::password ? "password" : kind == NameKind::header ? "authorization header" : "secret value";
}

// What a program prints in place of a value, or a word of a sentence.
bool IsNoValue(std::string_view value) {
  static constexpr std::array<std::string_view, 32> kWords = {
      "none",    "null",     "nil",     "true",     "false",     "undefined", "unset",    "empty",
      "missing", "required", "invalid", "wrong",    "incorrect", "expired",   "denied",   "not",
      "must",    "is",       "has",     "for",      "and",       "or",        "the",      "a",
      "please",  "yes",      "no",      "optional", "default",   "hidden",    "redacted", "authentication"};
  if (IsOneOf(LowerCase(value.substr(0, 20)), kWords)) return true;
  return value.empty() || value.starts_with("[redacted") || value.starts_with('<') || value.starts_with('$') ||
         value.starts_with("0x") || value.starts_with("-----BEGIN") || (value.starts_with('/') && !IsMixed(value)) ||
         std::all_of(value.begin(), value.end(), [](char c) { return c == '*' || c == 'x' || c == '.'; });
}

// Where the value ends: at its own quote, or where no value of its kind goes on.
struct Value {
  size_t begin = 0, end = 0;
  bool quoted = false;
};
Value ValueAt(std::string_view text, size_t at) {
  Value value;
  std::string_view quote;
  for (const std::string_view one : {"\\\"", "\"", "'"})
    if (text.substr(at).starts_with(one)) quote = one;
  if (text.substr(at).starts_with("\\\"")) quote = "\\\"";
  value.begin = at + quote.size();
  if (!quote.empty()) {
    value.quoted = true;
    value.end = std::min(text.find(quote, value.begin), text.size());
    // A quote that never closes within the line belongs to something else.
    const size_t line = std::min(text.find('\n', value.begin), text.size());
    if (line < value.end) value.end = line;
    return value;
  }
  value.end = std::min(text.find_first_of(" \t\r\n,;&)]}\"'|\\", value.begin), text.size());
  while (value.end > value.begin && text[value.end - 1] == '.') --value.end;
  return value;
}

bool IsPlausible(NameKind kind, std::string_view text, bool quoted, bool assigned) {
  if (IsNoValue(text)) return false;
  if (kind == NameKind::password) return true;
  const bool number = std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  if (number) return false;
  // "token: foo" in a sentence is a word; what a generator wrote is long, or of letters and digits.
  if (kind == NameKind::key) return text.size() >= 8;
  return IsMixed(text) || text.size() >= (quoted || assigned ? 16 : 24);
}

// The name that ends at `end`; empty where none does. Its own quote is passed over.
std::string_view NameBefore(std::string_view text, size_t end) {
  while (end > 0 && text[end - 1] == ' ') --end;
  if (end > 1 && text[end - 1] == '"' && text[end - 2] == '\\')
    end -= 2;
  else if (end > 0 && (text[end - 1] == '"' || text[end - 1] == '\''))
    --end;
  size_t begin = end;
  while (begin > 0 && end - begin <= kLongestName && IsNameCharacter(text[begin - 1])) --begin;
  return end - begin > kLongestName ? std::string_view() : text.substr(begin, end - begin);
}

// "Bearer abc", "Basic dXNlcjpwYXNz": the word stays, what follows goes.
SecretSpan InsideHeader(std::string_view text, Value value) {
  for (const std::string_view scheme : {"Bearer ", "bearer ", "Basic ", "basic ", "Token ", "token "}) {
    if (!text.substr(value.begin).starts_with(scheme)) continue;
    const size_t begin = value.begin + scheme.size();
    const size_t end = value.quoted ? value.end : std::min(text.find_first_of(" \t\r\n,;\"'\\", begin), text.size());
    return {begin, end, WordFor(NameKind::header)};
  }
  return {value.begin, value.end, WordFor(NameKind::header)};
}

std::optional<SecretSpan> Assigned(std::string_view text, size_t at) {
  const std::string_view name = NameBefore(text, at);
  const NameKind kind = name.empty() ? NameKind::none : KindOf(name);
  if (kind == NameKind::none || text.substr(at).starts_with("://")) return std::nullopt;
  size_t begin = at + 1;
  if (text[at] == ':' && begin < text.size() && text[begin] == '=') ++begin;
  while (begin < text.size() && text[begin] == ' ') ++begin;
  const Value value = ValueAt(text, begin);
  if (kind == NameKind::header) {
    const SecretSpan span = InsideHeader(text, value);
    const std::string_view secret = text.substr(span.begin, span.end - span.begin);
    if (secret.size() < 6 || IsNoValue(secret)) return std::nullopt;
    return span;
  }
  if (!IsPlausible(kind, text.substr(value.begin, value.end - value.begin), value.quoted, text[at] == '='))
    return std::nullopt;
  return SecretSpan{value.begin, value.end, WordFor(kind)};
}

// train.py --hf-token VALUE
std::optional<SecretSpan> OptionValue(std::string_view text, size_t at) {
  const std::string_view name = NameBefore(text, at);
  if (!name.starts_with("--") || text.substr(at).starts_with(" -") || text.substr(at).starts_with(" ="))
    return std::nullopt;
  const NameKind kind = KindOf(name);
  if (kind == NameKind::none || kind == NameKind::header) return std::nullopt;
  const Value value = ValueAt(text, at + 1);
  if (!IsPlausible(kind, text.substr(value.begin, value.end - value.begin), value.quoted, true)) return std::nullopt;
  return SecretSpan{value.begin, value.end, WordFor(kind)};
}

// "Bearer <token>" without its header, and "wandb login <40 hex digits>".
std::optional<SecretSpan> AfterWord(std::string_view text, size_t at) {
  const std::string_view before = text.substr(0, at);
  const bool bearer = before.ends_with("Bearer") || before.ends_with("bearer");
  const bool login = before.ends_with("wandb login") || before.ends_with("docker login -p");
  if (!bearer && !login) return std::nullopt;
  const Value value = ValueAt(text, at + 1);
  const std::string_view secret = text.substr(value.begin, value.end - value.begin);
  if (secret.size() < 16 || !IsMixed(secret)) return std::nullopt;
  return SecretSpan{value.begin, value.end, bearer ? WordFor(NameKind::header) : std::string_view("API key")};
}

}  // namespace

std::optional<SecretSpan> FindNamedSecret(std::string_view text, size_t at) {
  switch (text[at]) {
    case '=':
    case ':': return Assigned(text, at);
    case ' ':
      if (auto found = OptionValue(text, at)) return found;
      return AfterWord(text, at);
    default: return std::nullopt;
  }
}

}  // namespace tacet
