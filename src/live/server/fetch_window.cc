// SPDX-License-Identifier: Apache-2.0
#include "live/server/fetch_window.h"

#include <algorithm>

namespace tacet {
namespace {

constexpr uint64_t kBudgetBytes = uint64_t{128} << 20;
constexpr uint64_t kMostRecords = 8192, kFewestRecords = 16, kPatrolLeast = 256, kRecordBytes = 192;

}  // namespace

uint64_t PatrolRecords(uint64_t issued_since) {
  return issued_since >= kMostRecords / 2 ? kMostRecords : std::max(2 * issued_since, kPatrolLeast);
}

uint64_t RecordsToFetch(uint64_t wanted, size_t boxes) {
  const uint64_t share = kBudgetBytes / std::max<size_t>(1, boxes) / kRecordBytes;
  return std::clamp(std::min(wanted, share), kFewestRecords, kMostRecords);
}

uint64_t IssuedBy(const BoxState& box) {
  uint64_t issued = 0;
  for (const CommState& comm : box.comms) issued += comm.issued;
  return issued;
}

}  // namespace tacet
