// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_xla.h"

#include <algorithm>
#include <string>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr int64_t kMostWaitSeconds = 1'000'000;

// "initialize clique for rank 6; clique=devices=[0,1,2,3]; stream=0; run_id=388" is what every thread calls a little
// differently: "initialize clique".
std::string_view OperationOf(std::string_view name) {
  name = name.substr(0, name.find(';'));
  return Trim(name.substr(0, name.find(" for rank ")));
}

int64_t DevicesOf(std::string_view name) {
  for (const std::string_view key : {"devices=[", "global_devices=["})
    if (const auto list = After(name, key)) {
      const size_t close = list->find(']');
      if (close == std::string_view::npos || close == 0) continue;
      return 1 + std::count(list->begin(), list->begin() + static_cast<std::ptrdiff_t>(close), ',');
    }
  return -1;
}

// "... for 10 seconds and may be stuck", "for 5000ms for and may be stuck", "for 10s and may be stuck"
int64_t SecondsBefore(std::string_view head) {
  const size_t at = head.rfind(" for ", head.size() > 8 ? head.size() - 8 : 0);
  for (size_t from = at; from != std::string_view::npos;
       from = from == 0 ? std::string_view::npos : head.rfind(" for ", from - 1)) {
    std::string_view digits = head.substr(from + 5);
    int64_t number = 0;
    if (!TakeNumber(digits, &number) || number < 0 || number > kMostWaitSeconds * 1000) continue;
    if (digits.starts_with("ms")) return number / 1000;
    if (digits.starts_with(" seconds") || digits.starts_with("s")) return std::min(number, kMostWaitSeconds);
  }
  return -1;
}

// "Expected 8 threads to join the rendezvous, but only 5 of them arrived on time."
void TakeJoinCounts(std::string_view text, TorchLogRecord& record) {
  record.value2 = IntAfter(text, "Expected ").value_or(-1);
  if (Contains(text, ", but only ")) record.count = IntAfter(text, ", but only ").value_or(-1);
  if (const auto all = IntAfter(text, "All "); all && Contains(text, " threads joined the rendezvous")) {
    record.value2 = record.count = *all;
    record.object = "all joined";
  }
  if (record.value2 < 0) record.value2 = IntAfter(text, "num_local_participants=").value_or(-1);
}

LineUse AddXlaWait(const LogLine& line, std::string_view message, bool gave_up, RecordList& out) {
  const auto [record, is_new] = out.AddOnce(TorchLogKind::xla_wait, line, "xla");
  // All that were said before have gone on: this is another wait.
  const bool another = !is_new && record->line_before + 1 >= record->repeats;
  if (!is_new && !another && !gave_up) return LineUse::understood;
  if (another) record->repeats = 1, record->line_before = 0;
  if (gave_up) record->repeats = 1;
  record->source = line.source;
  record->time = line.time;
  record->text = Capped(message);
  record->value = record->value2 = record->count = record->count_out = -1;
  record->object.clear();
  std::string_view name;
  if (const auto quoted = After(message, "`"); quoted && Contains(*quoted, "`"))
    name = quoted->substr(0, quoted->find('`'));
  record->subject = Capped(OperationOf(name), 100);
  record->count_out = DevicesOf(name.empty() ? message : name);
  TakeJoinCounts(message, *record);
  if (gave_up) {
    record->object = "gave up";
    const auto limit = After(message, name.empty() ? "timeout of " : "` of ");
    std::string_view digits = limit.value_or(std::string_view());
    if (int64_t seconds = -1; TakeNumber(digits, &seconds) && seconds >= 0 && seconds < kMostWaitSeconds)
      record->value = seconds;
  } else {
    record->value = SecondsBefore(message.substr(0, message.find("and may be stuck")));
  }
  return LineUse::understood;
}

// "4m12.3s", "1h2m3s", "12.7s"
int64_t DurationSeconds(std::string_view text) {
  int64_t seconds = 0;
  bool any = false;
  for (double number = 0; TakeDouble(text, &number) && number >= 0 && number < 1e6;) {
    const int64_t unit = TakeLiteral(text, "h")   ? 3600
                         : text.starts_with("ms") ? 0
                         : TakeLiteral(text, "m") ? 60
                         : TakeLiteral(text, "s") ? 1
                                                  : 0;
    if (unit == 0) break;
    seconds += static_cast<int64_t>(number * static_cast<double>(unit));
    any = true;
  }
  return any ? std::min(seconds, kMostWaitSeconds) : -1;
}

