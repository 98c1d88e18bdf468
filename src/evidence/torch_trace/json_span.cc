// SPDX-License-Identifier: Apache-2.0
#include "json_span.h"

#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tacet {
namespace {

// One bit a byte of a block of 64.
struct Masks {
  uint64_t quote, backslash, open, close, newline;
};

#if defined(__aarch64__)

uint64_t Gather(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d) {
  static constexpr uint8_t kBits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t bits = vld1q_u8(kBits);
  const uint8x16_t ab = vpaddq_u8(vandq_u8(a, bits), vandq_u8(b, bits));
  const uint8x16_t cd = vpaddq_u8(vandq_u8(c, bits), vandq_u8(d, bits));
  const uint8x16_t all = vpaddq_u8(ab, cd);
  return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

Masks Classify(const char* block) {
  uint8x16_t v[4], folded[4];
  for (int i = 0; i < 4; ++i) {
    v[i] = vld1q_u8(reinterpret_cast<const uint8_t*>(block) + 16 * i);
    folded[i] = vorrq_u8(v[i], vdupq_n_u8(0x20));  // '[' and '{', ']' and '}' differ in this bit only
  }
  const auto equal = [](const uint8x16_t* x, uint8_t c) {
    const uint8x16_t wanted = vdupq_n_u8(c);
    return Gather(vceqq_u8(x[0], wanted), vceqq_u8(x[1], wanted), vceqq_u8(x[2], wanted), vceqq_u8(x[3], wanted));
  };
  return {equal(v, '"'), equal(v, '\\'), equal(folded, '{'), equal(folded, '}'), equal(v, '\n')};
}

#elif defined(__SSE2__)

Masks Classify(const char* block) {
  __m128i v[4], folded[4];
  for (int i = 0; i < 4; ++i) {
    v[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * i));
    folded[i] = _mm_or_si128(v[i], _mm_set1_epi8(0x20));
  }
  const auto equal = [](const __m128i* x, char c) {
    const __m128i wanted = _mm_set1_epi8(c);
    uint64_t mask = 0;
    for (int i = 3; i >= 0; --i)
      mask = mask << 16 | static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(x[i], wanted)));
    return mask;
  };
  return {equal(v, '"'), equal(v, '\\'), equal(folded, '{'), equal(folded, '}'), equal(v, '\n')};
}

#else

Masks Classify(const char* block) {
  Masks masks{};
  for (int i = 0; i < 64; ++i) {
    const char c = block[i], folded = static_cast<char>(c | 0x20);
    const uint64_t bit = uint64_t{1} << i;
    if (c == '"') masks.quote |= bit;
    if (c == '\\') masks.backslash |= bit;
    if (folded == '{') masks.open |= bit;
    if (folded == '}') masks.close |= bit;
    if (c == '\n') masks.newline |= bit;
  }
  return masks;
}

#endif

// Bits of characters that a backslash before them escapes; `carry` goes from block to block. Backslashes are rare.
uint64_t EscapedBits(uint64_t backslash, bool* carry) {
  if (backslash == 0 && !*carry) return 0;
  uint64_t escaped = 0;
  bool escape = *carry;
  for (int i = 0; i < 64; ++i) {
    const bool is_backslash = backslash >> i & 1;
    if (escape) {
      escaped |= uint64_t{1} << i;
      escape = false;
    } else {
      escape = is_backslash;
    }
  }
  *carry = escape;
  return escaped;
}

// Bit i is the parity of the bits up to and including i: from quotes to "inside a string".
uint64_t PrefixXor(uint64_t x) {
  for (int shift = 1; shift < 64; shift <<= 1) x ^= x << shift;
  return x;
}

}  // namespace

JsonSpan FindSpan(std::string_view text, size_t at) {
  JsonSpan span;
  uint64_t inside = 0;  // all ones while a string goes on from the block before
  bool escape = false;
  int64_t depth = 0;
  for (size_t base = at; base < text.size(); base += 64) {
    const size_t left = text.size() - base;
    char padded[64];
    const char* block = text.data() + base;
    if (left < 64) {
      std::memset(padded, ' ', sizeof padded);
      std::memcpy(padded, block, left);
      block = padded;
    }
    const Masks masks = Classify(block);
    const uint64_t quote = masks.quote & ~EscapedBits(masks.backslash, &escape);
    const uint64_t in_string = PrefixXor(quote) ^ inside;
    inside = static_cast<uint64_t>(static_cast<int64_t>(in_string) >> 63);
    const uint64_t open = masks.open & ~in_string, close = masks.close & ~in_string;
    const int closes = std::popcount(close);
    if (depth > closes) {
      depth += std::popcount(open) - closes;
      span.suspicious |= (masks.newline & in_string) != 0;
      continue;
    }
    for (uint64_t both = open | close; both != 0; both &= both - 1) {
      const int bit = std::countr_zero(both);
      depth += (open >> bit & 1) ? 1 : -1;
      if (depth > 0) continue;
      span.suspicious |= (masks.newline & in_string & ((uint64_t{1} << bit) - 1)) != 0;
      span.end = base + static_cast<size_t>(bit) + 1;
      return span;
    }
    span.suspicious |= (masks.newline & in_string) != 0;
  }
  return span;
}

size_t FindStringEnd(std::string_view text, size_t at) {
  while (at < text.size()) {
    const void* found = std::memchr(text.data() + at, '"', text.size() - at);
    if (!found) return JsonSpan::npos;
    const size_t quote = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    size_t backslashes = 0;
    while (backslashes < quote - at && text[quote - 1 - backslashes] == '\\') ++backslashes;
    size_t next = quote + 1;
    while (next < text.size() && (text[next] == ' ' || text[next] == '\n' || text[next] == '\r' || text[next] == '\t'))
      ++next;
    if (next >= text.size()) return backslashes % 2 == 0 ? quote + 1 : JsonSpan::npos;
    const char c = text[next];
    if (backslashes % 2 == 0 && (c == ',' || c == ':' || c == '}' || c == ']')) return quote + 1;
    at = quote + 1;
  }
  return JsonSpan::npos;
}

size_t FindSpanTolerant(std::string_view text, size_t at) {
  int64_t depth = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = FindStringEnd(text, at + 1);
      if (at == JsonSpan::npos) return at;
      continue;
    }
    ++at;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth <= 0) return at;
  }
  return JsonSpan::npos;
}

}  // namespace tacet
