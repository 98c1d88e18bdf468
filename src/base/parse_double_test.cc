// SPDX-License-Identifier: Apache-2.0
#include "base/parse_double.h"

#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

namespace tacet {
namespace {

struct ParsedDouble {
  size_t used = 0;
  std::errc error = {};
  double value = -7;  // untouched where nothing was read
};

ParsedDouble ByStrtod(std::string_view text) {
  ParsedDouble out;
  const auto [end, error] = ParseDoubleByStrtod(text.data(), text.data() + text.size(), out.value);
  return {static_cast<size_t>(end - text.data()), error, out.value};
}

#ifdef __cpp_lib_to_chars
TEST(ParseDouble, GivesTheSameWhereTheStandardLibraryHasNone) {
  for (const std::string_view text : {"1",
                                      "-1",
                                      "1.5",
                                      "1.5e3",
                                      "1.5E-3",
                                      "1.5e+3",
                                      "1e",
                                      "1e+",
                                      "1ex",
                                      ".5",
                                      "5.",
                                      "-.5e1x",
                                      "-0",
                                      "0x10",
                                      "+1",
                                      " 1",
                                      "",
                                      "-",
                                      ".",
                                      "e5",
                                      "-e5",
                                      "inf",
                                      "-inf",
                                      "infinity",
                                      "INF",
                                      "nan",
                                      "NaN",
                                      "nanx",
                                      "infx",
                                      "in",
                                      "1e400",
                                      "-1e400",
                                      "1e-400",
                                      "0e500",
                                      "0.1",
                                      "4.9e-324",
                                      "1,5",
                                      "12abc",
                                      "1..2",
                                      "1.2.3",
                                      "0.00e-500",
                                      "--1",
                                      "1e3.5",
                                      "1e3e5",
                                      "00012",
                                      "1234567890123456789012345",
                                      "9007199254740993"}) {
    double expected = -7;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), expected);
    const ParsedDouble got = ByStrtod(text);
    EXPECT_EQ(got.error, error) << text;
    EXPECT_EQ(got.used, static_cast<size_t>(end - text.data())) << text;
    EXPECT_EQ(std::isnan(got.value), std::isnan(expected)) << text;
    if (std::isnan(expected)) continue;
    EXPECT_EQ(got.value, expected) << text;
    EXPECT_EQ(std::signbit(got.value), std::signbit(expected)) << text;
  }
}
#endif

TEST(ParseDouble, StopsAtTheEndOfATextThatIsNotTerminated) {
  const std::string text = "12.59";
  const ParsedDouble got = ByStrtod(std::string_view(text).substr(0, 4));
  EXPECT_EQ(got.value, 12.5);
  EXPECT_EQ(got.used, 4u);
}

TEST(ParseDouble, LeavesTheValueAloneWhereThereIsNoNumber) {
  double value = 3;
  const std::string_view text = "x1";
  EXPECT_EQ(ParseDouble(text.data(), text.data() + text.size(), value).ec, std::errc::invalid_argument);
  EXPECT_EQ(value, 3);
}

}  // namespace
}  // namespace tacet
