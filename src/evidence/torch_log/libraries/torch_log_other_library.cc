// SPDX-License-Identifier: Apache-2.0
// Libraries and frameworks beside NCCL and PyTorch: HCCL, oneCCL, NVSHMEM, Horovod, JAX, TensorFlow, libfabric.
#include <algorithm>
#include <string>

#include "base/advice.h"
#include "base/text_scan.h"
#include "evidence/torch_log/ends/torch_log_worker_end.h"
#include "evidence/torch_log/errors/torch_log_failures.h"
#include "evidence/torch_log/errors/torch_log_told_causes.h"
#include "evidence/torch_log/libraries/torch_log_grpc.h"
#include "evidence/torch_log/libraries/torch_log_jax.h"
#include "evidence/torch_log/libraries/torch_log_nvshmem.h"
#include "evidence/torch_log/libraries/torch_log_tensorflow.h"
#include "evidence/torch_log/libraries/torch_log_xla.h"
#include "model/events/nccl_warnings.h"

namespace tacet {
namespace {

// A record that is nothing but its words.
LineUse AddWords(TorchLogKind kind, const LogLine& line, std::string_view key, RecordList& out) {
  const auto [record, is_new] = out.AddOnce(kind, line, key);
  if (is_new) record->text = Capped(line.text);
  return LineUse::understood;
}

// [hccl_socket.cc:100] ... listen on ip[192.168.20.160] and specific port[16666] fail. Please check the port status ...
LineUse ReadHcclPort(const LogLine& line, RecordList& out) {
  const auto port = IntAfter(line.text, "and specific port[");
  if (!port || !Contains(line.text, "fail")) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::port_in_use, line, std::to_string(*port));
  if (!is_new) return LineUse::understood;
  record->value = *port > 0 && *port < 65536 ? *port : -1;
  record->text = Capped(line.text);
  record->value2 = out.highest_step();
  return LineUse::understood;
}

// [host:21064:0:21064] dc_verbs.c:633  UCX  ERROR Send completion with error on qp 0x226c3: transport retry counter ...
// [node1:19546:0:19546] ib_mlx5_log.c:139  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15 vend 0x81 ...)
// [node1:19546:0] sock.c:116  UCX  ERROR connect(fd=34, dest_addr=10.0.3.7:35892) failed: Connection timed out
// [node1:19546] pml_ucx.c:383  Error: ucp_ep_create(proc=95) failed: Destination is unreachable
// ... UCX  ERROR ibv_create_ah(dlid=49152 ... dgid=::ffff:10.0.3.7) for UD mlx5 connect on mlx5_1 failed: Connection
// timed out
bool TellsUcxFailure(std::string_view text) {
  if (Contains(text, "Transport retry count exceeded") && Contains(text, "_log.c:")) return true;
  if (ContainsAny(text, {"UCX Fatal: transport error", "Failed to resolve UCX endpoint for rank "})) return true;
  if (Contains(text, "ucp_ep_create(") && Contains(text, "failed: ")) return true;
  if (!Contains(text, "UCX  ERROR")) return false;
  if (ContainsAny(text, {"connect(fd=", "ibv_create_ah("})) return Contains(text, "failed: ");
  return ContainsAny(
      text, {"completion with error", "retry counter exceeded", "Endpoint timeout", "estination is unreachable"});
}

// [node1:19546:0:19546]: host, pid, and two numbers of threads, of which the last is new.
void TakeUcxSpeaker(std::string_view text, TorchLogRecord& record) {
  const size_t open = text.find('[');
  const size_t close = text.find(']', open == std::string_view::npos ? 0 : open);
  if (open == std::string_view::npos || close == std::string_view::npos || close - open > 100) return;
  std::string_view inside = text.substr(open + 1, close - open - 1);
  const size_t colon = inside.find(':');
  if (colon == std::string_view::npos || colon == 0 || inside.find(' ') != std::string_view::npos) return;
  const std::string_view host = inside.substr(0, colon);
  inside.remove_prefix(colon + 1);
  int64_t pid = -1;
  if (!TakeNumber(inside, &pid) || pid <= 0 || (!inside.empty() && inside[0] != ':')) return;
  record.host = Capped(host, 100);
  record.pid = pid;
}

// node7.30734PSM2 can't open hfi unit: -1 (err=23)
// PSM2 was unable to open an endpoint. Please make sure that the network link is active on the node ...
bool TellsUnopenedDevice(std::string_view text) {
  return ContainsAny(text, {"PSM2 can't open hfi unit", "PSM2 was unable to open an endpoint"});
}

// libfabric:85:1747242728::core:core:fi_getinfo_():1392<warn> fi_getinfo: provider efa output empty list
// fi_getinfo: -61 (No data available), as fi_info prints it
LineUse ReadNoProvider(const LogLine& line, RecordList& out) {
  const auto list = After(line.text, "fi_getinfo: provider ");
  const bool empty = list && (Contains(*list, "output empty list") || Contains(*list, "returned -61"));
  if (!empty && !ContainsAny(line.text, {"fi_getinfo: -61", "fi_getinfo() call failed: No data available"}))
    return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_warning, line, "provider");
  if (!is_new) return LineUse::understood;
  record->subject = "libfabric-no-provider";
  std::string_view name = list.value_or(std::string_view());
  record->object = Capped(TakeWord(name), 60);
  record->value2 = static_cast<int64_t>(NcclWarningRole::notice);
  record->text = Capped(Trim(line.text), 600);
  return LineUse::understood;
}

