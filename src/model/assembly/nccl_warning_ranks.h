// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "model/events/nccl_warnings.h"

namespace tacet {

// The two ranks of a communicator that a warning names, in its order.
struct WarningRanks {
  int32_t first = -1, second = -1;
};
std::optional<WarningRanks> ParseWarningRanks(const NcclWarning& warning, std::string_view message);

// NCCL's code of a release: 22005 is "2.20.5", and before 2.9 2708 is "2.7.8". Empty for what is none.
std::string NcclVersionWords(int64_t code);

}  // namespace tacet
