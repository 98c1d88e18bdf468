// SPDX-License-Identifier: Apache-2.0
#include "launch/lab/lab_faults.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/text_scan.h"

namespace tacet {
namespace {

using Who = LabFault::Who;
using Needs = LabFault::Needs;

// Pauses are longer than `--hang-after` of the lab: look-alikes must really look alike.
const auto& Table() {
  static const auto kTable = std::to_array<LabFault>({
      {.name = "none", .what = "healthy: 100 steps, the loss decreases", .causes = {}, .who = Who::nobody},
      {.name = "pauses", .what = "healthy: all ranks pause", .causes = {}, .who = Who::nobody, .pause_s = 14},
      {.name = "evaluates",
       .what = "healthy: one rank computes, the others wait",
       .causes = {},
       .who = Who::nobody,
       .pause_s = 14},
      {.name = "saves-alone",
       .what = "healthy: one rank writes a file, the others wait at a barrier",
       .causes = {},
       .who = Who::nobody,
       .pause_s = 14},
      {.name = "late-join",
       .what = "healthy: one rank joins 14 s after the others",
       .causes = {},
       .who = Who::nobody,
       .pause_s = 14},

      {.name = "stuck-sleep",
       .what = "polls for a batch that never arrives",
       .causes = {"rank-stuck-on-host"},
       .function = "poll_store"},
      {.name = "stuck-queue",
       .what = "waits on a queue that nothing fills",
       .causes = {"rank-stuck-on-host"},
       .function = "take_batch"},
      {.name = "stuck-lock",
       .what = "takes a lock twice",
       .causes = {"rank-stuck-on-host"},
       .function = "count_samples"},
      {.name = "stuck-pipe",
       .what = "reads a pipe that nothing writes to",
       .causes = {"rank-stuck-on-host"},
       .function = "read_list"},
      {.name = "stuck-spin",
       .what = "loops forever in Python",
       .causes = {"rank-stuck-on-host"},
       .function = "tokenize",
       .timeout_s = 30},
      {.name = "stuck-native",
       .what = "is in C code that holds the GIL",
       .causes = {"rank-stuck-on-host"},
       .function = "score"},
      {.name = "stuck-saving",
       .what = "never finishes writing its checkpoint",
       .causes = {"rank-stuck-on-host"},
       .function = "write_checkpoint"},
      {.name = "stuck-loader",
       .what = "its data loader worker hangs",
       .causes = {"rank-stuck-on-host"},
       .function = "next_batch"},
      {.name = "frozen", .what = "SIGSTOP", .causes = {"rank-frozen"}},
      {.name = "absent",
       .what = "never joins the group",
       .causes = {"init-rank-missing", "rank-stuck-on-host"},
       .function = "poll_store"},
      {.name = "late",
       .what = "one step takes longer than PyTorch's timeout",
       .causes = {"timeout-too-short", "rank-stuck-on-host"},
       .timeout_s = 20,
       .pause_s = 60},

      {.name = "killed", .what = "SIGKILL", .causes = {"rank-dead"}},
      {.name = "segfault", .what = "SIGSEGV", .causes = {"rank-dead"}},
      {.name = "aborts", .what = "SIGABRT", .causes = {"rank-dead"}},
      {.name = "terminated", .what = "SIGTERM", .causes = {"rank-dead"}},
      {.name = "exits", .what = "exits with code 3", .causes = {"rank-dead"}},
      {.name = "raises", .what = "raises an error", .causes = {"application-exception"}},
      {.name = "raises-all",
       .what = "every rank raises the same error",
       .causes = {"application-exception"},
       .who = Who::anybody},
      {.name = "loader-killed",
       .what = "its data loader worker is killed",
       .causes = {"application-exception", "rank-dead", "rank-out-of-memory"}},
      {.name = "loader-raises", .what = "its data loader worker raises an error", .causes = {"application-exception"}},
      {.name = "host-memory", .what = "asks for more memory than there is", .causes = {"rank-out-of-memory"}},
      {.name = "cgroup-memory",
       .what = "exceeds the memory limit of its cgroup",
       .causes = {"rank-out-of-memory"},
       .needs = Needs::memory_cgroup},
      {.name = "disk-full", .what = "writes its checkpoint to a full disk", .causes = {"disk-full"}},

      {.name = "no-interface", .what = "its network interface does not exist", .causes = {"init-no-interface"}},
      {.name = "port-taken", .what = "the rendezvous port is in use", .causes = {"port-in-use"}, .who = Who::anybody},
      {.name = "model-differs",
       .what = "builds a wider layer than the others",
       .causes = {"model-differs"},
       .first_rank = 1},
      {.name = "unused", .what = "every rank skips a layer", .causes = {"ddp-unused-parameters"}, .who = Who::anybody},
      {.name = "unused-one",
       .what = "one rank skips a layer",
       .causes = {"ddp-unused-parameters", "collective-skipped", "collective-mismatch-size",
                  "collective-mismatch-operation"},
       .full = true},

      {.name = "wrong-size",
       .what = "half as many elements once",
       .causes = {"collective-mismatch-size"},
       .full = true},
      {.name = "wrong-dtype",
       .what = "a different element type once",
       .causes = {"collective-mismatch-dtype"},
       .full = true},
      {.name = "wrong-op",
       .what = "all_gather instead of all_reduce, once",
       .causes = {"collective-mismatch-operation"},
       .full = true},
      {.name = "wrong-reduction",
       .what = "MAX instead of SUM, once",
       .causes = {"collective-mismatch-reduction"},
       .needs = Needs::nccl,
       .full = true},
      {.name = "wrong-root",
       .what = "a different root once",
       .causes = {"collective-mismatch-root"},
       .needs = Needs::nccl,
       .full = true},
      {.name = "skipped",
       .what = "skips one collective",
       .causes = {"collective-skipped", "collective-mismatch-size", "collective-mismatch-operation"},
       .full = true},
      {.name = "extra",
       .what = "one collective too many",
       .causes = {"collective-extra", "collective-mismatch-size", "collective-mismatch-operation"},
       .full = true},
      {.name = "barrier-alone",
       .what = "a barrier that only one rank reaches",
       .causes = {"collective-extra", "collective-mismatch-operation", "collective-mismatch-size"},
       .full = true},
      {.name = "object-skipped",
       .what = "skips a broadcast of a Python object",
       .causes = {"collective-skipped", "collective-mismatch-operation", "collective-mismatch-size"},
       .full = true},
      {.name = "short-data",
       .what = "has fewer batches and waits at the final barrier",
       .causes = {"collective-skipped", "collective-mismatch-operation", "collective-mismatch-size"},
       .full = true},
      {.name = "groups-swapped",
       .what = "odd ranks use two groups in the opposite order",
       .causes = {"group-order-inversion"},
       .who = Who::anybody,
       .needs = Needs::nccl},
      {.name = "send-cycle",
       .what = "every rank sends before it receives",
       .causes = {"p2p-cycle"},
       .who = Who::anybody},
      {.name = "recv-unmatched", .what = "one receive too many", .causes = {"p2p-unmatched"}, .first_rank = 1},
      {.name = "send-missing",
       .what = "skips one send",
       .causes = {"p2p-unmatched", "collective-skipped"},
       .needs = Needs::nccl,
       .spared = 1},  // the last one sends nothing

      {.name = "gpu-busy", .what = "a kernel that does not finish", .causes = {"gpu-stalled"}, .needs = Needs::nccl},
      {.name = "gpu-assert",
       .what = "a device-side assertion",
       .causes = {"gpu-fault", "application-exception"},
       .needs = Needs::nccl},
      {.name = "gpu-memory", .what = "CUDA out of memory", .causes = {"rank-out-of-memory"}, .needs = Needs::nccl},

      {.name = "link-cut",
       .what = "the link between two nodes goes down",
       .causes = {"network-fault", "transport-stalled"},
       .who = Who::anybody,
       .needs = Needs::network_namespaces},
      {.name = "link-loss",
       .what = "the link loses every packet",
       .causes = {"network-fault", "transport-stalled"},
       .who = Who::anybody,
       .needs = Needs::network_namespaces},
  });
  return kTable;
}

std::string ShowRanks(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + std::to_string(rank);
  return text.empty() ? "nobody" : (ranks.size() == 1 ? "rank " : "ranks ") + text;
}

}  // namespace

std::span<const LabFault> LabFaults() { return Table(); }

const LabFault* FindLabFault(std::string_view name) {
  for (const LabFault& fault : LabFaults())
    if (fault.name == name) return &fault;
  return nullptr;
}

std::string WhatIsWrong(const LabFault& fault, int chosen_rank, const LabVerdict& verdict) {
  if (fault.who == Who::nobody) {
    if (!verdict.given || verdict.status == "healthy") return "";
    return "reported " + verdict.status + ": " + verdict.headline;
  }
  if (!verdict.given) return "nothing was reported";
  if (std::find(fault.causes.begin(), fault.causes.end(), verdict.cause) == fault.causes.end())
    return (verdict.cause.empty() ? "no cause" : "cause " + verdict.cause) + ", " + ShowRanks(verdict.ranks);
  if (fault.who == Who::chosen && verdict.ranks != std::vector<int>{chosen_rank})
    return "names " + ShowRanks(verdict.ranks);
  if (!fault.function.empty() && !Contains(verdict.where, std::string(fault.function) + " (train.py:"))
    return "does not name " + std::string(fault.function) + " and its line";
  return "";
}

}  // namespace tacet
