// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_nvshmem.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text_scan.h"
#include "model/events/event_detail.h"
#include "model/events/nccl_warnings.h"

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

constexpr std::string_view kNotInitialized = "NVSHMEM could not be initialized";
constexpr std::string_view kNoTransport = "NVSHMEM could initialize none of its transports";

// .../host/transport/transport.cpp:nvshmemi_transport_init:275: init failed for transport: IBGDA
LineUse ReadStart(const LogLine& line, RecordList& out) {
  const auto transport = After(line.text, "init failed for transport: ");
  // .../host/topo/topo.cpp:469: [GPU 6] Peer GPU 8 is not accessible, exiting ...
  const auto peer = IntAfter<int32_t>(line.text, "Peer GPU ");
  const bool no_path = peer && Contains(line.text, " is not accessible");
  // .../host/team/team_internal_nvls.cpp:254: non-zero status: 401 cuMemMap failed to map 274877906944 bytes ...
  const bool multicast = Contains(line.text, "non-zero status: ") &&
                         ContainsAny(line.text, {"to MC group ", "Mapping multicast groups", "cuMemMap failed to map"});
  // .../host/transport/transport.cpp:nvshmemi_transport_init:287: Unable to initialize any transports. returning error.
  const bool none = Contains(line.text, "Unable to initialize any transports");
  const bool told = transport || no_path || multicast || none;
  if (!told && !Contains(line.text, "nvshmem initialization failed")) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_error, line, "nvshmem");
  record->repeats = 1;  // every rank says it
  // One transport may be missing while others work; that none is left is the end.
  if (!is_new && !none && (!told || record->object != kNotInitialized)) return LineUse::understood;
  record->source = line.source;  // what failed tells more than that the start did
  record->value = 2;
  record->subject = "an NVSHMEM error";
  record->object = none        ? std::string(kNoTransport)
                   : transport ? "init failed for transport: " + Capped(Trim(*transport), 60)
                   : no_path   ? "GPU " + std::to_string(IntAfter<int32_t>(line.text, "[GPU ").value_or(0)) +
                                   " cannot reach its peer GPU " + std::to_string(*peer) + " by any transport"
                   : multicast ? std::string("the symmetric heap could not be mapped to an NVLink multicast group")
                               : std::string(kNotInitialized);
  if (none)
    record->cure =
        "See that the process can use an adapter: ibv_devinfo inside the container (it needs /dev/infiniband); on one "
        "host without a network NVSHMEM_REMOTE_TRANSPORT=none is enough.";
  if (no_path)
    record->cure =
        "Where the two GPUs are of different hosts, NVSHMEM needs a network transport: see that the adapters are "
        "visible to the process (ibv_devinfo), and that NVSHMEM_REMOTE_TRANSPORT and NVSHMEM_HCA_LIST do not leave "
        "them out.";
  if (multicast)
    record->cure =
        "Test with NVSHMEM_DISABLE_NVLS=1. If that helps, the NVLink fabric is the part that fails: see nvidia-smi -q "
        "| "
        "grep -A3 Fabric and dmesg -T | grep -i fabric on that host.";
  record->text = Capped(Trim(line.text), 600);
  return LineUse::understood;
}

// DeepEP timeout check failed: rank = 6, thread = 5, value = 1024)
// Thread by thread, and each thread waits for the peer of its number: the table of a waiter has one value that is
// unlike all others where that peer alone is missing. -1 where no single one is.
int32_t OddPeer(const std::vector<int64_t>& by_peer, int32_t own) {
  constexpr size_t kFewestPeers = 4;  // of three values any may be the usual one
  if (by_peer.size() < kFewestPeers) return -1;
  const int64_t usual = std::count(by_peer.begin(), by_peer.end(), by_peer[0]) > 1 ? by_peer[0] : by_peer[1];
  int32_t odd = -1;
  for (size_t i = 0; i < by_peer.size(); ++i) {
    if (by_peer[i] == usual) continue;
    if (odd >= 0) return -1;
    odd = static_cast<int32_t>(i);
  }
  return odd == own ? -1 : odd;
}

void ReadPeerValue(std::string_view words, TorchLogRecord& record) {
  const auto thread = IntAfter<int32_t>(words, ", thread = ");
  const auto value = IntAfter<int64_t>(words, ", value = ");
  // Row by row from 0, as the threads print them: what is missing in between tells nothing.
  if (!thread || !value || *thread < 0 || static_cast<size_t>(*thread) != record.by_peer.size()) return;
  record.by_peer.push_back(*value);
  record.peer = OddPeer(record.by_peer, record.rank);
}

// DeepEP timeout check failed: rank = 6, thread = 0, value = 0)
// DeepEP combine NVL receiver timeout, channel: 5, rank: 3, src NVL rank: 0, ...
// A kernel gave up waiting for a peer: who says it waits.
LineUse ReadExpertWait(const LogLine& line, RecordList& out) {
  const auto words = After(line.text, "DeepEP ");
  if (!words || !Contains(*words, "timeout")) return LineUse::not_understood;
  auto rank = IntAfter<int32_t>(*words, ", rank: ");
  if (!rank) rank = IntAfter<int32_t>(*words, ": rank = ");
  // DeepEP dispatch NVL receiver timeout, channel: 3, RDMA: 1, nvl: 6, src RDMA: 0, src nvl: 3, start: 0, end: 0
  // A node has eight places at its NVLinks in DeepEP's count, whatever it has of GPUs.
  constexpr int32_t kPlacesPerNode = 8;
  const auto node = IntAfter<int32_t>(*words, ", RDMA: "), place = IntAfter<int32_t>(*words, ", nvl: ");
  if (!rank && node && place && *node >= 0 && *node < 100000 && *place >= 0 && *place < kPlacesPerNode)
    rank = *node * kPlacesPerNode + *place;
  const auto [record, is_new] =
      out.AddOnce(TorchLogKind::watchdog_timeout, line, "deepep" + std::to_string(rank.value_or(-1)));
  record->repeats = 1;  // every thread and channel says it
  if (rank && *rank >= 0) record->rank = *rank;
  ReadPeerValue(*words, *record);
  if (!is_new) return LineUse::understood;
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

void DropPassedTransports(TorchLog& log, uint32_t last_rate_line) {
  std::erase_if(log.records, [&](const TorchLogRecord& record) {
    return record.kind == TorchLogKind::nccl_error && record.object.starts_with("init failed for transport: ") &&
           record.source.line < last_rate_line;
  });
}

}  // namespace tacet
