// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "recorded_variant.h"

namespace tacet {

// The same incident as container runtimes, journals and log stores keep it: every line in an envelope.
std::vector<Variant> EnvelopeVariants();

}  // namespace tacet
