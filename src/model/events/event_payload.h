// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <type_traits>
#include <variant>

#include "model/events/event.h"

namespace tacet {

template <class T, class... Types>
constexpr size_t IndexAmong(const std::variant<Types...>*) {
  size_t index = 0;
  bool found = false;
  ((found = found || std::is_same_v<T, Types>, index += found ? 0 : 1), ...);
  return index;
}

// A payload as a number: its index in EventDetail.
template <class T>
inline constexpr size_t kPayload = IndexAmong<T>(static_cast<const EventDetail*>(nullptr));

// The payload that an event of this kind holds.
constexpr size_t PayloadOf(EventKind kind) {
  switch (kind) {
    case EventKind::process_started: return kPayload<ProcessStart>;
    case EventKind::progress: return kPayload<Progress>;
    case EventKind::process_finished: return kPayload<ProcessFinish>;
    case EventKind::process_exited:
    case EventKind::process_killed: return kPayload<ProcessEnd>;
    case EventKind::watchdog_timeout: return kPayload<WatchdogTimeout>;
    case EventKind::watchdog_status:
    case EventKind::dump_signal: return kPayload<WorkCounters>;
    case EventKind::dump_started:
    case EventKind::dump_written: return kPayload<FilePath>;
    case EventKind::heartbeat_stuck: return kPayload<HeartbeatStuck>;
    case EventKind::gil_blocked:
    case EventKind::program_left:
    case EventKind::told_stop:
    case EventKind::told_not_finite:
    case EventKind::told_wrong:
    case EventKind::told_uneven:
    case EventKind::unread_error:
    case EventKind::mixed_setting: return kPayload<std::monostate>;
    case EventKind::told_slow:
    case EventKind::told_hang: return kPayload<ToldPlace>;
    case EventKind::told_remedy: return kPayload<ToldRemedy>;
    case EventKind::told_guard: return kPayload<GuardedCall>;
    case EventKind::gpu_load: return kPayload<GpuLoad>;
    case EventKind::space_use: return kPayload<SpaceUse>;
    case EventKind::node_state: return kPayload<ListedNodes>;
    case EventKind::store_lost:
    case EventKind::connection_lost: return kPayload<LostPeer>;
    case EventKind::mismatch_report: return kPayload<MismatchReport>;
    case EventKind::desync_report: return kPayload<DesyncReport>;
    case EventKind::monitored_barrier_failed: return kPayload<BarrierFailure>;
    case EventKind::ddp_unused_parameters:
    case EventKind::ddp_marked_twice: return kPayload<DdpParameters>;
    case EventKind::exception: return kPayload<Raised>;
    case EventKind::cuda_error: return kPayload<CudaError>;
    case EventKind::nccl_error: return kPayload<NcclError>;
    case EventKind::abort_signal: return kPayload<Abort>;
    case EventKind::nccl_version:
    case EventKind::driver_version: return kPayload<Version>;
    case EventKind::init_started:
    case EventKind::init_completed: return kPayload<CommunicatorSetup>;
    case EventKind::comm_destroyed:
    case EventKind::comm_aborted: return kPayload<CommunicatorEnd>;
    case EventKind::environment: return kPayload<EnvironmentSetting>;
    case EventKind::network:
    case EventKind::no_device: return kPayload<NetworkName>;
    case EventKind::interface_used:
    case EventKind::device_found: return kPayload<NetworkDevice>;
    case EventKind::transport: return kPayload<PairTransport>;
    case EventKind::nccl_warning: return kPayload<Warning>;
    case EventKind::oom_kill: return kPayload<OomKill>;
    case EventKind::xid:
    case EventKind::nvlink_error: return kPayload<Xid>;
    case EventKind::ecc_error:
    case EventKind::pcie_error: return kPayload<HardwareError>;
    case EventKind::segfault: return kPayload<Segfault>;
    case EventKind::hung_task: return kPayload<HungTask>;
    case EventKind::link_down:
    case EventKind::link_up: return kPayload<NetworkLink>;
    case EventKind::job_time_limit: return kPayload<TimeLimit>;
    case EventKind::node_failed: return kPayload<NodeFailure>;
    case EventKind::ras_rank_dead:
    case EventKind::ras_rank_unresponsive:
    case EventKind::ras_rank_missing: return kPayload<RasReport>;
    case EventKind::store_wait_timeout: return kPayload<StoreWait>;
    case EventKind::rendezvous_incomplete: return kPayload<Rendezvous>;
    case EventKind::store_unreachable: return kPayload<StoreUnreachable>;
    case EventKind::shared_memory_full:
    case EventKind::disk_full: return kPayload<NoSpace>;
    case EventKind::port_in_use: return kPayload<PortTaken>;
    case EventKind::scheduler_kill: return kPayload<OutsideEnd>;
    case EventKind::peer_access_failed:
    case EventKind::fabric_down: return kPayload<CudaRefusal>;
    case EventKind::rdma_failed: return kPayload<RdmaFailure>;
    case EventKind::model_mismatch: return kPayload<ModelMismatch>;
    case EventKind::connect_failed: return kPayload<ConnectFailure>;
    case EventKind::iommu_fault: return kPayload<IommuFault>;
    case EventKind::storage_lost:
    case EventKind::storage_back: return kPayload<StorageLoss>;
    case EventKind::node_count: return kPayload<NodeCount>;
    case EventKind::start_pending: return kPayload<Pending>;
    case EventKind::port_state: return kPayload<PortState>;
    case EventKind::xla_wait: return kPayload<XlaWait>;
    case EventKind::gpu_direct: return kPayload<GpuDirect>;
    case EventKind::straggler_report: return kPayload<SlowRankReport>;
    case EventKind::memory_use: return kPayload<HostMemoryUse>;
    case EventKind::port_errors: return kPayload<PortErrors>;
    case EventKind::gpu_check: return kPayload<GpuCheck>;
    case EventKind::site_message: return kPayload<SiteNote>;
  }
  return kPayload<std::monostate>;
}

inline bool HoldsItsPayload(const Event& event) { return event.detail.index() == PayloadOf(event.kind); }

}  // namespace tacet
