// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>

namespace tacet::plugin {

// Text put together in a given piece of memory. Once something did not fit, the rest is ignored and `fits` is false.
class TextBuffer {
 public:
  TextBuffer(char* to, uint64_t room) : to_(to), room_(room) {
    if (room > 0) to[0] = 0;
  }
  bool fits() const { return fits_; }
  uint64_t size() const { return size_; }

  __attribute__((format(printf, 2, 3))) void Print(const char* format, ...) {
    if (!fits_) return;
    va_list args;
    va_start(args, format);
    const int length = vsnprintf(to_ + size_, room_ - size_, format, args);
    va_end(args);
    fits_ = length >= 0 && size_ + static_cast<uint64_t>(length) < room_;
    if (fits_) size_ += static_cast<uint64_t>(length);
  }

  // The text between quotes of JSON or of a Prometheus label; `control` prints what has no escape in the format.
  void PrintEscaped(const char* text, bool json) {
    for (; *text != 0; ++text) {
      const auto c = static_cast<unsigned char>(*text);
      if (c == '"' || c == '\\')
        Print("\\%c", c);
      else if (c == '\n')
        Print("\\n");
      else if (c >= 0x20 && c < 0x7f)
        Print("%c", c);
      else if (json)
        Print("\\u%04x", c);
      else
        Print("?");
    }
  }

 private:
  char* to_;
  uint64_t room_, size_ = 0;
  bool fits_ = true;
};

}  // namespace tacet::plugin
