// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tacet {

// A sentence of whoever pasted the text, saying that the input of the ranks differs in size: "the GPUs do not get the
// same image size in an iteration", "sequence lengths vary across ranks". In small letters.
bool StatesUnevenInput(std::string_view sentence);

}  // namespace tacet
