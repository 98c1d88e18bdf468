// SPDX-License-Identifier: Apache-2.0
#include "predict/nccl_filter.h"

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr std::string_view kFunctions[kNcclTuned] = {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"};

bool SameLetters(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if ((a[i] | 0x20) != (b[i] | 0x20)) return false;
  return true;
}

// The part up to `stop`; takes the stop too. Empty parts are skipped, as strtok does.
std::string_view TakePart(std::string_view& text, char stop) {
  while (!text.empty() && text.front() == stop) text.remove_prefix(1);
  const std::string_view part = TakeUntil(text, stop);
  if (!text.empty()) text.remove_prefix(1);
  return part;
}

std::string_view NameIn(const NcclRelease& release, NcclAlgorithm algorithm) {
  const bool one_collnet = release.Before(14) && algorithm == NcclAlgorithm::collnet_direct;
  return one_collnet ? "CollNet" : Name(algorithm);
}
std::string_view NameIn(const NcclRelease&, NcclProtocol protocol) { return Name(protocol); }

template <typename Enum, size_t N>
std::string Apply(const NcclRelease& release, std::string_view list, int (&row)[N]) {
  const bool without = TakeLiteral(list, "^");
  for (int& one : row) one = without ? 1 : 0;
  std::string unknown;
  while (!list.empty()) {
    const std::string_view word = TakePart(list, ',');
    if (word.empty()) break;
    size_t index = 0;
    while (index < N && !SameLetters(word, NameIn(release, static_cast<Enum>(index)))) ++index;
    if (index < N) {
      row[index] = without ? 0 : 1;
    } else if (unknown.empty()) {
      unknown = word;
    }
  }
  return unknown;
}

template <typename Enum, size_t N>
void ReadList(const NcclRelease& release, std::string_view name, std::string_view setting, int (&table)[kNcclTuned][N],
              std::string* complaint) {
  if (setting.empty()) return;
  const bool by_function = release.AtLeast(24);
  bool first = true;
  while (!setting.empty()) {
    std::string_view entry = by_function ? TakePart(setting, ';') : setting;
    if (!by_function) setting = {};
    std::string_view function;
    if (const size_t colon = entry.find(':'); by_function && colon != std::string_view::npos) {
      function = entry.substr(0, colon);
      entry = entry.substr(colon + 1);
    }
    bool found = false;
    for (int f = 0; f < kNcclTuned; ++f) {
      if (!function.empty() && !SameLetters(function, kFunctions[f])) continue;
      found = true;
      const std::string unknown = Apply<Enum>(release, entry, table[f]);
      if (!unknown.empty() && by_function && complaint->empty())
        *complaint = std::string(name) + " names '" + unknown + "', which " + release.Text() + " does not have";
    }
    if (complaint->empty() && !first && function.empty())
      *complaint = std::string(name) + ": every entry but the first needs an operation before it";
    if (complaint->empty() && !found)
      *complaint = std::string(name) + " names the operation '" + std::string(function) + "', which NCCL does not have";
    first = false;
  }
}

}  // namespace

NcclFilter::NcclFilter() {
  for (auto& row : protocols)
    for (int p = 0; p < kNcclProtocols; ++p) row[p] = p == static_cast<int>(NcclProtocol::ll128) ? 2 : 1;
  for (auto& row : algorithms)
    for (int& one : row) one = 1;
}

NcclFilter ReadNcclFilter(const NcclRelease& release, std::string_view algorithms, std::string_view protocols) {
  NcclFilter filter;
  ReadList<NcclProtocol>(release, "NCCL_PROTO", protocols, filter.protocols, &filter.complaint);
  ReadList<NcclAlgorithm>(release, "NCCL_ALGO", algorithms, filter.algorithms, &filter.complaint);
  return filter;
}

}  // namespace tacet
