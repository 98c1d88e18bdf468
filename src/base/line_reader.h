// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tacet {

// Walks a text line by line. Keeps a last line without newline, drops a trailing '\r'. A line longer than the limit is
// handed out cut to the limit with `cut()` true; the rest of it is skipped, so that ten million bytes without newline
// cost no memory and no quadratic scan.
class LineReader {
 public:
  static constexpr size_t kMaxLine = 256 * 1024;

  explicit LineReader(std::string_view text) : text_(text) {}

  bool Next(std::string_view* line) {
    if (next_ >= text_.size()) return false;
    offset_ = next_;
    const char* begin = text_.data() + next_;
    const size_t left = text_.size() - next_;
    const void* newline = std::memchr(begin, '\n', left);
    size_t length = newline ? static_cast<size_t>(static_cast<const char*>(newline) - begin) : left;
    next_ += newline ? length + 1 : length;
    ++number_;
    cut_ = length > kMaxLine;
    if (cut_) length = kMaxLine;
    if (length > 0 && begin[length - 1] == '\r') --length;
    *line = {begin, length};
    return true;
  }

  uint32_t number() const { return number_; }                 // of the line last handed out, from 1
  uint64_t offset() const { return offset_; }                 // of its first byte
  uint64_t next_offset() const { return next_; }              // of the byte after its newline
  uint64_t line_bytes() const { return next_ - offset_; }     // newline included
  bool cut() const { return cut_; }

 private:
  std::string_view text_;
  size_t next_ = 0;
  size_t offset_ = 0;
  uint32_t number_ = 0;
  bool cut_ = false;
};

}  // namespace tacet