// ... My host id: i-0a11 Peer EFA addr: fi_addr_efa://[fe80::4b2:8f]:1:774121803 Peer host id: i-0fe7 (4124)
// [cn0312:118210:0:118210] ib_mlx5_log.c:179  DCI QP 0x8f20 wqe[311]: SEND s-e [rqpn 0x51c2 rlid 412] [va ...
// [cn0312:118210:0:118210] ib_mlx5_log.c:179  RC QP 0x1a2 wqe[3]: ...
// Below the error: which kind of queue pair it is of, and the peer's port.
bool TakeUcxQueue(const LogLine& line, RecordList& out) {
  const bool dynamic = Contains(line.text, " DCI QP 0x");
  if (!dynamic && !Contains(line.text, " RC QP 0x")) return false;
  TorchLogRecord* error = out.Said(TorchLogKind::nccl_warning, line, "ucx");
  if (error == nullptr) return false;
  if (dynamic) error->file = kDynamicQueue;
  if (const auto lid = IntAfter(line.text, "rlid "); lid && *lid > 0 && *lid < 0xC000) error->count = *lid;
  return true;
}

// The host of the peer, else its address.
std::string_view FabricPeer(std::string_view text) {
  if (auto host = After(text, "Peer host id: "); host && !host->starts_with("N/A")) return TakeWord(*host);
  if (const auto address = After(text, "Peer EFA addr: fi_addr_efa://[")) return address->substr(0, address->find(']'));
  return {};
}

// worker_pool.cpp:274] Worker: Process failed for slice (opcode: 0, source_addr: 0x7efdf3ffd010, length: 404, ...
// local_nic: mlx5_1, peer_nic: 10.0.3.7:8149@mlx5_0, dest_rkey: 2105088, retry_cnt: 0): transport retry counter
// exceeded Mooncake's transfer engine, with the status of verbs in words.
LineUse ReadTransferEngine(const LogLine& line, RecordList& out) {
  if (!Contains(line.text, "Process failed for slice (") || !Contains(line.text, "): transport retry counter exceeded"))
    return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_warning, line, "transfer engine");
  if (!is_new) return LineUse::understood;
  record->subject = "transfer-failed";
  record->value = 12;
  record->value2 = static_cast<int64_t>(NcclWarningRole::cause);
  if (const auto peer = After(line.text, "peer_nic: "))
    record->object = Capped(peer->substr(0, peer->find_first_of(", )")), 100);
  record->text = Capped(line.text);
  return LineUse::understood;
}

