// SPDX-License-Identifier: Apache-2.0
// Every table that NCCL printed and every choice that it logged in the recorded jobs, against the model.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "evidence/load.h"
#include "model/assembly/assembly.h"
#include "predict/nccl_job_model.h"

namespace tacet {
namespace {

struct Totals {
  int tables = 0, rows = 0, rows_equal = 0, forbidden = 0;
  uint64_t choices = 0, equal = 0, not_modelled = 0;
};

void Count(const std::filesystem::path& folder, Totals* totals) {
  // The logs alone: traces beside them say nothing here and take long.
  std::vector<std::string> logs;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".log" && entry.path().filename().string().starts_with("nccl_"))
      logs.push_back(entry.path().string());
  if (logs.empty()) return;
  auto loaded = LoadEvidence(logs, {});
  ASSERT_TRUE(loaded.ok()) << folder;
  const std::vector<Incident> jobs = Assemble(std::move(loaded->fragments));
  for (const Incident& job : jobs)
    for (const NcclGroupModel& model : ModelCommunicators(job, {})) {
      if (!model.told_by->tables.empty()) {
        const NcclTableCheck check = CheckTable(model, model.told_by->tables.front());
        ++totals->tables;
        totals->rows += check.rows;
        totals->rows_equal += check.rows_equal;
        totals->forbidden += check.forbidden_cells;
        for (const NcclCellDifference& cell : check.differences)
          ADD_FAILURE() << folder << " " << model.label << ": " << Name(cell.op) << " " << Name(cell.algorithm) << " "
                        << Name(cell.protocol) << " printed " << cell.printed.latency_us << "/"
                        << cell.printed.bandwidth_gbps << ", predicted " << cell.predicted.latency_us << "/"
                        << cell.predicted.bandwidth_gbps;
      }
      const NcclChoiceCheck check = CheckChoices(model);
      totals->choices += check.choices;
      totals->equal += check.equal;
      totals->not_modelled += check.not_modelled;
      for (const NcclChoiceDifference& one : check.differences)
        ADD_FAILURE() << folder << " " << model.label << ": " << Name(one.logged->op) << " of " << one.logged->bytes
                      << " bytes went by " << Name(one.logged->algorithm) << " " << Name(one.logged->protocol)
                      << (one.logged->grouped ? " (grouped)" : "");
    }
}

TEST(NcclRecordings, EveryPrintedRowAndEveryChoiceIsReproduced) {
  Totals totals;
  for (const auto& entry : std::filesystem::directory_iterator(TACET_SOURCE_DIR "/tests/corpus"))
    if (entry.is_directory()) Count(entry.path(), &totals);
  std::printf(
      "%d tables, %d of %d rows equal, %d cells forbidden by settings; %llu of %llu choices equal, %llu not modelled\n",
      totals.tables, totals.rows_equal, totals.rows, totals.forbidden, static_cast<unsigned long long>(totals.equal),
      static_cast<unsigned long long>(totals.choices), static_cast<unsigned long long>(totals.not_modelled));
  EXPECT_GT(totals.tables, 60);
  EXPECT_GT(totals.choices, 1000u);
}

}  // namespace
}  // namespace tacet
