// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace tacet {

// A secret inside a text.
struct SecretSpan {
  size_t begin = 0, end = 0;
  std::string_view kind;
};

// A secret by its shape alone, if one begins exactly at `at`.
std::optional<SecretSpan> FindSecretShape(std::string_view text, size_t at);

// A secret by the name in front of it, if `at` is the '=' or ':' between the two, or the blank behind an option.
std::optional<SecretSpan> FindNamedSecret(std::string_view text, size_t at);

inline bool IsTokenCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Letters and digits together: what chance or a generator wrote, and hardly a word of a language.
bool IsMixed(std::string_view text);

}  // namespace tacet
