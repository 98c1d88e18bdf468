// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

// As sha256sum prints it: 64 hexadecimal digits.
std::string Sha256(std::string_view bytes);

}  // namespace tacet
