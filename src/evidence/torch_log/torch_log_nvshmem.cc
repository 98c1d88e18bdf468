// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_nvshmem.h"

#include <string>
#include <string_view>

#include "base/text_scan.h"
#include "model/event_detail.h"
#include "model/nccl_warnings.h"

namespace tacet {
namespace {

// .../transport/ibrc/ibrc.cpp:418: non-zero status: 110 ibv_modify_qp failed
// .../transport/ibgda/ibgda.cpp:1345: non-zero status: 121 Error in mlx5dv_devx_obj_modify for INIT2RTR_QP with ...
// connect EPS failed: what follows from it, on a line of its own
LineUse ReadConnection(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  // The place in the source and the call may stand on lines of their own.
  const bool alone = Trim(text) == "ibv_modify_qp failed";
  const bool verbs = alone || (Contains(text, "non-zero status: ") && Contains(text, "ibv_modify_qp failed"));
  const bool device = Contains(text, "mlx5dv_devx_obj_modify for ") && Contains(text, "_QP");
  if (!verbs && !device && !ContainsAny(text, {"connect EPS failed", "ep_connect failed", "setup connections failed"}))
    return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_warning, line, "nvshmem");
  record->repeats = 1;  // every rank says it many times
  if (is_new) {
    record->subject = "ib-modify-qp-failed";
    record->value = -1;
    record->value2 = static_cast<int64_t>(NcclWarningRole::cause);
    record->text = Capped(Trim(text), 600);
  }
  // The call itself tells more than what follows from it.
  if ((verbs || device) && record->value < 0) {
    record->value = IntAfter(text, "non-zero status: ").value_or(-1);
    record->source = line.source;
    record->text = Capped(Trim(text), 600);
  }
  return LineUse::understood;
}

// .../transport/ibgda/ibgda.cpp:1889: NULL value cannot allocate mlx5dv_devx_uar
// WARN: device mlx5_0 cannot allocate buffer on the specified memory type. Skipping...
LineUse ReadAdapter(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const bool doorbell = Contains(text, "cannot allocate mlx5dv_devx_uar");
  if (!doorbell && !Contains(text, "cannot allocate buffer on the specified memory type"))
    return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::rdma_failed, line, doorbell ? "doorbell" : "buffer");
  record->repeats = 1;
  if (!is_new) return LineUse::understood;
  record->value = static_cast<int64_t>(doorbell ? RdmaFault::doorbell : RdmaFault::gpu_memory);
  if (!doorbell) record->subject = "refused";  // it goes on with the next adapter
  record->text = Capped(Trim(text), 600);
  return LineUse::understood;
}

// .../host/transport/transport.cpp:nvshmemi_transport_init:275: init failed for transport: IBGDA
LineUse ReadStart(const LogLine& line, RecordList& out) {
  const auto transport = After(line.text, "init failed for transport: ");
  if (!transport && !Contains(line.text, "nvshmem initialization failed")) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_error, line, "nvshmem");
  if (!is_new) return LineUse::understood;
  record->value = 2;
  record->subject = "an NVSHMEM error";
  record->object = transport ? "init failed for transport: " + Capped(Trim(*transport), 60)
                             : std::string("NVSHMEM could not be initialized");
  record->text = Capped(Trim(line.text), 600);
  return LineUse::understood;
}

// DeepEP timeout check failed: rank = 6, thread = 0, value = 0)
// DeepEP combine NVL receiver timeout, channel: 5, rank: 3, src NVL rank: 0, ...
// A kernel gave up waiting for a peer: who says it waits.
LineUse ReadExpertWait(const LogLine& line, RecordList& out) {
  const auto words = After(line.text, "DeepEP ");
  if (!words || !Contains(*words, "timeout")) return LineUse::not_understood;
  auto rank = IntAfter<int32_t>(*words, ", rank: ");
  if (!rank) rank = IntAfter<int32_t>(*words, ": rank = ");
  const auto [record, is_new] =
      out.AddOnce(TorchLogKind::watchdog_timeout, line, "deepep" + std::to_string(rank.value_or(-1)));
  record->repeats = 1;  // every thread and channel says it
  if (!is_new) return LineUse::understood;
  if (rank && *rank >= 0) record->rank = *rank;
  record->text = Capped(Trim(line.text), 600);
  return LineUse::understood;
}

}  // namespace

LineUse ReadNvshmem(const LogLine& line, RecordList& out) {
  if (const LineUse use = ReadConnection(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadAdapter(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadExpertWait(line, out); use != LineUse::not_understood) return use;
  return ReadStart(line, out);
}

}  // namespace tacet