// slow_operation_alarm.cc:133] The operation took 4m12.3s
// [Compiling module jit_train_step] Very slow compile? If you want to file a bug, run with envvar ...
LineUse ReadSlowCompile(const LogLine& line, RecordList& out) {
  const bool alarm = Contains(line.text, "slow_operation_alarm.cc:");
  const size_t mark = line.text.find("] Very slow compile?");
  if (!alarm && mark == std::string_view::npos) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::xla_wait, line, "compile");
  record->object = "compiling";
  record->repeats = 1;  // XLA tells of each several times
  if (is_new) record->text = Capped(line.text, 300);
  if (const auto took = After(line.text, "The operation took "))
    record->value = std::max(record->value, DurationSeconds(*took));
  if (const size_t open = line.text.rfind('[', mark);
      mark != std::string_view::npos && open != std::string_view::npos) {
    std::string_view module = line.text.substr(open + 1, mark - open - 1);
    TakeLiteral(module, "Compiling module ");
    if (record->subject.empty()) record->subject = Capped(module, 100);
    record->text = Capped(line.text.substr(open, line.text.find("****", open) - open), 300);
  }
  return LineUse::understood;
}

}  // namespace

// ... INTERNAL: Core halted unexpectedly: INTERNAL: Accelerator device halted prematurely, perhaps due to an on-device
// check-failure.
// ... synchronous_driver.cc:820] [/dev/accel0 tpu1013:pe1:0] !!!! FATAL ERROR !!!! for [/dev/accel0 tpu1013:pe1:0] ...
// ... tpunetd_client.cc:311] Detected failure SLICE_FAILURE_CHIP_DRIVER_ERROR in session e6c8...; Start failure ...
LineUse ReadTpuFault(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const std::string_view words = Contains(text, "ore halted unexpectedly")               ? "core halted unexpectedly"
                                 : Contains(text, "device halted prematurely")           ? "device halted prematurely"
                                 : Contains(text, "FATAL ERROR !!!! for [/dev/accel")    ? "fatal device error"
                                 : Contains(text, "Detected failure SLICE_FAILURE_CHIP") ? "chip error"
                                                                                         : "";
  if (words.empty()) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::cuda_error, line, "tpu");
  record->repeats = 1;  // every chip of a host and every worker of a slice says it
  if (!is_new) return LineUse::understood;
  record->subject = words;
  record->text = Capped(Trim(text), 600);
  record->value2 = out.highest_step();
  return LineUse::understood;
}

// rendezvous.cc:38] This thread has been waiting for `initialize clique for rank 6; ...` for 10 seconds and may be
//   stuck. Expected 8 threads to join the rendezvous, but not all of them arrived on time.
// collective_ops_utils.h:306] This thread has been waiting for 5000ms for and may be stuck: participant ...
// rendezvous.cc:57] Termination timeout for `...` of 40 seconds exceeded. Exiting to ensure a consistent program state.
// rendezvous.cc:140] [id=3] This thread is unstuck waiting for `...` after 13s. ...
// rendezvous.cc:50] Thread is unstuck! Warning above was a false-positive. Perhaps the timeout is too short.
LineUse ReadXlaWait(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (const size_t at = text.find("This thread has been waiting for ");
      at != std::string_view::npos && Contains(text, "and may be stuck"))
    return AddXlaWait(line, text.substr(at), false, out);
  if (const size_t at = text.find("Termination timeout ");
      at != std::string_view::npos && Contains(text, " exceeded. Exiting to ensure a consistent program state"))
    return AddXlaWait(line, text.substr(at), true, out);
  if (ContainsAny(text, {"Thread is unstuck!", "This thread is unstuck waiting for "})) {
    // Without the warning above it there is nothing to take back.
    if (TorchLogRecord* wait = out.Said(TorchLogKind::xla_wait, line, "xla")) {
      ++wait->line_before;
      wait->reason_line = line.source.line;
      const bool timed = wait->time.wall_ns != LogMoment::kNone && line.time.wall_ns != LogMoment::kNone;
      if (timed && wait->value >= 0 && wait->repeats == 1)
        wait->left_s = wait->value + (line.time.wall_ns - wait->time.wall_ns) / 1'000'000'000;
    }
    return LineUse::understood;
  }
  return ReadSlowCompile(line, out);
}

}  // namespace tacet
