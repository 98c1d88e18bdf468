// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/errors/torch_log_detail.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_failures.h"
#include "evidence/torch_log/errors/torch_log_told_causes.h"
#include "model/events/nccl_warnings.h"

namespace tacet {
namespace {

CodePlace PlaceOf(const TorchLogRecord& record) { return {record.function, record.file, record.code_line}; }

ProcessEnd EndOf(const TorchLogRecord& record) {
  ProcessEnd end;
  end.code = record.value;
  end.how = record.subject;
  if (record.kind == TorchLogKind::process_killed) {
    end.sentence = record.object;
    end.with_step = record.with_step;
    return end;
  }
  std::string_view digits = record.object;
  if (int64_t code = 0; TakeNumber(digits, &code)) end.mpi_error = static_cast<int32_t>(code);
  if (record.value2 >= 0) end.first_failure = record.value2 == 1;
  end.local_rank = record.local_rank;
  end.host = record.host;
  end.of_pod = record.of_pod;
  end.first_only = record.of_spawn;
  end.named_first = record.named_first;
  end.of_script = record.of_script;
  end.by_path = record.by_path;
  end.spared_by_ray = record.spared_by_ray;
  if (record.of_itself)
    end.inside = record.file.empty() ? record.function : record.file;
  else
    end.log_file = record.file;
  return end;
}

LostPeer LostPeerOf(const TorchLogRecord& record) {
  const PeerKind kind = record.object == kRendezvousStore ? PeerKind::rendezvous
                        : record.object == kRemoteDaemon  ? PeerKind::daemon
                        : record.object == kCoordinator   ? PeerKind::coordinator
                                                          : PeerKind::process;
  return {record.subject, record.kind == TorchLogKind::store_lost && record.value2 == 1, kind, record.value == 1};
}

StoreUnreachable UnreachableOf(const TorchLogRecord& record) {
  const bool ssh = record.object.starts_with("ssh");
  const Unreachable how = !ssh                                      ? Unreachable::store
                          : record.object.ends_with("unknown-host") ? Unreachable::ssh_unknown_host
                          : record.object.ends_with("slots")        ? Unreachable::ssh_slots
                                                                    : Unreachable::ssh;
  return {record.subject, record.value, how, record.of_launcher, record.cure, record.reason_line};
}

NcclError NcclErrorOf(const TorchLogRecord& record) {
  NcclError error{record.value, record.subject, record.object, record.cure};
  error.reason_line = record.reason_line;
  error.peer = record.function;
  error.elements = record.count;
  return error;
}

Warning WarningOf(const TorchLogRecord& record) {
  Warning warning;
  // The table's own text outlives the record.
  if (const NcclWarning* known = FindNcclWarning(record.subject)) warning.id = known->id;
  warning.object = record.object;
  warning.number = record.value;
  warning.role = static_cast<NcclWarningRole>(record.value2);
  warning.peer_lid = record.count;
  warning.dynamic = record.file == kDynamicQueue;
  return warning;
}

// Every thread that waits says so, and says again when it goes on.
XlaWait XlaWaitOf(const TorchLogRecord& record) {
  XlaWait wait;
  wait.name = record.subject;
  wait.seconds = record.value;
  wait.expected = record.value2;
  wait.arrived = record.count;
  wait.devices = record.count_out;
  wait.gave_up = record.object == "gave up";
  wait.compiling = record.object == "compiling";
  wait.all_joined = record.object == "all joined";
  wait.passed = wait.compiling || (!wait.gave_up && record.line_before >= record.repeats);
  wait.passed_line = record.reason_line;
  wait.waited_s = record.left_s;
  return wait;
}

Pending PendingOf(const TorchLogRecord& record) {
  Pending pending;
  pending.by = record.host;
  pending.who = record.object;
  pending.demand = record.function;
  pending.reason = record.subject;
  pending.why = static_cast<PendingWhy>(record.value);
  pending.seconds = static_cast<int32_t>(record.value2);
  pending.gpus_used = static_cast<int32_t>(record.count);
  pending.gpus = static_cast<int32_t>(record.count_out);
  pending.gpus_wanted = static_cast<int32_t>(record.seq);
  pending.gang_pending = record.group_rank;
  pending.gang = record.peer_group_rank;
  return pending;
}

DesyncReport DesyncOf(const TorchLogRecord& record) {
  DesyncReport report;
  for (const int32_t rank : record.waiting) report.waiting.push_back(Rank{rank});
  report.tensor = record.subject;
  return report;
}

MemoryLimit MemoryLimitOf(int64_t value) {
  return value == 1 ? MemoryLimit::cgroup : value == 0 ? MemoryLimit::host : MemoryLimit::not_told;
}

SpaceLimit SpaceLimitOf(int64_t value) {
  return value == 1 ? SpaceLimit::quota : value == 0 ? SpaceLimit::device : SpaceLimit::not_told;
}

}  // namespace

EventKind EventKindOf(TorchLogKind kind) {
  switch (kind) {
    case TorchLogKind::process_started: return EventKind::process_started;
    case TorchLogKind::progress: return EventKind::progress;
    case TorchLogKind::process_finished: return EventKind::process_finished;
    case TorchLogKind::node_count: return EventKind::node_count;
    case TorchLogKind::setting: return EventKind::environment;
    case TorchLogKind::process_exited: return EventKind::process_exited;
    case TorchLogKind::process_killed: return EventKind::process_killed;
    case TorchLogKind::watchdog_timeout: return EventKind::watchdog_timeout;
    case TorchLogKind::watchdog_status: return EventKind::watchdog_status;
    case TorchLogKind::dump_signal: return EventKind::dump_signal;
    case TorchLogKind::dump_started: return EventKind::dump_started;
    case TorchLogKind::dump_written: return EventKind::dump_written;
    case TorchLogKind::heartbeat_stuck: return EventKind::heartbeat_stuck;
    case TorchLogKind::gil_blocked: return EventKind::gil_blocked;
    case TorchLogKind::program_left: return EventKind::program_left;
    case TorchLogKind::store_lost: return EventKind::store_lost;
    case TorchLogKind::desync_report: return EventKind::desync_report;
    case TorchLogKind::mismatch_report: return EventKind::mismatch_report;
    case TorchLogKind::monitored_barrier_failed: return EventKind::monitored_barrier_failed;
    case TorchLogKind::ddp_unused_parameters: return EventKind::ddp_unused_parameters;
    case TorchLogKind::ddp_marked_twice: return EventKind::ddp_marked_twice;
    case TorchLogKind::exception: return EventKind::exception;
    case TorchLogKind::cuda_error: return EventKind::cuda_error;
    case TorchLogKind::nccl_error: return EventKind::nccl_error;
    case TorchLogKind::connection_lost: return EventKind::connection_lost;
    case TorchLogKind::abort_signal: return EventKind::abort_signal;
    case TorchLogKind::oom_kill: return EventKind::oom_kill;
    case TorchLogKind::job_time_limit: return EventKind::job_time_limit;
    case TorchLogKind::node_failed: return EventKind::node_failed;
    case TorchLogKind::restarted:
    case TorchLogKind::barrier_passed: break;  // taken before
    case TorchLogKind::store_wait_timeout: return EventKind::store_wait_timeout;
    case TorchLogKind::rendezvous_incomplete: return EventKind::rendezvous_incomplete;
    case TorchLogKind::store_unreachable: return EventKind::store_unreachable;
    case TorchLogKind::shared_memory_full: return EventKind::shared_memory_full;
    case TorchLogKind::disk_full: return EventKind::disk_full;
    case TorchLogKind::port_in_use: return EventKind::port_in_use;
    case TorchLogKind::scheduler_kill: return EventKind::scheduler_kill;
    case TorchLogKind::peer_access_failed: return EventKind::peer_access_failed;
    case TorchLogKind::rdma_failed: return EventKind::rdma_failed;
    case TorchLogKind::fabric_down: return EventKind::fabric_down;
    case TorchLogKind::model_mismatch: return EventKind::model_mismatch;
    case TorchLogKind::connect_failed: return EventKind::connect_failed;
    case TorchLogKind::nccl_warning: return EventKind::nccl_warning;
    case TorchLogKind::xla_wait: return EventKind::xla_wait;
    case TorchLogKind::start_pending: return EventKind::start_pending;
    case TorchLogKind::straggler_report: return EventKind::straggler_report;
    case TorchLogKind::memory_use: return EventKind::memory_use;
    case TorchLogKind::interface_used: return EventKind::interface_used;
  }
  return EventKind::progress;
}

EventDetail DetailOf(const TorchLogRecord& record) {
  switch (record.kind) {
    case TorchLogKind::process_started: return ProcessStart{record.value};
    case TorchLogKind::progress:
      return Progress{record.value, record.value2, record.count, record.line_before, record.object == "epoch"};
    case TorchLogKind::process_finished: return ProcessFinish{record.subject, record.value == 1, record.value2 == 1};
    case TorchLogKind::process_exited:
    case TorchLogKind::process_killed: return EndOf(record);
    case TorchLogKind::watchdog_timeout:
      return WatchdogTimeout{record.value,     record.value2, record.count,       PlaceOf(record),
                             record.count_out, record.object, record.reason_line, record.left_s};
    case TorchLogKind::watchdog_status:
    case TorchLogKind::dump_signal: return WorkCounters{record.value, record.value2};
    case TorchLogKind::dump_started:
    case TorchLogKind::dump_written: return FilePath{record.subject};
    case TorchLogKind::heartbeat_stuck: return HeartbeatStuck{record.value, record.subject, record.object == "engine"};
    case TorchLogKind::store_lost:
    case TorchLogKind::connection_lost: return LostPeerOf(record);
    case TorchLogKind::mismatch_report:
      return MismatchReport{record.subject,
                            record.count,
                            record.value2,
                            record.object,
                            record.cure,
                            record.of_checker && record.file != kGloo,
                            record.of_checker && record.file == kGloo};
    case TorchLogKind::desync_report: return DesyncOf(record);
    case TorchLogKind::monitored_barrier_failed: return BarrierFailure{record.value, record.value2 == 1};
    case TorchLogKind::memory_use: return HostMemoryUse{record.subject};
    case TorchLogKind::interface_used: return NetworkDevice{"lo", "", DeviceUse::setup};
    case TorchLogKind::straggler_report: return SlowRankReport{record.host, record.subject, record.value};
    case TorchLogKind::ddp_unused_parameters:
    case TorchLogKind::ddp_marked_twice: return DdpParameters{record.subject, false, record.reason_line};
    case TorchLogKind::exception:
      return Raised{record.subject,
                    PlaceOf(record),
                    {},
                    static_cast<Activity>(record.during),
                    record.in_thread,
                    false,
                    record.caught_there,
                    false,
                    {},
                    record.of_spawn,
                    record.in_collective,
                    record.of_job,
                    record.of_parent};
    case TorchLogKind::cuda_error: return CudaError{record.subject, record.object};
    case TorchLogKind::nccl_error: return NcclErrorOf(record);
    case TorchLogKind::abort_signal: return Abort{record.subject, record.object, {}};
    case TorchLogKind::oom_kill:
      return OomKill{record.subject, MemoryLimitOf(record.value), -1, record.count,
                     MemoryVictim{record.subject == kRaysMonitor      ? MemoryKiller::ray
                                  : record.subject == kSystemdsKiller ? MemoryKiller::systemd
                                  : record.subject == kContainerStart ? MemoryKiller::container_start
                                                                      : MemoryKiller::not_told,
                                  record.object, record.host, record.cure}};
    case TorchLogKind::job_time_limit: return TimeLimit{record.subject};
    case TorchLogKind::node_failed: return NodeFailure{record.subject, record.object == kHeartbeat};
    case TorchLogKind::store_wait_timeout:
      return StoreWait{record.subject,
                       record.value,
                       record.value2 == 1,
                       record.object,
                       IsKeyOfGroup(record.subject),
                       std::string(OwnKeyIn(record.subject))};
    case TorchLogKind::rendezvous_incomplete:
      return Rendezvous{record.value,
                        record.value2,
                        record.subject == "waiting",
                        record.subject == "launcher" ? static_cast<LaunchProblem>(record.count) : LaunchProblem::none,
                        record.object.starts_with("/job:") ? record.object : std::string(),
                        record.subject == "agents",
                        record.object.starts_with("key ") ? record.object.substr(4) : std::string(),
                        record.subject == "launcher" ? record.object : std::string(),
                        record.host,
                        record.subject == "launcher" && Contains(record.object, "redential")};
    case TorchLogKind::store_unreachable: return UnreachableOf(record);
    case TorchLogKind::shared_memory_full:
    case TorchLogKind::disk_full: return NoSpace{record.object, SpaceLimitOf(record.value)};
    case TorchLogKind::port_in_use: return PortTaken{record.value};
    case TorchLogKind::scheduler_kill:
      return OutsideEnd{static_cast<SchedulerKill>(record.value), record.object, record.host, record.cure};
    case TorchLogKind::peer_access_failed:
    case TorchLogKind::fabric_down:
      return CudaRefusal{record.subject, record.subject == kNoSwitch               ? FabricFault::no_switch
                                         : record.subject == kFabricManagerStopped ? FabricFault::stopped
                                                                                   : FabricFault::not_started};
    case TorchLogKind::rdma_failed: {
      RdmaFailure failure;
      failure.fault = static_cast<RdmaFault>(record.value);
      failure.only_warned = record.subject == "limit";
      if (failure.only_warned) failure.code = std::max<int64_t>(record.count, 0);
      failure.may_go_on = record.subject == "refused";
      return failure;
    }
    case TorchLogKind::model_mismatch:
      return ModelMismatch{record.value, record.subject, record.object, record.count, record.count_out};
    case TorchLogKind::connect_failed: return ConnectFailure{record.object, record.subject};
    case TorchLogKind::nccl_warning: return WarningOf(record);
    case TorchLogKind::xla_wait: return XlaWaitOf(record);
    case TorchLogKind::start_pending: return PendingOf(record);
    case TorchLogKind::node_count: return NodeCount{record.value, -1};
    case TorchLogKind::setting: return EnvironmentSetting{record.subject, record.object};
    case TorchLogKind::gil_blocked:
    case TorchLogKind::program_left:
    case TorchLogKind::restarted:
    case TorchLogKind::barrier_passed: break;
  }
  return {};
}

}  // namespace tacet
