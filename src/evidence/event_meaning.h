// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/event.h"

namespace tacet {

// What the words of an event mean, decided once, here: nobody above this room looks into a message. Sets
// `Event::means`, and `Event::object` of an NCCL error to the reason that NCCL gives for it.
void ReadMeaning(Event& event);

// What CUDA or HIP answers to a call that was wrong, to a program that does not fit the device or its driver, or to a
// process that is already ending tells nothing about the device.
bool IsOfTheDevice(std::string_view cuda_error);

}  // namespace tacet
