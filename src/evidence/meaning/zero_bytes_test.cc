// SPDX-License-Identifier: Apache-2.0
#include "evidence/meaning/zero_bytes.h"

#include <gtest/gtest.h>

#include <string>

#include "evidence/load.h"

namespace tacet {
namespace {

const std::string kZeros(100'000, '\0');
const std::string kTrace =
    "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"train.py\", line 7, in main\n[rank3]: ValueError: "
    "bad\n";

bool IsTold(const Fragment& fragment, std::string_view code) {
  for (const Diagnostic& diagnostic : fragment.diagnostics)
    if (diagnostic.code == code) return true;
  return false;
}

TEST(ZeroBytes, TakesOutRunsAndKeepsTheText) {
  const TextWithZeros out = TakeOutZeros(kZeros + "a\n" + std::string(3, '\0') + "b\n" + kZeros, 1 << 20);
  EXPECT_EQ(out.text, "a\nb\n");
  EXPECT_EQ(out.left_out, 2 * kZeros.size() + 3);
  EXPECT_TRUE(out.ends_in_zeros);
  EXPECT_FALSE(out.limited);
}

TEST(ZeroBytes, KeepsNoMoreThanAsked) {
  const TextWithZeros out = TakeOutZeros("abc" + kZeros + "def" + kZeros + "ghi", 5);
  EXPECT_EQ(out.text, "abcde");
  EXPECT_TRUE(out.limited);
}

TEST(ZeroBytes, BinaryIsNoText) {
  std::string binary;
  for (int i = 0; i < 1000; ++i) binary += std::string("\0\x01\x02\x03z", 5);
  EXPECT_EQ(PeekBesidesZeros(binary, 1000), "");
  EXPECT_EQ(PeekBesidesZeros(kZeros, 1000), "");
  EXPECT_TRUE(IsAllZeros(kZeros));
  EXPECT_FALSE(IsAllZeros(""));
  EXPECT_FALSE(IsAllZeros(kZeros + "x"));
}

TEST(ZeroBytes, ALogBehindTheHoleOfALogThatWasCutIsRead) {
  const Fragment fragment = ReadFragment("rank3.log", kZeros + kTrace, {});
  EXPECT_EQ(fragment.format, "torch_log");
  EXPECT_TRUE(IsTold(fragment, "zero-bytes"));
  EXPECT_FALSE(fragment.events.empty());
  EXPECT_EQ(fragment.bytes.total, kZeros.size() + kTrace.size());
  EXPECT_EQ(fragment.bytes.understood + fragment.bytes.ignored + fragment.bytes.not_understood, fragment.bytes.total);
}

TEST(ZeroBytes, ALogWhoseNodeWentDownIsRead) {
  const Fragment fragment = ReadFragment("rank3.log", kTrace + kZeros, {});
  EXPECT_EQ(fragment.format, "torch_log");
  EXPECT_TRUE(IsTold(fragment, "zero-bytes"));
}

TEST(ZeroBytes, WhatIsUnknownIsToldWhy) {
  EXPECT_TRUE(IsTold(ReadFragment("nccl_trace_rank_0", kZeros, {}), "zero-filled"));
  EXPECT_TRUE(IsTold(ReadFragment("deep.json", std::string(1'000'000, '['), {}), "nested-too-deep"));
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "{\"a\":";
  EXPECT_TRUE(IsTold(ReadFragment("deep.json", deep, {}), "nested-too-deep"));
  EXPECT_TRUE(IsTold(ReadFragment("list.json", "[1, 2, 3]", {}), "unknown-format"));
}

}  // namespace
}  // namespace tacet
