// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/log_outline.h"

namespace tacet {

// What a rank prints of its loss, or of a checksum of its parameters, with the step that it is of:
//   [rank3] {'loss': nan, 'grad_norm': nan, 'learning_rate': 0.001, 'epoch': 0.47}
//   [rank 2] scalar step=28 tag=debug/param_checksum value=159.991133
// `rank`: whose line it is.
void ReadRankValues(std::string_view text, int32_t rank, const SourceRef& source, LogOutline& out);

}  // namespace tacet
