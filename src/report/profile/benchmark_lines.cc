// SPDX-License-Identifier: Apache-2.0
#include "report/profile/benchmark_lines.h"

#include <set>
#include <utility>

namespace tacet {
namespace {

constexpr double kNsPerUs = 1000;
constexpr int64_t kSmall = 32 << 10, kMiddle = 4 << 20;

void Take(const BenchmarkFigure& figure, BenchmarkSamples& out) {
  if (figure.time_us <= 0) return;
  out.runs.push_back(figure.time_us * kNsPerUs);
  if (figure.bus_gbs > 0) out.bus_gbs.push_back(figure.bus_gbs);
  for (const double time : figure.iterations_us)
    if (time > 0) out.iterations.push_back(time * kNsPerUs);
}

std::string Size(int64_t bytes) {
  static constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB"};
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + kUnits[unit];
}

std::string Head(const BenchmarkKey& key) { return key.operation.empty() ? "unnamed operation" : key.operation; }

std::string Tail(const BenchmarkKey& key, const BenchmarkNaming& naming) {
  std::string out;
  if (!key.variant.empty()) out += ", " + key.variant + ",";
  if (naming.type) out += " " + std::string(Name(key.type));
  if (naming.reduction && key.reduction != ReduceOp::unknown) out += " " + std::string(Name(key.reduction));
  if (naming.root && key.root >= 0) out += " from " + std::to_string(key.root);
  return out;
}

}  // namespace

BenchmarkVariants FindVariants(const std::vector<BenchmarkRun>& runs) {
  std::set<int32_t> ranks;
  std::set<std::pair<std::string, std::string>> ways;
  for (const BenchmarkRun& run : runs) ranks.insert(run.ranks), ways.insert({run.algorithm, run.protocol});
  return {ranks.size() > 1, ways.size() > 1};
}

BenchmarkTable CollectLines(const std::vector<BenchmarkRun>& runs, const BenchmarkVariants& variants) {
  BenchmarkTable out;
  for (const BenchmarkRun& run : runs) {
    std::string variant;
    if (variants.ranks) variant = run.ranks > 0 ? std::to_string(run.ranks) + " ranks" : "ranks unknown";
    if (variants.ways && !(run.algorithm + run.protocol).empty())
      variant += (variant.empty() ? "" : " ") + run.algorithm + (run.algorithm.empty() ? "" : " ") + run.protocol;
    for (const BenchmarkLine& line : run.lines) {
      // Sizes below one element a rank are printed as 0, several of them alike.
      if (line.bytes <= 0) continue;
      BenchmarkKey key{run.operation, line.type, line.reduction, line.root, line.bytes, false, variant};
      Take(line.out_of_place, out[key]);
      key.in_place = true;
      Take(line.in_place, out[key]);
    }
  }
  std::erase_if(out, [](const auto& one) { return one.second.runs.empty(); });
  return out;
}

SizeRange RangeOf(int64_t bytes) {
  return bytes <= kSmall ? SizeRange::small : bytes <= kMiddle ? SizeRange::middle : SizeRange::large;
}

BenchmarkNaming FindNaming(const BenchmarkTable& a, const BenchmarkTable& b) {
  std::set<DataType> types;
  std::set<ReduceOp> reductions;
  std::set<int32_t> roots;
  for (const BenchmarkTable* table : {&a, &b}) {
    for (const auto& [key, samples] : *table) {
      types.insert(key.type);
      if (key.reduction != ReduceOp::unknown) reductions.insert(key.reduction);
      if (key.root >= 0) roots.insert(key.root);
    }
  }
  return {types.size() > 1, reductions.size() > 1, roots.size() > 1};
}

std::string NameLine(const BenchmarkKey& key, const BenchmarkNaming& naming) {
  return Head(key) + " " + Size(key.bytes) + Tail(key, naming) + (key.in_place ? ", in-place" : ", out-of-place");
}

std::string NameClass(const BenchmarkKey& any_of_it, const BenchmarkNaming& naming, size_t sizes) {
  const SizeRange range = RangeOf(any_of_it.bytes);
  return Head(any_of_it) + Tail(any_of_it, naming) +
         (range == SizeRange::small    ? " up to " + Size(kSmall)
          : range == SizeRange::middle ? " up to " + Size(kMiddle)
                                       : " above " + Size(kMiddle)) +
         ", " + std::to_string(sizes) + (sizes == 1 ? " size" : " sizes");
}

}  // namespace tacet
