// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_trace.h"

#include <algorithm>
#include <functional>

#include "base/text_scan.h"
#include "evidence/nccl_log/nccl_log_fields.h"
#include "evidence/nccl_log/nccl_log_import.h"

namespace tacet {
namespace {

constexpr size_t kMostKernels = 1024;  // in flight: channels times operations
constexpr size_t kCallsLookedThrough = 4096;

}  // namespace

bool ParseKernelLine(std::string_view message, NcclKernelLine* line) {
  *line = {};
  if (!TakeLiteral(message, "## [")) return false;
  const size_t time_end = message.find("] [");
  if (time_end == std::string_view::npos || time_end > 24) return false;
  message.remove_prefix(time_end + 3);
  if (!TakeNumber(message, &line->rank) || line->rank < 0 || !TakeLiteral(message, ":")) return false;
  const size_t end = message.find("] ");
  if (end == std::string_view::npos || end > 24) return false;
  line->channel = message.substr(0, end);
  FieldCursor cursor(message.substr(end + 2));
  if (!cursor.Hex(&line->op_count)) return false;
  std::string_view rest = cursor.rest();
  if (rest.starts_with('-')) rest.remove_prefix(std::min(rest.find(' '), rest.size()));  // 000000-000000
  line->starts = rest.starts_with(" KL");
  line->ends = rest.starts_with(" KE");
  return rest.starts_with(' ');
}

void NcclKernels::Take(const NcclKernelLine& line) {
  if (rank_ < 0) rank_ = line.rank;
  same_rank_ = same_rank_ && rank_ == line.rank;
  const uint64_t channel = std::hash<std::string_view>{}(line.channel) * 31 + static_cast<uint32_t>(line.rank);
  if (line.starts) {
    if (open_.size() == kMostKernels) open_.erase(open_.begin(), open_.begin() + kMostKernels / 2);
    open_.push_back({channel, line.op_count});
    return;
  }
  if (!line.ends) return;
  const auto same = std::find_if(open_.begin(), open_.end(), [&](const Kernel& kernel) {
    return kernel.channel == channel && kernel.op_count == line.op_count;
  });
  const auto oldest =
      std::find_if(open_.begin(), open_.end(), [&](const Kernel& kernel) { return kernel.channel == channel; });
  if (same != open_.end())
    open_.erase(same);
  else if (oldest != open_.end())
    open_.erase(oldest);
}

bool NcclKernels::Open(uint64_t* op_count) const {
  if (open_.empty()) return false;
  *op_count = open_.back().op_count;
  return true;
}

NcclLogImport::Use NcclLogImport::ReadKernelTrace(const NcclLogLine& line) {
  NcclKernelLine kernel;
  if (!ParseKernelLine(line.message, &kernel)) return Use::ignored;
  ProcessOf(line).kernels.Take(kernel);
  return Use::understood;
}

// The trace names the rank in the communicator, which a log of calls alone does not; it can be only that of the
// communicator whose calls are logged.
void NcclLogImport::SettleKernelTraces() {
  std::vector<uint32_t> comms(processes_.size(), 0);
  for (const Communicator& comm : comms_.all()) ++comms[comm.writer];
  for (Communicator& comm : comms_.all()) {
    const int32_t rank = processes_[comm.writer].kernels.rank();
    if (comms[comm.writer] != 1 || comm.init_seen || comm.rank >= 0 || rank < 0 || rank >= comm.nranks) continue;
    comm.rank = rank;
    comm.placed = true;
  }
  for (const Process& process : processes_) {
    uint64_t open = 0;
    if (!process.kernels.Open(&open) || process.speakers.size() != 1) continue;
    std::vector<Call>& calls = voices_[process.speakers.front()].calls;
    const size_t least = calls.size() > kCallsLookedThrough ? calls.size() - kCallsLookedThrough : 0;
    for (size_t i = calls.size(); i-- > least;)
      if (calls[i].record == static_cast<uint32_t>(open)) {
        calls[i].state = CallState::started;
        break;
      }
  }
}

}  // namespace tacet
