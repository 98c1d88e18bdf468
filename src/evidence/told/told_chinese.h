// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

// A sentence in Chinese characters, with or without English terms between them: no line of a program's log.
bool IsChineseSentence(std::string_view line);

// Whether such a sentence says that the job hangs, that it is slow, or that its figures are not finite. Not one that
// supposes, denies or asks it.
bool ChineseSaysItHangs(std::string_view line);
// SlowCondition of such a sentence: "the number of nodes"; empty where it tells none.
std::string ChineseSlowCondition(std::string_view line);
bool ChineseSaysItIsSlow(std::string_view line);
// "训练到一半loss变成nan"
bool ChineseSaysItIsNotFinite(std::string_view line);

}  // namespace tacet
