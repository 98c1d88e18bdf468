// SPDX-License-Identifier: Apache-2.0
#include "evidence/meaning/zero_bytes.h"

#include <algorithm>
#include <cstring>

namespace tacet {
namespace {

size_t SkipZeros(std::string_view bytes, size_t at) {
  constexpr size_t kBlock = 4096;
  static const char kZeros[kBlock] = {};
  while (at + kBlock <= bytes.size() && std::memcmp(bytes.data() + at, kZeros, kBlock) == 0) at += kBlock;
  while (at < bytes.size() && bytes[at] == '\0') ++at;
  return at;
}

bool IsTextByte(char c) {
  return static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\r' || c == '\t' || c == '\x1b' || c == '\b';
}

}  // namespace

bool HasZeros(std::string_view bytes) { return bytes.find('\0') != std::string_view::npos; }

bool IsAllZeros(std::string_view bytes) { return !bytes.empty() && SkipZeros(bytes, 0) == bytes.size(); }

TextWithZeros TakeOutZeros(std::string_view bytes, size_t most) {
  TextWithZeros out;
  for (size_t at = 0; at < bytes.size();) {
    const size_t from = SkipZeros(bytes, at);
    out.left_out += from - at;
    out.ends_in_zeros = from == bytes.size();
    const size_t end = std::min(bytes.find('\0', from), bytes.size());
    out.text.append(bytes.substr(from, std::min(end - from, most - out.text.size())));
    if (out.text.size() == most && end < bytes.size()) {
      out.limited = true;
      break;
    }
    at = end;
  }
  return out;
}

std::string PeekBesidesZeros(std::string_view bytes, size_t most) {
  const size_t from = SkipZeros(bytes, 0);
  std::string text = TakeOutZeros(bytes.substr(from, 2 * most), most).text;
  const auto odd = static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !IsTextByte(c); }));
  return odd * 50 > text.size() ? std::string() : text;
}

}  // namespace tacet
