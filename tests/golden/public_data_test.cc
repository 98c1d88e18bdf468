// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "recorded_files.h"

// Recordings of others, which are not part of the repository: they are looked for beside it.

namespace tacet {
namespace {

namespace fs = std::filesystem;

struct FaultInjection {
  std::string folder;
  std::vector<int> guilty;
};

void PrintTo(const FaultInjection& fault, std::ostream* out) { *out << fault.folder; }

class InjectedFault : public testing::TestWithParam<FaultInjection> {
 protected:
  void SetUp() override {
    const fs::path folder = fs::path(TACET_SOURCE_DIR).parent_path() / "shared" / "public" / "nvrx" / GetParam().folder;
    if (!fs::is_directory(folder)) GTEST_SKIP() << folder << " is not here";
    dumps_ = ReadRecording(folder, [](std::string_view path) { return path.starts_with("_dump_"); });
    ASSERT_EQ(dumps_.size(), 16u);
  }

  std::vector<int> BlamedWithout(const std::vector<int>& silent) const {
    const Report report = RecordingReader(dumps_).DiagnoseKept([&](std::string_view path) {
      return std::none_of(silent.begin(), silent.end(),
                          [&](int rank) { return path == "_dump_" + std::to_string(rank); });
    });
    EXPECT_NE(report.verdict.status, Status::healthy);
    return report.verdict.ranks;
  }

  std::vector<RecordedFile> dumps_;
};

TEST_P(InjectedFault, BlamesExactlyTheGuilty) { EXPECT_EQ(BlamedWithout({}), GetParam().guilty); }

TEST_P(InjectedFault, BlamesTheSameWithoutTheDumpOfEitherOrBoth) {
  const std::vector<int>& guilty = GetParam().guilty;
  for (const int rank : guilty) EXPECT_EQ(BlamedWithout({rank}), guilty) << "without the dump of rank " << rank;
  EXPECT_EQ(BlamedWithout(guilty), guilty) << "without both dumps";
}

INSTANTIATE_TEST_SUITE_P(Nvrx, InjectedFault,
                         testing::Values(FaultInjection{"gpu_error_1st", {12, 14}},
                                         FaultInjection{"lock_gil_1st", {9, 14}}),
                         [](const auto& info) { return info.param.folder; });

}  // namespace
}  // namespace tacet
