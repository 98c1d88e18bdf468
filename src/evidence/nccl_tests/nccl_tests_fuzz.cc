// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>

#include "evidence/format.h"

namespace tacet {
extern const Format kNcclTestsFormat;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tacet::kNcclTestsFormat.recognise(bytes.substr(0, tacet::kPrefixBytes), "all_reduce.txt");
  tacet::Fragment out;
  tacet::kNcclTestsFormat.read({"all_reduce.txt", bytes, false}, out);
  const tacet::Accounting& sum = out.bytes;
  if (sum.total != size || sum.understood + sum.ignored + sum.not_understood != sum.total) std::abort();
  for (const tacet::BenchmarkRun& run : out.benchmark_runs)
    for (const tacet::BenchmarkLine& line : run.lines)
      if (line.bytes < 0 || line.source.offset > size) std::abort();
  return 0;
}
