// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_tensorflow.h"

#include <algorithm>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr std::string_view kEndOfData = "end of data";
constexpr std::string_view kCancelledOthers = "cancelled others";  // TorchLogRecord::file

}  // namespace

// base_collective_executor.cc:216] BaseCollectiveExecutor::StartAbort Out of range: End of sequence
// local_rendezvous.cc:404] Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence
// base_collective_executor.cc:216] BaseCollectiveExecutor::StartAbort Cancelled: [_Derived_]Cancelled
LineUse ReadEndOfData(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (Contains(text, "End of sequence") && ContainsAny(text, {"Out of range: ", "OUT_OF_RANGE: "})) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::exception, line, kEndOfData);
    record->repeats = 1;  // each replica tells it
    if (!is_new) return LineUse::understood;
    record->subject = "the end of its data";
    record->text = "End of sequence";
    record->object = kEndOfData;
    record->value2 = out.highest_step();
    return LineUse::understood;
  }
  if (Contains(text, "CollectiveExecutor::StartAbort Cancelled"))
    if (TorchLogRecord* end = out.Said(TorchLogKind::exception, line, kEndOfData)) {
      end->file = kCancelledOthers;
      return LineUse::understood;
    }
  return LineUse::not_understood;
}

void DropUsualEndsOfData(TorchLog& log) {
  std::erase_if(log.records, [](const TorchLogRecord& record) {
    return record.kind == TorchLogKind::exception && record.object == kEndOfData && record.file != kCancelledOthers;
  });
  for (TorchLogRecord& record : log.records)
    if (record.object == kEndOfData) record.file.clear();
}

}  // namespace tacet