// WARN: Function: create_nccl_ofi_component Line: 459: NET/OFI Couldn't open AV. RC: -22, ERROR: Invalid argument
// libfabric:451707:1708520807::efa:cq:efa_rdm_txe_handle_error():737<warn> err: 5, message: Invalid address My EFA ...
LineUse ReadNetworkPlugin(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const bool plugin =
      Contains(text, "NET/OFI ") && (Contains(text, "RC: -") || Contains(text, " completed with error. RC: "));
  const bool fabric = Contains(text, "libfabric:") && Contains(text, "<warn>") && Contains(text, "err: ");
  if (TakeUcxQueue(line, out)) return LineUse::understood;
  // pml_ucx.c:189  Error: Failed to receive UCX worker address: Not found (-13), and below it whose it was.
  if (Contains(text, "Failed to resolve UCX endpoint for rank "))
    if (TorchLogRecord* told = out.Said(TorchLogKind::nccl_warning, line, "Failed to receive UCX worker address")) {
      told->peer = IntAfter<int32_t>(text, "endpoint for rank ").value_or(-1);
      return LineUse::understood;
    }
  const bool ucx = TellsUcxFailure(text);
  const bool device = TellsUnopenedDevice(text);
  // mtl_ofi.h:101: Error returned from fi_cq_readerr: Resource temporarily unavailable(-11).       Open MPI
  const bool queue = Contains(text, "rror returned from fi_cq_readerr");
  if (!plugin && !fabric && !ucx && !device && !queue) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_warning, line,
                                            plugin   ? "ofi"
                                            : fabric ? "libfabric"
                                            : device ? "device"
                                            : queue  ? "queue"
                                                     : "ucx");
  // "ucp_ep_create(proc=17) failed", "Failed to resolve UCX endpoint for rank 17": whom the line above is about.
  if (ucx && record->peer < 0)
    record->peer =
        IntAfter<int32_t>(text, "endpoint for rank ").value_or(IntAfter<int32_t>(text, "(proc=").value_or(-1));
  if (!is_new) return LineUse::understood;
  // What fails to open, create or register something fails on this host; the rest speaks of a peer.
  record->subject = plugin ? std::string(ClassifyWarning(text.substr(text.find("NET/OFI "))).id)
                           : std::string(ucx      ? "ucx-failed"
                                         : device ? "net-device-setup-failed"
                                                  : "net-plugin-failed");
  if (const NcclWarning* known = FindNcclWarning(plugin ? "net-plugin-failed" : record->subject))
    record->object = Capped(ParseWarningObject(*known, text), 200);
  record->value2 = static_cast<int64_t>(NcclWarningRole::cause);
  if (ucx) TakeUcxOwner(text, *record);
  // The status of verbs that stands behind these words.
  if (ucx && ContainsAny(text, {"retry count exceeded", "retry counter exceeded"})) record->value = 12;
  if (const auto pid = IntAfter(text, "libfabric:"); fabric && pid && *pid > 0) record->pid = *pid;
  if (const std::string_view peer = fabric ? FabricPeer(text) : std::string_view(); !peer.empty()) {
    record->subject = "net-peer-unresponsive";
    record->object = Capped(peer, 100);
  }
  if (ucx) TakeUcxSpeaker(text, *record);
  if (ucx && Contains(text, " dc_")) record->file = kDynamicQueue;
  record->text = Capped(text);
  return LineUse::understood;
}

// NET/IB: Got completion from peer 10.6.13.83<36315> with status=12 opcode=32698 len=32696 vendor err 129 (Send)
// NCCL's warning, of which nothing but the message was kept.
LineUse ReadBareWarning(const LogLine& line, RecordList& out) {
  std::string_view text = Trim(line.text);
  // ibvwrap.cc: NCCL WARN Call to ibv_modify_qp failed with error Connection timed out
  // Nothing but the place in NCCL's source may stand before it: people quote warnings in sentences.
  const size_t warn = text.find("NCCL WARN ");
  const std::string_view place = Trim(text.substr(0, warn == std::string_view::npos ? 0 : warn));
  if (place.find(' ') == std::string_view::npos && ContainsAny(place, {".cc:", ".h:", ".cu:"}))
    text = Trim(text.substr(warn + 10));
  else if (!text.starts_with("Failed to bind NVLink SHARP (NVLS) Multicast") &&
           (!text.starts_with("NET/IB") || !Contains(text, "Got completion ")))
    return LineUse::not_understood;
  const NcclWarning& warning = ClassifyWarning(text);
  if (warning.id == "other" || (Contains(line.text, "ras/") && !warning.id.starts_with("ras-")))
    return LineUse::not_understood;
  const NcclWarningNumbers numbers = ParseWarningNumbers(warning, text);
  const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_warning, line, warning.id);
  if (!is_new) return LineUse::understood;
  record->subject = warning.id;
  record->value = numbers.value;
  record->value2 = static_cast<int64_t>(RoleOf(warning, numbers, false));
  record->object = Capped(ParseWarningObject(warning, text), 200);
  record->text = Capped(text);
  return LineUse::understood;
}

