// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/events/event.h"

namespace tacet {

// The word that tells an event from others of its kind: the type of an exception, the id of a warning, the name of a
// device. Empty for kinds that have none.
std::string_view WordOf(const Event& event);

// The message, and of a setting or a device, which have none, the value or the address.
std::string_view MessageOf(const Event& event);

// The PCI address, or the name, of the device that the kernel speaks of; empty where it speaks of none.
std::string_view KernelDeviceOf(const Event& event);

}  // namespace tacet
