// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>

namespace tacet {

enum class OutputFormat { text, json, html, junit, sarif };

inline constexpr std::array<std::string_view, 5> kOutputFormatNames = {"text", "json", "html", "junit", "sarif"};

constexpr std::string_view Name(OutputFormat format) { return kOutputFormatNames[static_cast<size_t>(format)]; }

// Nothing for a name that is none of ours; the caller says so and lists kOutputFormatNames.
constexpr std::optional<OutputFormat> ParseOutputFormat(std::string_view name) {
  for (size_t i = 0; i < kOutputFormatNames.size(); ++i)
    if (kOutputFormatNames[i] == name) return static_cast<OutputFormat>(i);
  return std::nullopt;
}

}  // namespace tacet
