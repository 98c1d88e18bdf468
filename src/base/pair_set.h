// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "base/text_find.h"

namespace tacet {

// Which pairs of neighbouring characters a text has: most words that it does not hold are told by two lookups, without
// reading the text again. Pays for itself from about six words on.
class PairSet {
 public:
  explicit PairSet(std::string_view text) : text_(text) {
    for (size_t at = 1; at < text.size(); ++at) Add(Place(text[at - 1], text[at]));
  }
  // False only where the text does not hold `word`.
  bool MayHold(std::string_view word) const {
    const size_t size = word.size();
    return size < 2 || (Has(Place(word[0], word[1])) && Has(Place(word[size - 2], word[size - 1])) &&
                        Has(Place(word[size / 2 - 1], word[size / 2])));
  }
  bool Holds(std::string_view word) const { return MayHold(word) && FindText(text_, word) != std::string_view::npos; }
  bool HoldsAny(std::initializer_list<std::string_view> words) const {
    for (const std::string_view word : words)
      if (Holds(word)) return true;
    return false;
  }
  std::string_view text() const { return text_; }

 private:
  static constexpr size_t kPlaces = 1024;
  static size_t Place(char first, char second) {
    return (static_cast<unsigned char>(first) * size_t{37} + static_cast<unsigned char>(second)) % kPlaces;
  }
  void Add(size_t place) { bits_[place / 64] |= uint64_t{1} << (place % 64); }
  bool Has(size_t place) const { return (bits_[place / 64] >> (place % 64)) & 1; }

  std::string_view text_;
  std::array<uint64_t, kPlaces / 64> bits_{};
};

}  // namespace tacet
