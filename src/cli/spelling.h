// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tacet {

// The known word that was probably meant: a beginning of it, or a few letters left out, added, changed or swapped.
// Empty where none is near.
std::string NearestWord(std::string_view word, const std::vector<std::string_view>& known);

// "did you mean 'diagnose'? " or nothing, to stand in front of a hint.
std::string DidYouMean(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace tacet
