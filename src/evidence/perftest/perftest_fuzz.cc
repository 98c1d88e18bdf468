// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "tests/fuzz/benchmark_check.h"

namespace tacet {
extern const Format kPerftestFormat;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return tacet::CheckBenchmarkReader(tacet::kPerftestFormat, data, size);
}
