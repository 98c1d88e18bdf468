// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "evidence/format.h"

namespace tacet {

// One input for a reader of benchmarks. Whatever the bytes are, the accounting adds up, lines lie within the file, and
// the rows of a matrix have its columns.
inline int CheckBenchmarkReader(const Format& format, const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  format.recognise(bytes.substr(0, kPrefixBytes), "benchmark.txt");
  Fragment out;
  format.read({"benchmark.txt", bytes, false}, out);
  const Accounting& sum = out.bytes;
  if (sum.total != size || sum.understood + sum.ignored + sum.not_understood != sum.total) std::abort();
  for (const BenchmarkRun& run : out.benchmark_runs) {
    for (const BenchmarkLine& line : run.lines)
      if (line.bytes < 0 || line.source.offset > size) std::abort();
    for (const BenchmarkMatrix& matrix : run.matrices)
      for (const auto& row : matrix.cells)
        if (row.size() != matrix.columns.size()) std::abort();
  }
  return 0;
}

}  // namespace tacet
