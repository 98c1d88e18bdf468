// SPDX-License-Identifier: Apache-2.0
#include "model/events/device_error.h"

#include <algorithm>
#include <iterator>

#include "base/text_scan.h"

namespace tacet {

//   CUDA error: operation not permitted when stream is capturing
//   CUDA error: driver shutting down
bool IsOfTheDevice(std::string_view cuda_error) {
  static constexpr std::string_view kOfTheCall[] = {"driver shutting down",
                                                    "captur",
                                                    "invalid argument",
                                                    "invalid configuration",
                                                    "invalid resource handle",
                                                    "invalid device",
                                                    "hipErrorInvalidDevice",
                                                    "no kernel image",
                                                    "hipErrorNoBinaryForGpu",
                                                    "no CUDA-capable device",
                                                    "no ROCm-capable device",
                                                    "hipErrorNoDevice",
                                                    "not supported",
                                                    "PTX",
                                                    "not permitted",
                                                    "initialization error",
                                                    "not initialized",
                                                    "hipErrorNotInitialized",
                                                    "peer access",
                                                    "peer mapping",
                                                    "busy or unavailable",
                                                    "system not yet initialized",
                                                    "named symbol",
                                                    "_NOT_INITIALIZED",
                                                    "_INVALID_VALUE",
                                                    "_NOT_SUPPORTED",
                                                    "hipErrorInsufficientDriver",
                                                    "driver is a stub",
                                                    "version is insufficient"};
  return std::none_of(std::begin(kOfTheCall), std::end(kOfTheCall),
                      [&](std::string_view words) { return Contains(cuda_error, words); });
}

}  // namespace tacet
