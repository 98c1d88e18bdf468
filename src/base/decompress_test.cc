// SPDX-License-Identifier: Apache-2.0

#include "base/decompress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/compressed_text.h"

namespace tacet {
namespace {

constexpr uint64_t kNoLimit = UINT64_MAX;

// Text that does not compress to nothing, so that cuts fall into data.
std::string Text(size_t size) {
  std::string text;
  uint32_t state = 1;
  while (text.size() < size) {
    state = state * 1664525u + 1013904223u;
    text += "line " + std::to_string(state >> 8) + "\n";
  }
  text.resize(size);
  return text;
}

struct Case {
  const char* name;
  Compression kind;
  std::string (*compress)(std::string_view);
};

class Decompression : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Of, Decompression,
                         testing::Values(Case{"gzip", Compression::gzip, Gzip}, Case{"zstd", Compression::zstd, Zstd}),
                         [](const auto& info) { return info.param.name; });

TEST_P(Decompression, IsToldByMagicBytes) {
  EXPECT_EQ(DetectCompression(GetParam().compress("hello")), GetParam().kind);
  EXPECT_EQ(DetectCompression("hello"), Compression::none);
  EXPECT_EQ(DetectCompression(""), Compression::none);
  EXPECT_EQ(DetectCompression("\x1f"), Compression::none);
}

TEST_P(Decompression, GivesBackWhatWasCompressed) {
  for (const size_t size : {0, 1, 1000, 700'000}) {
    const std::string text = Text(size);
    std::string out;
    const auto outcome = DecompressAll(GetParam().compress(text), GetParam().kind, kNoLimit, &out);
    EXPECT_EQ(out, text);
    EXPECT_EQ(outcome.output_bytes, size);
    EXPECT_FALSE(outcome.cut || outcome.corrupt || outcome.limited);
    EXPECT_EQ(outcome.unread_bytes, 0u);
  }
}

TEST_P(Decompression, ReadsConcatenatedPartsOn) {
  std::string out;
  const auto& compress = GetParam().compress;
  const auto outcome =
      DecompressAll(compress("one ") + compress("") + compress("two"), GetParam().kind, kNoLimit, &out);
  EXPECT_EQ(out, "one two");
  EXPECT_FALSE(outcome.cut || outcome.corrupt || outcome.limited);
}

TEST_P(Decompression, DeliversWhatCameBeforeACutAtEveryByte) {
  const std::string text = Text(3000);
  const std::string whole = GetParam().compress(text);
  for (size_t cut = 0; cut < whole.size(); ++cut) {
    std::string out;
    const auto outcome = DecompressAll(whole.substr(0, cut), GetParam().kind, kNoLimit, &out);
    EXPECT_TRUE(outcome.cut) << cut;
    EXPECT_FALSE(outcome.corrupt) << cut;
    EXPECT_TRUE(text.starts_with(out)) << cut;
  }
}

TEST_P(Decompression, TellsACutInTheSecondPartAtEveryByte) {
  const std::string first = GetParam().compress("first"), second = GetParam().compress(Text(500));
  for (size_t cut = 1; cut < second.size(); ++cut) {
    std::string out;
    const auto outcome = DecompressAll(first + second.substr(0, cut), GetParam().kind, kNoLimit, &out);
    EXPECT_TRUE(out.starts_with("first")) << cut;
    EXPECT_TRUE(outcome.cut) << cut;
    EXPECT_FALSE(outcome.corrupt) << cut;
  }
}

TEST_P(Decompression, DeliversManyBlocksBeforeACut) {
  const std::string text = Text(3'000'000);
  const std::string whole = GetParam().compress(text);
  std::string out;
  DecompressAll(whole.substr(0, whole.size() / 2), GetParam().kind, kNoLimit, &out);
  EXPECT_GT(out.size(), text.size() / 4);
  EXPECT_TRUE(text.starts_with(out));
}

TEST_P(Decompression, LeavesGarbageAfterTheLastPartUnread) {
  for (const std::string garbage : {"x", "garbage after the end", "\x1f\x8c", "\x28\xb5\x2f\xfe"}) {
    std::string out;
    const auto outcome = DecompressAll(GetParam().compress("hello") + garbage, GetParam().kind, kNoLimit, &out);
    EXPECT_EQ(out, "hello") << garbage;
    EXPECT_EQ(outcome.unread_bytes, garbage.size());
    EXPECT_FALSE(outcome.corrupt) << garbage;
    EXPECT_FALSE(outcome.cut) << garbage;
  }
  std::string out;
  const auto zeros =
      DecompressAll(GetParam().compress("hello") + std::string(512, '\0'), GetParam().kind, kNoLimit, &out);
  EXPECT_EQ(out, "hello") << "padding of a tape or a block device";
  EXPECT_EQ(zeros.unread_bytes, 512u);
  EXPECT_FALSE(zeros.corrupt);
}

TEST_P(Decompression, TellsDamageAndDeliversWhatCameBefore) {
  const std::string text = Text(3'000'000);
  std::string damaged = GetParam().compress(text);
  for (size_t i = damaged.size() / 2; i < damaged.size() / 2 + 64; ++i)
    damaged[i] = static_cast<char>(damaged[i] ^ 0x5a);
  std::string out;
  const auto outcome = DecompressAll(damaged, GetParam().kind, kNoLimit, &out);
  EXPECT_TRUE(outcome.corrupt);
  EXPECT_GT(out.size(), text.size() / 4);
  EXPECT_EQ(out.substr(0, text.size() / 4), text.substr(0, text.size() / 4));
}

TEST_P(Decompression, StopsABombAtTheLimit) {
  const std::string bomb = GetParam().compress(std::string(64 << 20, '\0'));
  EXPECT_LT(bomb.size(), 100'000u);
  std::string out;
  const auto outcome = DecompressAll(bomb, GetParam().kind, 1 << 20, &out);
  EXPECT_TRUE(outcome.limited);
  EXPECT_EQ(out.size(), size_t{1} << 20);
  EXPECT_EQ(outcome.output_bytes, uint64_t{1} << 20);
}

TEST_P(Decompression, IsNotLimitedByAnExactFit) {
  std::string out;
  EXPECT_FALSE(DecompressAll(GetParam().compress("hello"), GetParam().kind, 5, &out).limited);
  EXPECT_TRUE(DecompressAll(GetParam().compress("hello"), GetParam().kind, 4, &out).limited);
}

TEST_P(Decompression, StopsWhenTheSinkHasEnough) {
  size_t chunks = 0;
  Decompress(GetParam().compress(Text(3'000'000)), GetParam().kind, kNoLimit,
             [&](std::string_view) { return ++chunks < 2; });
  EXPECT_EQ(chunks, 2u);
}

TEST_P(Decompression, TellsHowFarItCame) {
  const std::string packed = GetParam().compress(Text(3'000'000));
  std::vector<size_t> passed;
  Decompress(
      packed, GetParam().kind, kNoLimit, [](std::string_view) { return true; },
      [&](size_t bytes) { passed.push_back(bytes); });
  ASSERT_GT(passed.size(), 2u);
  EXPECT_TRUE(std::is_sorted(passed.begin(), passed.end()));
  EXPECT_LT(passed.front(), packed.size());
  EXPECT_EQ(passed.back(), packed.size());
}

TEST(Decompression, PassesPlainBytesThrough) {
  std::string out;
  EXPECT_FALSE(DecompressAll("plain", Compression::none, 100, &out).limited);
  EXPECT_EQ(out, "plain");
  EXPECT_TRUE(DecompressAll("plain", Compression::none, 2, &out).limited);
}

TEST(Decompression, KnowsZstdThatBeginsWithASkippableFrame) {
  // pzstd writes the size of the next frame into a frame of its own.
  const std::string skippable("\x50\x2a\x4d\x18\x04\x00\x00\x00\x11\x22\x33\x44", 12);
  EXPECT_EQ(DetectCompression(skippable), Compression::zstd);
  std::string out;
  const auto outcome =
      DecompressAll(skippable + Zstd("hello") + skippable + Zstd(" you"), Compression::zstd, kNoLimit, &out);
  EXPECT_EQ(out, "hello you");
  EXPECT_FALSE(outcome.cut || outcome.corrupt);
}

TEST(Decompression, RefusesAWindowOfGigabytes) {
  // A frame header that asks for a window of 2^41 bytes.
  const std::string frame("\x28\xb5\x2f\xfd\x00\xf8\x01\x00\x00", 9);
  std::string out;
  EXPECT_TRUE(DecompressAll(frame, Compression::zstd, kNoLimit, &out).corrupt);
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace tacet
