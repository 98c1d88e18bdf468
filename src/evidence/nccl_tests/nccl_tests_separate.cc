// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_tests/nccl_tests_separate.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

namespace tacet {
namespace {

using Owner = std::pair<std::string_view, int64_t>;  // host and pid

std::set<Owner> FirstRanksOf(const NcclTestsTable& table) {
  std::set<Owner> out;
  for (const NcclTestsDevice& device : table.devices)
    if (device.rank == 0) out.insert({device.host, device.pid});
  return out;
}

bool HasOneRank(const NcclTestsTable& table) {
  return !table.devices.empty() && std::all_of(table.devices.begin(), table.devices.end(),
                                               [](const NcclTestsDevice& device) { return device.rank == 0; });
}

// Heads of two runs, one behind the other, and then the rows of both: the first head is of no run of its own.
void JoinHeads(NcclTestsOutput& out) {
  for (size_t i = 1; i < out.tables.size(); ++i) {
    NcclTestsTable &first = out.tables[i - 1], &second = out.tables[i];
    if (!first.rows.empty() || first.concluded || !first.failure.empty() || first.label != second.label ||
        first.command != second.command || !HasOneRank(first) || !HasOneRank(second))
      continue;
    second.devices.insert(second.devices.begin(), first.devices.begin(), first.devices.end());
    first.devices.clear();
  }
}

// Tables of one rank each that one command started, or that carry labels of one launcher.
bool BelongTogether(const NcclTestsTable& one, const NcclTestsTable& other) {
  if (one.command != other.command || !HasOneRank(one) || !HasOneRank(other)) return false;
  return one.label != other.label || (one.command > 0 && one.settings.processes > 1);
}

// Without a list of devices: every size stands there once for each process, one row behind the other. A sweep does not
// repeat a size before it goes on to the next one. The first size may be cut.
int32_t InterleavedRuns(const NcclTestsTable& table) {
  constexpr size_t kFewestSizes = 2;
  std::vector<std::pair<int64_t, int32_t>> sizes;
  for (const NcclTestsRow& row : table.rows) {
    if (sizes.empty() || sizes.back().first != row.bytes) sizes.emplace_back(row.bytes, 0);
    ++sizes.back().second;
    if (sizes.size() > 1 && row.bytes < sizes[sizes.size() - 2].first) return 0;
  }
  if (sizes.size() < kFewestSizes) return 0;
  const int32_t runs = sizes.back().second;
  for (size_t i = 1; i < sizes.size(); ++i)
    if (sizes[i].second != runs) return 0;
  if (runs < 2 || sizes.front().second > runs) return 0;
  // Two summaries say it for sure; else there must be more sizes.
  return table.summaries == runs || (table.summaries <= 1 && sizes.size() > kFewestSizes + 1) ? runs : 0;
}

}  // namespace

void MarkSeparateRuns(NcclTestsOutput& out) {
  JoinHeads(out);
  for (NcclTestsTable& table : out.tables) {
    std::set<Owner> owners = FirstRanksOf(table);
    for (const NcclTestsTable& other : out.tables)
      if (&other != &table && out.tables.size() <= 1000 && BelongTogether(table, other))
        owners.merge(FirstRanksOf(other));
    if (owners.empty()) table.separate_runs = InterleavedRuns(table);
    if (owners.size() > 1) table.separate_runs = static_cast<int32_t>(owners.size());
  }
}

}  // namespace tacet
