// SPDX-License-Identifier: Apache-2.0
#include "model/nccl_graph.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr std::string_view kPathNames[] = {"?",   "LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                           "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
constexpr std::string_view kAlgorithmNames[] = {"Tree", "Ring",     "CollNetDirect", "CollNetChain",
                                                "NVLS", "NVLSTree", "PAT",           "?"};
constexpr std::string_view kProtocolNames[] = {"LL", "LL128", "Simple", "?"};

// Letters and digits are compared without case; underscores are skipped: "NVLS_TREE" is "NVLSTree".
bool SameWord(std::string_view a, std::string_view b) {
  size_t i = 0, j = 0;
  for (;;) {
    while (i < a.size() && a[i] == '_') ++i;
    while (j < b.size() && b[j] == '_') ++j;
    if (i == a.size() || j == b.size()) return i == a.size() && j == b.size();
    if (LowerCase(a[i++]) != LowerCase(b[j++])) return false;
  }
}

template <size_t N>
size_t IndexOfWord(std::string_view word, const std::string_view (&names)[N]) {
  if (word.size() == 1 && word[0] >= '0' && word[0] <= '9') return std::min<size_t>(word[0] - '0', N - 1);
  for (size_t i = 0; i + 1 < N; ++i)
    if (SameWord(word, names[i])) return i;
  return N - 1;
}

}  // namespace

std::string_view Name(NcclPath path) { return kPathNames[static_cast<size_t>(path)]; }

NcclPath ParseNcclPath(std::string_view name) {
  if (name == "XGMI") return NcclPath::nvl;
  const auto found = std::find(std::next(std::begin(kPathNames)), std::end(kPathNames), name);
  return found == std::end(kPathNames) ? NcclPath::unknown : static_cast<NcclPath>(found - std::begin(kPathNames));
}

std::string_view Name(NcclAlgorithm algorithm) { return kAlgorithmNames[static_cast<size_t>(algorithm)]; }

NcclAlgorithm ParseNcclAlgorithm(std::string_view name) {
  if (SameWord(name, "CollNet")) return NcclAlgorithm::collnet_direct;
  return static_cast<NcclAlgorithm>(IndexOfWord(name, kAlgorithmNames));
}

std::string_view Name(NcclProtocol protocol) { return kProtocolNames[static_cast<size_t>(protocol)]; }

NcclProtocol ParseNcclProtocol(std::string_view name) {
  return static_cast<NcclProtocol>(IndexOfWord(name, kProtocolNames));
}

int NcclTunedIndex(OpKind op) {
  const auto found = std::find(std::begin(kNcclTunedOps), std::end(kNcclTunedOps), op);
  return found == std::end(kNcclTunedOps) ? -1 : static_cast<int>(found - std::begin(kNcclTunedOps));
}

NcclTuningTable::NcclTuningTable() {
  for (auto& row : max_threads)
    for (int32_t& threads : row) threads = -1;
}

const NcclGraphSearch* NcclSetup::GraphOf(NcclAlgorithm algorithm) const {
  const auto found =
      std::find_if(graphs.begin(), graphs.end(), [&](const auto& graph) { return graph.algorithm == algorithm; });
  return found == graphs.end() ? nullptr : &*found;
}

}  // namespace tacet
