// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_tests/nccl_tests_separate.h"

#include <algorithm>
#include <set>
#include <utility>

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

bool IsTwin(const NcclTestsRow& one, const NcclTestsRow& other) {
  return one.bytes == other.bytes && one.type == other.type && one.redop == other.redop && one.root == other.root;
}

// Where no list of devices is left: two runs at once print every size twice, one behind the other, and two summaries.
// A single size that is repeated is one run that was told to (-N).
bool HasRowsOfTwo(const NcclTestsTable& table, const NcclTestsTable* next) {
  if (!table.devices.empty() || table.rows.empty()) return false;
  size_t sizes = 0;
  for (size_t i = 0; i < table.rows.size(); ++sizes) {
    const bool last = i + 1 == table.rows.size();
    // The second run's last row stands behind the summary of the first.
    const bool behind = last && next != nullptr && next->devices.empty() && next->rows.size() == 1 &&
                        next->label == table.label && IsTwin(table.rows[i], next->rows[0]);
    if (!behind && (last || !IsTwin(table.rows[i], table.rows[i + 1]))) return false;
    i += behind ? 1 : 2;
    if (i < table.rows.size() && IsTwin(table.rows[i], table.rows[i - 1])) return false;
  }
  return sizes > 1;
}

}  // namespace

void MarkSeparateRuns(NcclTestsOutput& out) {
  JoinHeads(out);
  for (NcclTestsTable& table : out.tables) {
    std::set<Owner> owners = FirstRanksOf(table);
    for (const NcclTestsTable& other : out.tables)
      if (&other != &table && out.tables.size() <= 1000 && BelongTogether(table, other))
        owners.merge(FirstRanksOf(other));
    if (owners.size() > 1) table.separate_runs = static_cast<int32_t>(owners.size());
  }
  for (size_t i = 0; i < out.tables.size(); ++i)
    if (HasRowsOfTwo(out.tables[i], i + 1 < out.tables.size() ? &out.tables[i + 1] : nullptr))
      out.tables[i].separate_runs = 2;
}

}  // namespace tacet
