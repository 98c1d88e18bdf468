// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tacet {

// Reads binary data with bounds. After the first read past the end `ok()` is false and every read gives zero.
class ByteCursor {
 public:
  explicit ByteCursor(std::string_view bytes) : bytes_(bytes) {}
  bool ok() const { return ok_; }
  bool at_end() const { return at_ >= bytes_.size(); }
  size_t offset() const { return at_; }
  size_t left() const { return bytes_.size() - at_; }

  uint8_t U8() { return Need(1) ? static_cast<uint8_t>(bytes_[at_++]) : 0; }
  uint16_t U16Le() { return static_cast<uint16_t>(Le(2)); }
  uint32_t U32Le() { return static_cast<uint32_t>(Le(4)); }
  uint64_t U64Le() { return Le(8); }
  double F64Be() {
    uint64_t bits = 0;
    if (!Need(8)) return 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | static_cast<uint8_t>(bytes_[at_ + i]);
    at_ += 8;
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  std::string_view Bytes(uint64_t count) {
    if (!Need(count)) return {};
    std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }

 private:
  bool Need(uint64_t count) {
    if (count > bytes_.size() - at_) ok_ = false;
    return ok_;
  }
  uint64_t Le(int count) {
    if (!Need(count)) return 0;
    uint64_t value = 0;
    for (int i = count - 1; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(bytes_[at_ + i]);
    at_ += count;
    return value;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  bool ok_ = true;
};

}  // namespace tacet
