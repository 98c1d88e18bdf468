// SPDX-License-Identifier: Apache-2.0
#include "report/rank_words.h"

namespace tacet {

std::string_view RecordWords(CallSource source) {
  switch (source) {
    case CallSource::flight_recorder: return "flight record";
    case CallSource::nccl_log: return "NCCL log";
    case CallSource::inspector: return "Inspector";
    case CallSource::black_box: return "black box";
    case CallSource::trace: return "trace";
  }
  return "another record";
}

std::string EndWords(const Event& event) {
  const auto& end = event.As<ProcessEnd>();
  if (event.Means(Meaning::timed_out)) return "reported as timed out";
  if (end.how == "MPI_Abort") return "called MPI_Abort";
  // A launcher says that it ended, and no code.
  if (end.code >= 0 && !end.how.empty()) return "ended";
  // torchrun lists those that it ended behind the first failure.
  const bool cleaned_up = event.kind == EventKind::process_killed || end.first_failure == false;
  if (cleaned_up && end.how == "SIGTERM") return std::string(kEndedByLauncher);
  if (end.code < 0) return "ended by " + (end.how.empty() ? "signal " + std::to_string(-end.code) : end.how);
  return "exited with code " + std::to_string(end.code);
}

// "an HCCL error": a table needs no article.
std::string BareWords(const std::string& words) {
  return words.starts_with("an ") ? words.substr(3) : words.starts_with("a ") ? words.substr(2) : words;
}

std::string ErrorWords(const Event* error) {
  if (error && error->kind == EventKind::exception) return BareWords(error->As<Raised>().type);
  if (error && error->kind == EventKind::nccl_error) {
    if (error->Means(Meaning::reported)) return BareWords(error->As<NcclError>().result);
    return error->maker == GpuMaker::amd ? "RCCL error" : "NCCL error";
  }
  if (error && error->kind == EventKind::cuda_error) return "CUDA error";
  if (error && error->kind == EventKind::abort_signal) return "aborted";
  if (error && (error->kind == EventKind::connection_lost || error->kind == EventKind::store_lost))
    return "lost a connection";
  if (error && error->kind == EventKind::store_wait_timeout) return "timed out";
  if (error && error->kind == EventKind::rendezvous_incomplete) return "setup timed out";
  if (error && error->kind == EventKind::dump_signal)
    return error->peer == error->rank ? "timed out" : "was asked to dump flight records";
  return "reports an error";
}

}  // namespace tacet
