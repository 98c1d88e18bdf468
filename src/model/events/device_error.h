// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace tacet {

// What CUDA or HIP answers to a call that was wrong, to a program that does not fit the device or its driver, or to a
// process that is already ending tells nothing about the device.
bool IsOfTheDevice(std::string_view cuda_error);

}  // namespace tacet
