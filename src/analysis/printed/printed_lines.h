// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "model/incident.h"

namespace tacet {

// The lines that the program itself printed, by the rank that printed them; oldest first, and without the ranks whose
// output is not here. Read once for a job: all that compares ranks by their lines looks here.
struct PrintedLines {
  using Lines = std::vector<const OwnLine*>;
  std::vector<Rank> ranks;  // of the job, in order
  std::map<Rank, Lines> first;
  std::map<Rank, Lines> last;
  std::map<Rank, Lines> barriers;  // PyTorch's warnings by which a rank calls barrier()
  bool cut_end = false;            // the file of one rank ends within a line: the end of it was not written

  // Its last lines; empty where its output is not here.
  const Lines& LastOf(Rank rank) const;
};

PrintedLines ReadPrintedLines(const Incident& incident);

// The line that the program printed on this rank behind the event, in the same file: it went on. Null where there is
// none.
const OwnLine* LineBehind(const PrintedLines& printed, Rank rank, const Event& event);

}  // namespace tacet