// Failed to modify QP to RTR: Connection timed out
// Programs that speak verbs themselves (perftest, transfer engines); NCCL says it in other words.
LineUse ReadQueuePair(const LogLine& line, RecordList& out) {
  if (!Contains(line.text, "ailed to modify QP to RT")) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_warning, line, "qp");
  if (!is_new) return LineUse::understood;
  record->subject = "ib-modify-qp-failed";
  record->value = Contains(line.text, "Connection timed out") ? 110 : -1;
  record->value2 = static_cast<int64_t>(NcclWarningRole::cause);
  record->text = Capped(line.text);
  return LineUse::understood;
}

// node7: Test NCCL failure common.cu:1285 'internal error - please report this issue to the NCCL developers / '
// node7: Test CUDA failure common.cu:1045 'out of memory'
// nccl-tests, where the table above it was not kept.
LineUse ReadTestFailure(const LogLine& line, RecordList& out) {
  const bool nccl = Contains(line.text, ": Test NCCL failure ");
  auto quoted = After(line.text, nccl ? ": Test NCCL failure " : ": Test CUDA failure ");
  if (quoted) quoted = After(*quoted, "'");
  if (!quoted) return LineUse::not_understood;
  const std::string_view words = quoted->substr(0, quoted->find('\''));
  // Each host prints it: who of them was first is not told by the order of their lines.
  const std::string host(Trim(line.text.substr(0, line.text.find(": Test "))));
  const auto [record, is_new] =
      out.AddOnce(nccl ? TorchLogKind::nccl_error : TorchLogKind::cuda_error, line, std::string(words) + '/' + host);
  if (!is_new) return LineUse::understood;
  const size_t last_error = words.find(" / ");
  record->subject = Capped(WithoutHints(words.substr(0, std::min(words.find(" - "), last_error))), 200);
  if (nccl && !TakeNcclResult(record->subject, *record)) record->value = 3;
  record->text = Capped(line.text, 600);
  // As PyTorch words it.
  const std::string_view reason = last_error == std::string_view::npos ? "" : Trim(words.substr(last_error + 3));
  if (nccl && !reason.empty()) record->text += "\nLast error: " + Capped(reason, 300);
  return LineUse::understood;
}

// [ERROR] HCCL(4123,python):... [op_base.cc:974] errNo[0x0000000005000002]HcclCommInitRootInfo failed.
// [hccl_runner.cpp:132] HcclCommInitRootInfo fail, error:2, rank:1, rankSize:4
// 2025:01:20-10:20:30:( 4123) |CCL_ERROR| atl_ofi.cpp:214 init: EXCEPTION: no ofi providers found
LineUse ReadLibraryFailure(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  const bool init = Contains(text, "HcclCommInit") && Contains(text, " fail");
  const bool hccl = init || ContainsAny(text, {"HCCL error in", "function error: Hccl"}) ||
                    ((text.starts_with("EI00") || text.starts_with("EJ00")) && Contains(text.substr(0, 8), ":"));
  // HCCL demo error: In function initDevice(): synDeviceAcquire(...) failed with synapse error: 20
  const bool hcl =
      (Contains(text, "[HCL ") && Contains(text, "[error]")) || Contains(text, "failed with synapse error");
  const auto oneccl = After(text, "|CCL_ERROR|");
  // 2025-Jun-28 22:19:15.506590  8652:8728  ERROR   NRT:nrt_infodump      Failure: NRT_INVALID in nrt_load()
  const auto neuron = Contains(text, "NRT:nrt_infodump") ? After(text, "Failure: NRT_") : std::nullopt;
  if (!hccl && !hcl && !oneccl && !neuron)
    return Contains(text, "NRT:nrt_infodump") ? LineUse::ignored : LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_error, line, "other library");
  if (init && record->rank < 0)
    if (const auto rank = IntAfter<int32_t>(text, ", rank:"); rank && *rank >= 0) record->rank = *rank;
  if (is_new) {
    record->value = 2;
    record->subject = oneccl   ? "a oneCCL error"
                      : neuron ? "an error of the Neuron runtime"
                      : hccl   ? "an HCCL error"
                               : "an HCL error";
    record->object = neuron ? "NRT_" + Capped(Trim(*neuron), 200)
                            : Capped(Trim(oneccl ? *oneccl
                                          : init ? text.substr(text.find("HcclCommInit"))
                                                 : text),
                                     300);
    record->text = Capped(text);
  } else {
    AppendCapped(record->text, "\n");
    AppendCapped(record->text, text);
    // The second line of oneCCL often names what the first only counts: "can't create providers for name shm".
    if (const auto words = oneccl ? After(*oneccl, ": ") : std::nullopt; words && record->repeats == 2)
      AppendCapped(record->object, "; " + Capped(Trim(*words), 120), 300);
  }
  return LineUse::understood;
}

