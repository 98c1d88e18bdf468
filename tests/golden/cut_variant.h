// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "recorded_variant.h"

namespace tacet {

// The same incident with files that end early: a full disk, a copy that broke off, a collection taken while the job
// still ran. Of all ranks, or of one only: that file looks like the one of a rank that stopped writing.
std::vector<Variant> CutVariants();

}  // namespace tacet
