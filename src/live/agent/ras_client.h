// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "http/http_server.h"

namespace tacet {

// Asks NCCL's RAS threads, which answer for their whole job: connects, says "VERBOSE STATUS", reads until the other
// side closes. No answer within the time, or nobody there, is an Error.
Result<std::string> AskRas(const HttpAddress& address, int64_t limit_ms);

// "localhost:28028", or what NCCL_RAS_ADDR says.
HttpAddress RasAddress();

}  // namespace tacet
