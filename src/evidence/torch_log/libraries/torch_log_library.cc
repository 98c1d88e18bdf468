// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_library.h"

#include <algorithm>
#include <string>

#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_told_causes.h"
#include "evidence/torch_log/libraries/torch_log_library_table.h"
#include "model/events/device_error.h"
#include "model/events/event_detail.h"
#include "model/events/nccl_warnings.h"

namespace tacet {
namespace {

const LibraryLine* FindLibraryLine(std::string_view text) {
  for (const LibraryLine& row : kLibraryLines)
    if (Contains(text, row.mark) && (row.part.empty() || Contains(text, row.part))) return &row;
  return nullptr;
}

// The system's word for why a peer cannot be reached.
std::string_view WhyUnreachable(std::string_view text) {
  for (const std::string_view word :
       {"Connection refused", "No route to host", "Connection timed out", "Network is unreachable"})
    if (Contains(text, word)) return word;
  return {};
}

// "dest_addr=10.0.3.7:35892", "unable to connect from \"cn11\" to \"cn17\" (Connection refused)"
std::string_view AddressOf(std::string_view text) {
  if (const auto address = After(text, "dest_addr=")) return address->substr(0, address->find_first_of(") ,"));
  if (const auto host = After(text, "\" to \"")) return host->substr(0, host->find('"'));
  return {};
}

// mpi_rank_2: MVAPICH's head of a line, "[cn0411:mpi_rank_2][handle_cqe] ..."
int32_t RankOfHead(std::string_view text) { return IntAfter<int32_t>(text.substr(0, 80), ":mpi_rank_").value_or(-1); }

// The words behind the first that says that something failed: "cuMemcpyAsync(...) failed: an illegal memory access was
// encountered", "aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation ..."
std::string_view DeviceWords(std::string_view text) {
  if (const auto status = After(text, "aborting with error : HSA_STATUS_ERROR_")) {
    const auto words = After(*status, ": ");
    return Trim(words ? words->substr(0, words->find_first_of(".")) : *status);
  }
  const auto words = After(text, ") failed: ");
  return words ? Trim(*words) : std::string_view();
}

RdmaFault FaultOf(std::string_view text, const LibraryLine& row) {
  constexpr int64_t kBadAddress = 14, kNoDevice = 19;
  if (row.number == kBadAddress || Contains(text, "Bad address")) return RdmaFault::gpu_memory;
  if (row.number == kNoDevice) return RdmaFault::no_device;
  if (Contains(text, "Cannot allocate memory")) return RdmaFault::locked_memory;
  return row.what == "queue" ? RdmaFault::queues : RdmaFault::unknown;
}

TorchLogKind KindOf(LibraryTell tell) {
  switch (tell) {
    case LibraryTell::warning:
    case LibraryTell::completion: return TorchLogKind::nccl_warning;
    case LibraryTell::lost: return TorchLogKind::connection_lost;
    case LibraryTell::unreachable: return TorchLogKind::connect_failed;
    case LibraryTell::shm_full: return TorchLogKind::shared_memory_full;
    case LibraryTell::gpu_memory:
    case LibraryTell::device: return TorchLogKind::cuda_error;
    case LibraryTell::peer_access: return TorchLogKind::peer_access_failed;
    case LibraryTell::rdma: return TorchLogKind::rdma_failed;
    case LibraryTell::waited: return TorchLogKind::watchdog_timeout;
    case LibraryTell::failed:
    case LibraryTell::harmless: break;
  }
  return TorchLogKind::nccl_error;
}

void FillWarning(const LibraryLine& row, std::string_view text, TorchLogRecord& record) {
  record.subject = row.tell == LibraryTell::completion ? "ib-completion-error" : std::string(row.what);
  const NcclWarning* known = FindNcclWarning(record.subject);
  if (known == nullptr) return;
  NcclWarningNumbers numbers{row.number, -1};
  if (row.tell == LibraryTell::completion && row.number < 0)
    numbers.value = IntAfter(text, "completion with error ").value_or(-1);
  record.value = numbers.value;
  record.value2 = static_cast<int64_t>(RoleOf(*known, numbers, false));
}

// Without the place in the library's source before the words: ".../host/team/team.cpp:nvshmemi_team_init:410:
// Requested" and "[mpiexec@cn11] check_exit_codes (.../hydra_demux_poll.c:117): unable to run"
std::string_view WithoutPlace(std::string_view text) {
  text = Trim(text);
  if (const size_t close = text.find("): "); close != std::string_view::npos && Contains(text.substr(0, close), ".c:"))
    return Trim(text.substr(close + 3));
  const size_t colon = text.find(": ");
  if (colon != std::string_view::npos && colon > 3 && IsDigit(text[colon - 1]) &&
      text.substr(0, colon).find(' ') == std::string_view::npos)
    return Trim(text.substr(colon + 2));
  return text;
}

void Fill(const LibraryLine& row, const LogLine& line, TorchLogRecord& record, RecordList& out) {
  const std::string_view text = line.text;
  switch (row.tell) {
    case LibraryTell::warning:
    case LibraryTell::completion: return FillWarning(row, text, record);
    case LibraryTell::unreachable: {
      const std::string_view word = WhyUnreachable(text);
      record.object = Capped(AddressOf(text), 200);
      record.subject = row.what.empty() ? word : row.what;
      if (const auto rank = IntAfter<int32_t>(text, "Communication error with rank "); rank && *rank >= 0)
        record.peer = *rank;
      return;
    }
    case LibraryTell::shm_full:
      record.object = "/dev/shm";
      record.value = 0;
      return;
    case LibraryTell::gpu_memory:
      record.subject = "out of memory";
      record.value2 = out.highest_step();
      return;
    case LibraryTell::device:
      record.subject = Capped(row.what.empty() ? DeviceWords(text) : row.what, 200);
      record.value2 = out.highest_step();
      return;
    case LibraryTell::peer_access: record.subject = row.what; return;
    case LibraryTell::rdma: record.value = static_cast<int64_t>(FaultOf(text, row)); return;
    case LibraryTell::waited:
      if (const auto seconds = IntAfter(text, "timeout (")) record.value = *seconds * 1000;
      return;
    case LibraryTell::failed:
      record.value = 2;
      record.subject = row.what;
      record.object = Capped(WithoutPlace(text), 300);
      record.cure = row.cure;
      return;
    case LibraryTell::lost:
    case LibraryTell::harmless: return;
  }
}

}  // namespace

LineUse ReadLibraryLine(const LogLine& line, RecordList& out) {
  const LibraryLine* row = FindLibraryLine(line.text);
  if (row == nullptr) return LineUse::not_understood;
  if (row->tell == LibraryTell::harmless) return LineUse::understood;
  // "UCX  ERROR cuMemGetAddressRange(...) failed: invalid device context" is no word of the device.
  if (row->tell == LibraryTell::device && row->what.empty() && Contains(line.text, "UCX") &&
      !IsOfTheDevice(DeviceWords(line.text)))
    return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(KindOf(row->tell), line, row->mark);
  record->repeats = 1;  // every thread and rank says it
  if (!is_new) return LineUse::understood;
  record->text = Capped(Trim(line.text), 600);
  TakeUcxOwner(line.text, *record);
  if (const int32_t rank = RankOfHead(line.text); rank >= 0) record->rank = rank;
  Fill(*row, line, *record, out);
  return LineUse::understood;
}

bool PassesOnLibraryWords(std::string_view text) {
  const LibraryLine* row = FindLibraryLine(text);
  return row != nullptr && row->tell != LibraryTell::harmless;
}

void DropTrapsOfWaits(TorchLog& log) {
  uint32_t first = 0;
  for (const TorchLogRecord& record : log.records)
    if (record.kind == TorchLogKind::watchdog_timeout && Contains(record.text, "DeepEP") &&
        (first == 0 || record.source.line < first))
      first = record.source.line;
  if (first == 0) return;
  std::erase_if(log.records, [&](const TorchLogRecord& record) {
    const bool trap =
        (record.kind == TorchLogKind::cuda_error && Contains(record.subject, "unspecified launch failure")) ||
        (record.kind == TorchLogKind::exception && Contains(record.text, "unspecified launch failure"));
    return trap && record.source.line > first;
  });
}

}  // namespace tacet
