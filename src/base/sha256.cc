// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace tacet {
namespace {

// FIPS 180-4. The constants are the first 32 bits of the fractions of cube and square roots of primes.
struct ShaConstants {
  std::array<uint32_t, 64> round{};
  std::array<uint32_t, 8> begin{};

  ShaConstants() {
    int found = 0;
    for (int number = 2; found < 64; ++number) {
      bool prime = true;
      for (int divisor = 2; divisor * divisor <= number; ++divisor) prime = prime && number % divisor != 0;
      if (!prime) continue;
      const auto fraction = [](long double root) {
        return static_cast<uint32_t>(static_cast<uint64_t>(root * 4294967296.0L));
      };
      if (found < 8) begin[static_cast<size_t>(found)] = fraction(std::sqrt(static_cast<long double>(number)));
      round[static_cast<size_t>(found++)] = fraction(std::cbrt(static_cast<long double>(number)));
    }
  }
};

void AddBlock(const ShaConstants& constants, const unsigned char* block, std::array<uint32_t, 8>& state) {
  std::array<uint32_t, 64> word{};
  for (size_t i = 0; i < 16; ++i)
    word[i] = static_cast<uint32_t>(block[4 * i]) << 24 | static_cast<uint32_t>(block[4 * i + 1]) << 16 |
              static_cast<uint32_t>(block[4 * i + 2]) << 8 | block[4 * i + 3];
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t a = word[i - 15], b = word[i - 2];
    word[i] = word[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + word[i - 7] +
              (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  std::array<uint32_t, 8> now = state;
  for (size_t i = 0; i < 64; ++i) {
    const auto [a, b, c, d, e, f, g, h] = now;
    const uint32_t one = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) +
                         constants.round[i] + word[i];
    const uint32_t two = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    now = {one + two, a, b, c, d + one, e, f, g};
  }
  for (size_t i = 0; i < 8; ++i) state[i] += now[i];
}

}  // namespace

std::string Sha256(std::string_view bytes) {
  static const ShaConstants constants;
  std::array<uint32_t, 8> state = constants.begin;
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t at = 0;
  for (; at + 64 <= bytes.size(); at += 64) AddBlock(constants, data + at, state);
  std::array<unsigned char, 128> last{};
  const size_t rest = bytes.size() - at;
  if (rest > 0) std::memcpy(last.data(), data + at, rest);
  last[rest] = 0x80;
  const size_t blocks = rest + 9 > 64 ? 2 : 1;
  const uint64_t bits = static_cast<uint64_t>(bytes.size()) * 8;
  for (size_t i = 0; i < 8; ++i) last[blocks * 64 - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
  for (size_t i = 0; i < blocks; ++i) AddBlock(constants, last.data() + 64 * i, state);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint32_t part : state)
    for (int shift = 28; shift >= 0; shift -= 4) text += kDigits[part >> shift & 15];
  return text;
}

}  // namespace tacet
