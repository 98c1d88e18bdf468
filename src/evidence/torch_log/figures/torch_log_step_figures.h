// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log_outline.h"
#include "evidence/torch_log/figures/torch_log_columns.h"
#include "evidence/torch_log/figures/torch_log_figure_names.h"

namespace tacet {

// Takes out of a job's lines what each rank prints of its steps, in whatever style: how the time of a step is shared
// out, losses and norms, checksums of the parameters. Lines come one by one, in their order.
class FigureReader {
 public:
  enum class Line : uint8_t { none, table, figures };
  // `rank`: of whoever printed the line; -1 where nothing says so.
  Line Read(std::string_view text, int32_t rank, const SourceRef& source, LogOutline& out);
  // Lines that look like the figures of a training: a step beside a loss or a part of a step.
  size_t lines_of_training() const { return training_lines_; }
  // Rows of a table with a column of steps and one of losses.
  size_t rows_of_training() const { return training_rows_; }

 private:
  struct Parts;
  void ReadPlace(std::string_view text, Parts& parts);
  void ReadTitle(std::string_view text);
  bool AddShare(Parts& parts, const SourceRef& source, LogOutline& out);
  void AddValues(Parts& parts, const SourceRef& source, LogOutline& out);
  void AddSeries(Parts& parts, const SourceRef& source, LogOutline& out);
  void AddDecimals(const Parts& parts, bool of_table, const SourceRef& source, LogOutline& out);
  int64_t PlaceOf(int32_t rank);
  bool ReadLists(Parts& parts, const SourceRef& source, LogOutline& out);
  bool ReadTitled(const Parts& parts, const SourceRef& source, LogOutline& out);

  bool ReadBlock(const Parts& parts, bool of_times, const SourceRef& source, LogOutline& out);

  ColumnReader columns_;
  std::vector<NamedNumber> numbers_;
  FigureNames names_;
  std::map<std::pair<int32_t, std::string>, size_t> series_of_;
  std::map<int32_t, int64_t> counted_;        // lines without the number of a step, of each rank
  std::map<int32_t, int64_t> decimal_lines_;  // of those, with decimals
  int64_t told_step_ = -1;                    // by the last line that tells one
  std::set<int32_t> told_ranks_;              // that have used it
  double usual_unit_ = 1;                     // of times whose unit a line above tells: "times across ranks (ms):"
  std::string title_;                         // "forward-compute:", for rows that name only a rank
  struct TitledRows {
    size_t at = 0;   // in LogOutline::steps
    StepShare told;  // the parts as they are told
  };
  std::map<int32_t, TitledRows> titled_;  // of each rank
  StepShare block_;                       // whose lines follow: "--- rank 2 step 10"
  bool in_block_ = false, block_kept_ = false;
  size_t training_lines_ = 0, training_rows_ = 0;
};

}  // namespace tacet
