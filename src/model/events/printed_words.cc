// SPDX-License-Identifier: Apache-2.0
#include "model/events/printed_words.h"

#include <algorithm>

#include "base/text_scan.h"

namespace tacet {
namespace {

std::string_view WithoutMarks(std::string_view word) {
  constexpr std::string_view kMarks = "[](){}<>,;:'\"|*";
  while (!word.empty() && kMarks.find(word.front()) != std::string_view::npos) word.remove_prefix(1);
  while (!word.empty() && kMarks.find(word.back()) != std::string_view::npos) word.remove_suffix(1);
  return word.ends_with('.') ? word.substr(0, word.size() - 1) : word;
}

}  // namespace

PrintedWords WordsIn(std::string_view text) {
  PrintedWords out;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t begin = rest.find_first_not_of(" \t");
    if (begin == std::string_view::npos) break;
    rest = rest.substr(begin);
    const size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    out.emplace_back(rest.substr(0, end));
    rest = rest.substr(end);
  }
  return out;
}

bool IsTime(std::string_view word) {
  int signs = 0;
  bool digits = false;
  for (const char c : word) {
    digits |= IsDigit(c);
    signs += c == ':' || c == '-';
  }
  return digits && signs >= 2;
}

bool IsNumber(std::string_view word) { return !word.empty() && word.find_first_not_of("0123456789.") == word.npos; }

// "took 3 s", "3ms": measured, and no setting.
bool IsMeasured(const PrintedWords& words, size_t at) {
  const std::string_view word = WithoutMarks(words[at]);
  size_t digits = 0;
  while (digits < word.size() && (IsDigit(word[digits]) || word[digits] == '.')) ++digits;
  std::string_view unit = word.substr(digits);
  if (digits == word.size() && at + 1 < words.size()) unit = WithoutMarks(words[at + 1]);
  if (digits == 0) return false;
  for (const std::string_view known :
       {"s", "ms", "us", "sec", "secs", "seconds", "min", "%", "it/s", "GB", "MB", "GiB", "MiB", "C", "W"})
    if (unit == known) return true;
  return false;
}

// "host=gn03", "pid 4711": what differs between processes by its nature. The name stands in the word or before it.
std::string NameOf(const PrintedWords& words, size_t at) {
  const std::string_view word = words[at];
  if (const size_t sign = word.find_first_of("=:");
      sign != std::string_view::npos && sign > 0 && sign + 1 < word.size())
    return LowerCase(WithoutMarks(word.substr(0, sign)));
  for (size_t i = at; i-- > 0;) {
    std::string_view before = WithoutMarks(words[i]);
    if (before.ends_with('=')) before.remove_suffix(1);
    if (!before.empty() && !IsNumber(before)) return LowerCase(before);
  }
  return "";
}

bool IsOfTheProcess(const std::string& name) {
  for (const std::string_view known :
       {"host", "hostname", "pid",     "ip",         "addr",      "address", "user", "thread",
        "node", "nodename", "machine", "local_rank", "localrank", "rank",    "uuid", "serial",
        "role", "seed",     "time",    "loss",       "cpu",       "core",    "numa"})
    if (name == known) return true;
  return false;
}

// "480 sentences", "batches=30": how much data a rank has is no setting.
bool IsOfData(const PrintedWords& words, size_t at, const std::string& name) {
  const std::string next = at + 1 < words.size() ? LowerCase(WithoutMarks(words[at + 1])) : "";
  for (const std::string_view known : {"samples", "sentences", "rows", "examples", "batches", "records", "images",
                                       "documents", "files", "lines", "items", "parts", "shards", "frames"})
    if (next == known || name == known) return true;
  return false;
}

// "on gpu21", "at 10.0.0.3": a place, where it is no plain number.
bool IsPlace(const std::string& name, std::string_view value) {
  return (name == "on" || name == "at") && !IsNumber(value);
}

bool MustAgree(const std::string& name) {
  for (const std::string_view known : {"world_size", "master_addr", "master_port", "backend", "nnodes", "world"})
    if (name == known) return true;
  return false;
}

std::string_view ValueIn(std::string_view word) {
  const size_t sign = word.find('=');
  return WithoutMarks(sign == std::string_view::npos || sign + 1 == word.size() ? word : word.substr(sign + 1));
}

}  // namespace tacet
