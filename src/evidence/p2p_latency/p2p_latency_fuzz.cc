// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>

#include "evidence/format.h"

namespace tacet {
extern const Format kP2pLatencyFormat;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tacet::kP2pLatencyFormat.recognise(bytes.substr(0, tacet::kPrefixBytes), "benchmark.txt");
  tacet::Fragment out;
  tacet::kP2pLatencyFormat.read({"benchmark.txt", bytes, false}, out);
  const tacet::Accounting& sum = out.bytes;
  if (sum.total != size || sum.understood + sum.ignored + sum.not_understood != sum.total) std::abort();
  for (const tacet::BenchmarkRun& run : out.benchmark_runs) {
    for (const tacet::BenchmarkLine& line : run.lines)
      if (line.bytes < 0 || line.source.offset > size) std::abort();
    for (const tacet::BenchmarkMatrix& matrix : run.matrices)
      for (const auto& row : matrix.cells)
        if (row.size() != matrix.columns.size()) std::abort();
  }
  return 0;
}
