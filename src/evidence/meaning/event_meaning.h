// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/events/event.h"

namespace tacet {

// What the words of an event mean, decided once, here: nobody above this room looks into a message. Sets
// `Event::means`, and `Event::object` of an NCCL error to the reason that NCCL gives for it.
void ReadMeaning(Event& event);

}  // namespace tacet
