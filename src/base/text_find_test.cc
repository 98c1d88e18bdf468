// SPDX-License-Identifier: Apache-2.0
#include "base/text_find.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace tacet {
namespace {

TEST(TextFind, FindsWhatTheStandardFunctionFindsInTextsOfEveryLength) {
  std::mt19937 random(7);
  const auto letters = [&](size_t size) {
    std::string text(size, ' ');
    for (char& c : text) c = "abc\xff"[random() % 4];
    return text;
  };
  size_t found = 0;
  for (size_t size = 0; size < 120; ++size)
    for (size_t part = 0; part < 7; ++part)
      for (int round = 0; round < 8; ++round) {
        const std::string text = letters(size), wanted = letters(part);
        ASSERT_EQ(FindText(text, wanted), text.find(wanted)) << text << " / " << wanted;
        found += text.find(wanted) != std::string::npos;
      }
  EXPECT_GT(found, 1000u);
}

TEST(TextFind, FindsTheFirstOfSeveralAndOneAtTheVeryEnd) {
  const std::string text = "2026-11-16 18:52:31,011 train INFO: rank 3: rank 4 is done";
  EXPECT_EQ(FindText(text, "rank "), text.find("rank "));
  EXPECT_EQ(FindText(text, "is done"), text.size() - 7);
  EXPECT_EQ(FindText(text, "is done."), std::string_view::npos);
}

}  // namespace
}  // namespace tacet
