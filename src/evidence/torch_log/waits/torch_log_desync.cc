// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/waits/torch_log_desync.h"

#include <vector>

#include "base/text_scan.h"

namespace tacet {
namespace {

// "[1, 2] joined ..." or "ranks [0,3] are ..."
std::vector<int32_t> FindRankList(std::string_view text) {
  std::vector<int32_t> ranks;
  auto rest = After(text, "[");
  int32_t rank = 0;
  while (rest && ranks.size() < 100'000 && TakeNumber(*rest, &rank)) {
    ranks.push_back(rank);
    if (!TakeLiteral(*rest, ",")) break;
    SkipBlanks(*rest);
  }
  return ranks;
}

}  // namespace

void DesyncReader::ReadCulprits(const LogLine& line) {
  const bool absent = Contains(line.text, "didn't join") || Contains(line.text, "never joined");
  if (have_absent_ && !absent) return;
  const std::vector<int32_t> ranks = FindRankList(line.text);
  if (absent && !have_absent_) report_->ranks.clear();
  // "[7] finished collective #182, but didn't join collective #183", where the others have issued calls up to #315:
  // they all wait for the first that somebody did not join, and what kind it is the report does not say.
  if (const auto missed = IntAfter(line.text, "didn't join collective #");
      missed && *missed > 0 && *missed < report_->seq) {
    report_->seq = *missed;
    report_->op.clear();
  }
  have_absent_ = have_absent_ || absent;
  if (report_->ranks.empty() && !ranks.empty()) report_->source = line.source;  // the line that names them is cited
  if (report_->ranks.size() + ranks.size() <= 100'000)
    report_->ranks.insert(report_->ranks.end(), ranks.begin(), ranks.end());
}

//      #210 started ranks:
//        [0,1,3] started ALLREDUCE
// Who has started the operation that timed out, or one behind it, waits in it.
void DesyncReader::ReadSnapshot(std::string_view text) {
  if (text.starts_with('#')) snapshot_seq_ = IntAfter(text, "#").value_or(-1);
  if (!text.starts_with('[') || !Contains(text, "] started ") || snapshot_seq_ < report_->seq) return;
  const std::vector<int32_t> ranks = FindRankList(text);
  if (report_->waiting.size() + ranks.size() <= 100'000)
    report_->waiting.insert(report_->waiting.end(), ranks.begin(), ranks.end());
}

// 	 - [1] Timeout at collective: ALLREDUCE, #3
// 	 - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:
// 	   - [2] joined but didn't finish collective #3 (count from 1)
// 	     [0] finished collective #2, but didn't join collective #3 (count from 1)
// 	 - To our best knowledge, ranks [0,3] are the lagging ranks that caused this timeout. They never joined any
// collectives
// 	 - Snapshot of ranks' latest states:
LineUse DesyncReader::Read(const LogLine& line, RecordList& out) {
  if (line.has(Keyword::desync)) {
    report_ = &out.Add(TorchLogKind::desync_report, line);
    part_ = Part::head;
    have_absent_ = false;
    snapshot_seq_ = -1;
    if (const auto op = After(line.text, "Timeout at collective: "))
      report_->op = Capped(op->substr(0, op->find(',')), 60);
    report_->seq = IntAfter(line.text, ", #").value_or(-1);
    report_->text = Capped(Trim(line.text));
    return LineUse::understood;
  }
  if (report_ == nullptr) return LineUse::not_understood;
  const std::string_view trimmed = Trim(line.text);
  const bool belongs =
      line.text.starts_with('\t') || trimmed.starts_with("- ") || trimmed.starts_with('#') || trimmed.starts_with('[');
  if (line.severity != 0 || !belongs) {
    report_ = nullptr;
    return LineUse::not_understood;
  }
  if (trimmed.starts_with("- Snapshot")) part_ = Part::snapshot;
  if (part_ == Part::snapshot) ReadSnapshot(trimmed);
  if (part_ == Part::culprits || Contains(trimmed, "lagging ranks that caused")) ReadCulprits(line);
  if (Contains(trimmed, "caused the desync are:")) part_ = Part::culprits;
  AppendCapped(report_->text, "\n");
  AppendCapped(report_->text, trimmed);
  return LineUse::understood;
}

}  // namespace tacet