// BaseCollectiveExecutor::StartAbort INTERNAL: Device ... is joining a group with incompatible device type ...
// An abort with any other status than those that tell of a peer names what is wrong itself. Cancelled work follows from
// another error.
LineUse ReadTensorFlowAbort(const LogLine& line, RecordList& out) {
  auto rest = After(line.text, "CollectiveExecutor::StartAbort ");
  if (!rest) return LineUse::not_understood;
  const size_t colon = std::min(rest->find(": "), rest->size());
  const std::string_view status = rest->substr(0, colon), words = Trim(rest->substr(std::min(colon + 2, rest->size())));
  const bool known = ContainsAny(status, {"INTERNAL", "Internal", "INVALID_ARGUMENT", "Invalid argument",
                                          "FAILED_PRECONDITION", "Failed precondition", "NOT_FOUND", "UNIMPLEMENTED",
                                          "ALREADY_EXISTS", "OUT_OF_RANGE", "Out of range", "RESOURCE_EXHAUSTED"});
  if (!known || words.empty() || Contains(words, "Collective ops is aborted by")) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::exception, line, "tensorflow abort");
  if (!is_new) return LineUse::understood;
  record->subject = "an error of TensorFlow's collectives";
  record->text = Capped(words, 400);
  record->value2 = out.highest_step();
  return LineUse::understood;
}

}  // namespace

// RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64
// 2025:01:20-10:20:30:( 4123) |CCL_ERROR| atl_ofi.cpp:214 init: EXCEPTION: no ofi providers found
// Memory access fault by GPU node-4 (Agent handle: 0x9cf1d0) on address 0x7fd7e8200000. Reason: Unknown.
// horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception on one of
// the ranks ...
LineUse ReadOtherLibrary(const LogLine& line, RecordList& out) {
  const std::string_view text = line.text;
  if (Contains(text, "Memory access fault by GPU node")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::cuda_error, line, "memory access fault");
    if (is_new)
      record->subject = "memory access fault", record->text = Capped(text), record->value2 = out.highest_step();
    return LineUse::understood;
  }
  if (const size_t at = text.find("Horovod has been shut down"); at != std::string_view::npos) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::exception, line, "horovod");
    if (is_new) record->subject = "HorovodInternalError", record->text = Capped(text.substr(at), 600);
    return LineUse::understood;
  }
  // AWS Neuron's NCCL: "... [4] bootstrap.cc:89 CCOM WARN Timeout waiting for incoming connection (waited 120 sec)"
  // "... Timeout waiting for RX (waited 120 sec) - retrying": nobody has given up.
  if (Contains(text, "CCOM WARN Timeout waiting for")) {
    const LineUse use = AddWords(TorchLogKind::rendezvous_incomplete, line, "ccom", out);
    if (TorchLogRecord* wait = out.Said(TorchLogKind::rendezvous_incomplete, line, "ccom"))
      if (Contains(text, "- retrying")) wait->subject = "waiting";
    return use;
  }
  if (const LineUse use = ReadJax(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadHcclPort(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadNoProvider(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadNetworkPlugin(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadBareWarning(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadQueuePair(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadNvshmem(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadTransferEngine(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadTestFailure(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadEndOfData(line, out); use != LineUse::not_understood) return use;
  if (Contains(text, "CollectiveExecutor::StartAbort") && ContainsAny(text, {"Unavailable", "UNAVAILABLE"}))
    return AddWords(TorchLogKind::connection_lost, line, "tensorflow", out);
  // TensorFlow: "BaseCollectiveExecutor::StartAbort DEADLINE_EXCEEDED: Deadline Exceeded". Whom it asked follows:
  // "Additional GRPC error information from remote target /job:worker/replica:0/task:0:"
  if (Contains(text, "CollectiveExecutor::StartAbort") && ContainsAny(text, {"DEADLINE_EXCEEDED", "Deadline exceeded"}))
    return AddWords(TorchLogKind::rendezvous_incomplete, line, "tensorflow", out);
  if (const LineUse use = ReadTensorFlowAbort(line, out); use != LineUse::not_understood) return use;
  // "Collective ops is aborted by: Socket closed": whom it lost follows in the same way. Aborted by any other error,
  // the error tells what happened.
  if (Contains(text, "Collective ops is aborted by: ") && ContainsAny(text, {"Socket closed", "Connection reset"}))
    return AddWords(TorchLogKind::connection_lost, line, "tensorflow", out);
  if (const LineUse use = ReadGrpc(line, out); use != LineUse::not_understood) return use;
  // XLA: "Failed to meet rendezvous 'torch_xla.init': Socket closed (14)"
  if (Contains(text, "Failed to meet rendezvous")) {
    const bool closed = Contains(text, "Socket closed") || Contains(text, "Connection reset");
    return AddWords(closed ? TorchLogKind::connection_lost : TorchLogKind::rendezvous_incomplete, line, "xla", out);
  }
  // JAX: "Terminating process because the JAX distributed service detected fatal errors. This most likely indicates
  // that another task died"
  if (Contains(text, "JAX distributed service detected fatal errors")) {
    const LineUse use = AddWords(TorchLogKind::connection_lost, line, "jax", out);
    if (TorchLogRecord* lost = out.Said(TorchLogKind::connection_lost, line, "jax"))
      if (Contains(text, "ailed to send RPC to coordination service")) lost->object = kCoordinator;
    return use;
  }
  if (const LineUse use = ReadXlaWait(line, out); use != LineUse::not_understood) return use;
  if (const LineUse use = ReadTpuFault(line, out); use != LineUse::not_understood) return use;
  // SGLang: "[2026-03-09 00:57:15 TP4] Watchdog timeout (self.watchdog_timeout=300)", later "Scheduler watchdog timeout
  // (self.watchdog_timeout=300, self.soft=False)"
  if (Contains(text, "atchdog timeout (self.watchdog_timeout=")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::watchdog_timeout, line, "sglang");
    if (!is_new) return LineUse::understood;
    if (const auto seconds = IntAfter(text, "watchdog_timeout="); seconds && *seconds < 1'000'000)
      record->value = *seconds * 1000;
    record->text = Capped(text);
    return LineUse::understood;
  }
  if (Contains(text, "what(): Collective call returned error")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::nccl_error, line, "collective call");
    if (is_new) record->value = 3, record->subject = "an error of the collective library", record->text = Capped(text);
    return LineUse::understood;
  }
  // ROCm: "HW Exception by GPU node-9 (Agent handle: 0x55d) reason :GPU Hang"
  if (Contains(text, "HW Exception by GPU node")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::cuda_error, line, "hardware exception");
    if (is_new) {
      record->subject = Capped(Trim(text.substr(text.find("HW Exception by GPU node"))), 120);
      record->text = Capped(text);
      record->value2 = out.highest_step();
    }
    return LineUse::understood;
  }
  // SGLang: "[2026-03-09 00:57:15 TP0] Prefill out of memory. Try to lower your batch size."
  if (ContainsAny(text, {"Prefill out of memory", "Decode out of memory"})) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::cuda_error, line, "out of memory");
    if (is_new) record->subject = "out of memory", record->text = Capped(text), record->value2 = out.highest_step();
    return LineUse::understood;
  }
  // rocminfo: "Call returned HSA_STATUS_ERROR_OUT_OF_RESOURCES: The runtime failed to allocate the necessary
  // resources."
  if (const auto status = After(text, "Call returned HSA_STATUS_ERROR_")) {
    const auto [record, is_new] = out.AddOnce(TorchLogKind::exception, line, "hsa");
    if (is_new) {
      record->subject = "an error of ROCm's runtime";
      record->text = "HSA_STATUS_ERROR_" + Capped(status->substr(0, status->find(". ")), 200);
      record->value2 = out.highest_step();
    }
    return LineUse::understood;
  }
  // JAX: "... Task /job:jax_worker/replica:0/task:3 heartbeat timeout. This indicates that the remote task has failed"
  if (Contains(text, "heartbeat timeout. This indicates")) {
    const int32_t task = IntAfter<int32_t>(text, "/task:").value_or(-1);
    const auto [record, is_new] = out.AddOnce(TorchLogKind::process_exited, line, "task" + std::to_string(task));
    if (!is_new) return LineUse::understood;
    record->rank = task;
    record->value = 255;
    record->subject = "a heartbeat that stopped";
    record->text = Capped(text, 600);
    return LineUse::understood;
  }
  return ReadLibraryFailure(line, out);
}

}  // namespace tacet
