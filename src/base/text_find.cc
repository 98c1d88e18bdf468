// SPDX-License-Identifier: Apache-2.0
#include "base/text_find.h"

#include <bit>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace tacet {
namespace {

#if defined(__SSE2__)
constexpr size_t kPlacesAtOnce = 16, kBitsPerPlace = 1;
using Places = uint32_t;

// One bit for each of the sixteen places at which `first` stands and `last` stands `span` characters later.
Places Candidates(const char* at, size_t span, char first, char last) {
  const auto load = [](const char* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); };
  const __m128i begins = _mm_cmpeq_epi8(load(at), _mm_set1_epi8(first));
  const __m128i ends = _mm_cmpeq_epi8(load(at + span), _mm_set1_epi8(last));
  return static_cast<Places>(_mm_movemask_epi8(_mm_and_si128(begins, ends)));
}
#elif defined(__aarch64__)
constexpr size_t kPlacesAtOnce = 16, kBitsPerPlace = 4;
using Places = uint64_t;

// Four bits, of which one is set, for each place.
Places Candidates(const char* at, size_t span, char first, char last) {
  const auto load = [](const char* from) { return vld1q_u8(reinterpret_cast<const uint8_t*>(from)); };
  const uint8x16_t begins = vceqq_u8(load(at), vdupq_n_u8(static_cast<uint8_t>(first)));
  const uint8x16_t ends = vceqq_u8(load(at + span), vdupq_n_u8(static_cast<uint8_t>(last)));
  const uint8x8_t narrow = vshrn_n_u16(vreinterpretq_u16_u8(vandq_u8(begins, ends)), 4);
  return vget_lane_u64(vreinterpret_u64_u8(narrow), 0) & 0x8888888888888888ULL;
}
#else
constexpr size_t kPlacesAtOnce = SIZE_MAX;  // too large for any text
#endif

size_t FindPlain(std::string_view text, std::string_view part, size_t from) {
  return std::string_view(text).find(part, from);
}

}  // namespace

size_t FindText(std::string_view text, std::string_view part) {
  if (part.size() < 2 || text.size() < part.size()) return FindPlain(text, part, 0);
  const size_t places = text.size() - part.size() + 1;  // at which it may begin
  if (places < kPlacesAtOnce) return FindPlain(text, part, 0);
#if defined(__SSE2__) || defined(__aarch64__)
  const size_t span = part.size() - 1;
  for (size_t block = 0;;) {
    Places found = Candidates(text.data() + block, span, part.front(), part.back());
    while (found != 0) {
      const size_t at = block + static_cast<size_t>(std::countr_zero(found)) / kBitsPerPlace;
      if (span == 1 || std::memcmp(text.data() + at + 1, part.data() + 1, span - 1) == 0) return at;
      found &= found - 1;
    }
    if (block + kPlacesAtOnce == places) return std::string_view::npos;
    // The last block ends with the last place and may begin within the one before.
    block = block + 2 * kPlacesAtOnce <= places ? block + kPlacesAtOnce : places - kPlacesAtOnce;
  }
#else
  return FindPlain(text, part, 0);
#endif
}

}  // namespace tacet
