// SPDX-License-Identifier: Apache-2.0
#include "model/events/event_witness.h"

namespace tacet {

std::string_view Name(Witness witness) {
  switch (witness) {
    case Witness::self: return "self";
    case Witness::peer: return "peer";
    case Witness::launcher: return "launcher";
    case Witness::kernel: return "kernel";
    case Witness::scheduler: return "scheduler";
    case Witness::tool: return "tool";
    case Witness::reporter: return "reporter";
  }
  return "";
}

Witness WitnessOf(const Event& event) {
  if (event.Means(Meaning::in_prose)) return Witness::reporter;
  switch (event.kind) {
    case EventKind::oom_kill:
    case EventKind::xid:
    case EventKind::nvlink_error:
    case EventKind::ecc_error:
    case EventKind::segfault:
    case EventKind::hung_task:
    case EventKind::pcie_error:
    case EventKind::iommu_fault:
    case EventKind::storage_lost:
    case EventKind::storage_back:
    case EventKind::link_down:
    case EventKind::link_up: return Witness::kernel;
    case EventKind::job_time_limit:
    case EventKind::node_failed:
    case EventKind::scheduler_kill: return Witness::scheduler;
    case EventKind::process_exited:
    case EventKind::process_killed: return Witness::launcher;
    case EventKind::connection_lost:
    case EventKind::desync_report:
    case EventKind::monitored_barrier_failed:
    case EventKind::rendezvous_incomplete: return Witness::peer;
    case EventKind::site_message: return event.As<SiteNote>().by_kernel ? Witness::kernel : Witness::tool;
    case EventKind::straggler_report:
    case EventKind::gpu_check:
    case EventKind::ras_rank_dead:
    case EventKind::ras_rank_unresponsive:
    case EventKind::ras_rank_missing: return Witness::tool;
    case EventKind::told_hang:
    case EventKind::told_stop:
    case EventKind::told_slow:
    case EventKind::told_wrong:
    case EventKind::told_remedy:
    case EventKind::told_uneven:
    case EventKind::told_guard:
    case EventKind::told_not_finite: return Witness::reporter;
    default: return Witness::self;
  }
}

}  // namespace tacet
