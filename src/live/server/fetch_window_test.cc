// SPDX-License-Identifier: Apache-2.0
#include "live/server/fetch_window.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(FetchWindow, PatrolsOverlap) {
  for (const uint64_t issued : {0u, 1u, 200u, 1000u, 4000u}) EXPECT_GT(PatrolRecords(issued), issued) << issued;
  EXPECT_EQ(PatrolRecords(1000), 2000u);
}

TEST(FetchWindow, ABusyJobCostsNoMoreThanABoxHolds) {
  EXPECT_EQ(PatrolRecords(UINT64_MAX), 8192u);
  EXPECT_EQ(RecordsToFetch(UINT64_MAX, 0), 8192u);
}

TEST(FetchWindow, LargeJobsGetFewerRecordsABox) {
  EXPECT_EQ(RecordsToFetch(1024, 64), 1024u);
  EXPECT_LE(RecordsToFetch(8192, 16384) * 16384 * 192, uint64_t{128} << 20);
  EXPECT_EQ(RecordsToFetch(1024, 1u << 20), 16u);
}

}  // namespace
}  // namespace tacet
