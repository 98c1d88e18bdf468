// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_tests/nccl_tests_operation.h"

#include <cmath>

#include "base/text_scan.h"

namespace tacet {
namespace {

// How the factor of the bus bandwidth follows from the number of ranks.
enum class Factor { one, twice, share };

struct KnownOperation {
  std::string_view word;  // letters and digits only; longer words before those they contain
  std::string_view name;
  Factor factor;
};

constexpr KnownOperation kOperations[] = {
    {"reducescatter", "reduce_scatter", Factor::share},
    {"allreduce", "all_reduce", Factor::twice},
    {"allgather", "all_gather", Factor::share},
    {"alltoallv", "all_to_all_v", Factor::share},
    {"alltoall", "all_to_all", Factor::share},
    {"all2all", "all_to_all", Factor::share},
    {"sendrecv", "sendrecv", Factor::one},
    {"broadcast", "broadcast", Factor::one},
    {"hypercube", "hypercube", Factor::one},
    {"scatter", "scatter", Factor::share},
    {"gather", "gather", Factor::share},
    {"reduce", "reduce", Factor::one},
};

// Digits of the table are few: 0.13 / 0.10 may be 1.25 to 1.35 in truth.
constexpr double kTolerance = 0.04;

std::string Squeeze(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

double FactorFor(Factor factor, int32_t ranks) {
  const double share = ranks > 0 ? (ranks - 1.0) / ranks : 1;
  return factor == Factor::one ? 1 : factor == Factor::twice ? 2 * share : share;
}

}  // namespace

std::string OperationOfProgram(std::string_view program) {
  if (!program.ends_with("_perf")) return "";
  const std::string squeezed = Squeeze(program.substr(0, program.size() - 5));
  for (const KnownOperation& one : kOperations)
    if (squeezed == one.word) return std::string(one.name);
  return squeezed;
}

std::string OperationOfPath(std::string_view path) {
  if (const size_t slash = path.rfind('/'); slash != std::string_view::npos) path.remove_prefix(slash + 1);
  const std::string squeezed = Squeeze(path);
  for (const KnownOperation& one : kOperations)
    if (Contains(squeezed, one.word)) return std::string(one.name);
  return "";
}

std::string OperationOfFactor(int32_t ranks, double factor) {
  if (ranks < 3 || factor <= 0) return "";
  return std::fabs(factor / FactorFor(Factor::twice, ranks) - 1) < kTolerance ? "all_reduce" : "";
}

int32_t RanksOfFactor(double algorithm_gbs, double bus_gbs) {
  if (algorithm_gbs < 0.5 || bus_gbs <= 0) return -1;
  // Two digits behind the point: each bandwidth is off by up to 0.005.
  const double factor = bus_gbs / algorithm_gbs, off = factor * (0.005 / algorithm_gbs + 0.005 / bus_gbs);
  if (factor + off >= 2) return -1;
  const double least = 2 / (2 - factor + off), most = 2 / (2 - factor - off);
  const double ranks = std::round((least + most) / 2);
  const bool alone = least > ranks - 1 && most < ranks + 1;
  return ranks >= 2 && ranks < 4096 && alone && least <= ranks && ranks <= most ? static_cast<int32_t>(ranks) : -1;
}

bool FitsFactor(std::string_view operation, int32_t ranks, double factor) {
  if (ranks < 2 || factor <= 0) return true;
  for (const KnownOperation& one : kOperations)
    if (one.name == operation) return std::fabs(factor / FactorFor(one.factor, ranks) - 1) < kTolerance;
  return true;
}

}  // namespace tacet
