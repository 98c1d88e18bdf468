// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

// What the message of a known error (model/events/refusals.h) names, as a clause: the parameter, the key with both
// shapes. Empty where it names nothing.
std::string RefusedObject(std::string_view message);

}  // namespace tacet
