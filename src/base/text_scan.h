// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "base/parse_double.h"
#include "base/text_find.h"

namespace tacet {

// Small steps over a line of text: each Take* removes what it read from the front of `text`, or leaves it untouched and
// says so. Cheaper and clearer than regular expressions for fixed formats.

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
// ASCII only: names, units and words are compared in small letters.
inline char LowerCase(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
inline std::string LowerCase(std::string_view text) {
  std::string low(text);
  std::transform(low.begin(), low.end(), low.begin(), [](char c) { return LowerCase(c); });
  return low;
}
inline bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

inline bool TakeLiteral(std::string_view& text, std::string_view literal) {
  if (!text.starts_with(literal)) return false;
  text.remove_prefix(literal.size());
  return true;
}

inline void SkipBlanks(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
}

inline std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t' || text.front() == '\r')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

template <typename T>
bool TakeNumber(std::string_view& text, T* value, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value, base);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

inline bool TakeDouble(std::string_view& text, double* value) {
  const auto [end, error] = ParseDouble(text.data(), text.data() + text.size(), *value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

// "0x1f" or "1f".
inline bool TakeHex(std::string_view& text, uint64_t* value) {
  std::string_view rest = text;
  if (rest.starts_with("0x") || rest.starts_with("0X")) rest.remove_prefix(2);
  if (!TakeNumber(rest, value, 16)) return false;
  text = rest;
  return true;
}

// Up to, not including, the first `stop`; the whole text where there is none.
inline std::string_view TakeUntil(std::string_view& text, char stop) {
  const size_t at = text.find(stop);
  std::string_view head = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at);
  return head;
}

inline std::string_view TakeWord(std::string_view& text) {
  SkipBlanks(text);
  size_t n = 0;
  while (n < text.size() && text[n] != ' ' && text[n] != '\t') ++n;
  std::string_view word = text.substr(0, n);
  text.remove_prefix(n);
  return word;
}

// What follows `key` in `text`, or nothing: After("rank 3 of 8", "rank ") is "3 of 8".
inline std::optional<std::string_view> After(std::string_view text, std::string_view key) {
  const size_t at = FindText(text, key);
  if (at == std::string_view::npos) return std::nullopt;
  return text.substr(at + key.size());
}

// The integer that follows `key`: IntAfter("nranks 8 cudaDev 0", "nranks ") is 8.
template <typename T = int64_t>
std::optional<T> IntAfter(std::string_view text, std::string_view key, int base = 10) {
  auto rest = After(text, key);
  T value{};
  if (!rest || !TakeNumber(*rest, &value, base)) return std::nullopt;
  return value;
}

// The words of a line, as many as there is room for; returns how many there are at all.
template <size_t N>
size_t SplitWords(std::string_view text, std::string_view (&words)[N]) {
  size_t count = 0;
  while (true) {
    const std::string_view word = TakeWord(text);
    if (word.empty()) return count;
    if (count < N) words[count] = word;
    ++count;
  }
}

// The whole of `word` is one finite number.
inline bool IsWholeNumber(std::string_view word, double* value) {
  return TakeDouble(word, value) && word.empty() && *value - *value == 0;
}

inline bool Contains(std::string_view text, std::string_view part) {
  return FindText(text, part) != std::string_view::npos;
}

inline bool ContainsAny(std::string_view text, std::initializer_list<std::string_view> parts) {
  for (const std::string_view part : parts)
    if (Contains(text, part)) return true;
  return false;
}

}  // namespace tacet
