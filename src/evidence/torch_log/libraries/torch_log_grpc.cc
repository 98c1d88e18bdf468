// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_grpc.h"

#include <string>
#include <string_view>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr std::string_view kTrailer = "GRPC error information from remote target ";

// "/job:worker/replica:0/task:0 while calling ...", "/job:ps/replica:0/task:0/device:CPU:0:" -> the task alone
std::string TaskOf(std::string_view target) {
  if (!target.starts_with("/job:")) return "";
  const size_t task = target.find("/task:");
  if (task == std::string_view::npos) return "";
  return Capped(target.substr(0, target.find_first_of(":/ ", task + 6)), 100);
}

// Additional GRPC error information from remote target /job:worker/replica:0/task:0 while calling /tensorflow.X/Y:
LineUse ReadTrailer(const LogLine& line, std::string_view target, RecordList& out) {
  const std::string task = TaskOf(target);
  // ... target coordination_service while calling /xla.coordination.CoordinationService/Heartbeat: the process had
  // joined before, and the coordinator is gone.
  if (ContainsAny(target, {"CoordinationService/Heartbeat", "CoordinationService/PollForError"}))
    if (TorchLogRecord* lost = out.Said(TorchLogKind::store_unreachable, line, "coordination")) {
      lost->kind = TorchLogKind::connection_lost;
      lost->object = kCoordinator;
      lost->subject.clear();
    }
  if (!task.empty()) {
    if (TorchLogRecord* lost = out.Said(TorchLogKind::connection_lost, line, "tensorflow"))
      if (lost->subject.empty()) lost->subject = task;
    if (TorchLogRecord* wait = out.Said(TorchLogKind::rendezvous_incomplete, line, "tensorflow")) wait->object = task;
    if (TorchLogRecord* failed = out.Said(TorchLogKind::connect_failed, line, "grpc"))
      if (failed->object.empty()) failed->object = task;
  }
  return LineUse::understood;
}

// :{"created":"@1706768248.511","description":"Failed to pick subchannel",...}     below the trailer
// :UNKNOWN:Error received from peer  {grpc_message:"Socket closed", grpc_status:14}
bool IsStatusBelow(std::string_view text) {
  text = Trim(text);
  return text.starts_with(":{\"created\":") || text.starts_with(":UNKNOWN:Error received from peer");
}

}  // namespace

LineUse ReadGrpc(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (const auto target = After(text, kTrailer)) return ReadTrailer(line, *target, out);
  if (IsStatusBelow(text)) return LineUse::understood;
  // ERROR:tensorflow:Remote function on worker /job:worker/replica:0/task:1 failed with UnavailableError():failed to
  // connect to all addresses. JAX says "UNAVAILABLE: " before it, of its coordinator.
  // Ray's head node asks a node whether it is well: it is the node that does not answer, see torch_log_known_line.h.
  if (Contains(text, "Health check failed for node ")) return LineUse::understood;
  if (!Contains(text, "failed to connect to all addresses") || ContainsAny(text, {"UNAVAILABLE:", "StartAbort"}))
    return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::connect_failed, line, "grpc");
  record->repeats = 1;  // it is tried again and again
  if (is_new) record->text = Capped(Trim(text), 600);
  return LineUse::understood;
}

}  // namespace tacet
