// SPDX-License-Identifier: Apache-2.0
#include "report/profile/profile_report.h"

namespace tacet {

// docs/profile.md holds the output of `tacet profile --explain`: write it anew after a change.
std::span<const Definition> ProfileDefinitions() {
  static constexpr Definition kDefinitions[] = {
      {"step",
       "One iteration as the profiler marks it (ProfilerStep#N); without marks the whole recording, first to "
       "last GPU event. The job's step time is the mean over steps and ranks."},
      {"compute", "Time with at least one kernel running that is not communication, all streams merged."},
      {"exposed communication", "Time with a communication kernel and no compute kernel running."},
      {"hidden communication",
       "Time with a communication and a compute kernel running together. It is part of compute "
       "as well; the budget counts it once."},
      {"copies", "Time in which only copies and memsets run."},
      {"idle",
       "Time in which nothing runs on the device. A gap belongs to the GPU event that ends it and is split at "
       "the start of the host call that launched it."},
      {"host wait", "The part of a gap before that host call: the host had not asked for more work."},
      {"waiting data", "Host wait while the host was inside a data loader."},
      {"launch", "The part of a gap from that host call on: launch latency and waits between streams."},
      {"budget",
       "compute without communication + hidden + exposed + copies + host wait + launch + waiting data. The sum "
       "is the step, to the nanosecond."},
      {"calls, bytes",
       "Operations whose kind and size all recorded members show alike; bytes are S of nccl-tests: the larger of input "
       "and output of one rank."},
      {"size class", "Operations up to this many bytes and more than half of it."},
      {"wait",
       "Own kernel start to the last member's kernel start, on aligned clocks: the mean of the recorded members, "
       "summed "
       "over calls (wait_ns in JSON and CSV: summed over members too). From durations only: own duration minus the "
       "shortest. \"?\": no call was recorded by two members."},
      {"transfer", "Last member's start to the last end, summed over calls. From durations only: the shortest."},
      {"algorithm bandwidth", "Bytes / transfer, GB/s = 1e9 bytes/s."},
      {"bus bandwidth",
       "Algorithm bandwidth times nccl-tests' factor: all_reduce 2(n-1)/n; all_gather, reduce_scatter, "
       "all_to_all, gather, scatter (n-1)/n; broadcast, reduce, send, recv 1."},
      {"share of peak",
       "Bus bandwidth over what one device's NVLink (members on one host) or network card (several "
       "hosts) moves in one direction, by the device's name or --peak-gbs."},
      {"group share",
       "Kernel time of a group's operations, waiting included, over the step time of its members; groups of one role "
       "(all tensor-parallel groups) together. For tensor parallelism this is what it costs."},
      {"communication share",
       "From records without a trace: kernel time, as a share of the step, of the group that has the most. Steps are "
       "then periods of the sequence of operations."},
      {"clock offset",
       "A rank's clock minus the reference rank's, from the ends of operations in which all take part. "
       "The remaining error is the standard error of that estimate."},
      {"lateness",
       "How much longer the median rank waits in communication than this rank, per step: all ranks together take the "
       "same time, so the rank that waits least has the most work of its own. In traces only waiting that no compute "
       "hides counts. With few ranks the straggler itself moves the median, so its lateness is understated; it is "
       "never shown as less than its cost."},
      {"straggler",
       "A rank whose lateness would occur by chance in fewer than 1 of 100 healthy jobs (Student's t over all ranks), "
       "and for which the others wait at least 3.5 % of the step; or the only rank that stalls more often than ranks "
       "of healthy jobs do, if the others wait as long for that."},
      {"confidence",
       "How certain it is that a rank is late. What that costs is an estimate of its own, with its 95 % interval: a "
       "rank can certainly be late at a cost that is poorly known, for instance where it stalls in a few steps only."},
      {"z", "Mean lateness, without the most extreme steps, over its standard error."},
      {"cost",
       "What all ranks would gain per step if the stragglers kept pace with the slowest of the others, as a share of "
       "the step, with its 95 % interval. Where the records tell when hosts issued the operations, the steps are "
       "replayed with a peer's times in place of the straggler's: lateness that other waits hide costs nothing."},
      {"slowdown S",
       "Replayed step time with the recorded times over the replayed time in which every operation takes "
       "the mean of its kind (the median for communication)."},
      {"S of a part", "The same with the recorded times of that operation type, data-parallel rank or stage only."},
      {"M_W", "Share of the slowdown that goes away when the worst 3 % of workers get ideal times."},
      {"M_S", "Share of the slowdown that goes away when the last stage gets ideal times."},
      {"bubble", "Mean over stages of the share of the step in which a stage only waits for its neighbors."},
      {"theoretical bubble", "(p-1)/(v m+p-1) for p stages, m microbatches and v model chunks per stage."},
      {"stage imbalance", "Compute of the heaviest stage over the median of the others."},
      {"DDP buckets", "The all-reduces of a step whose sizes add up to the gradients, in order."},
      {"bucket_cap_mb",
       "The cap with the shortest predicted step: buckets are filled with gradients as they become "
       "ready, each takes latency + bytes / bandwidth as fitted to the recording."},
      {"FSDP volume",
       "Unsharded bytes gathered and scattered per step. Theory for P bytes of parameters: reduce-scatter "
       "P, all-gather 2 P less the units kept after the forward pass."},
      {"all-to-all balance",
       "The most that a rank receives in one call over the mean, calls weighted by bytes; 1 is even. \"Lasting\": the "
       "same for the sums over all calls, so that ranks that take turns count as even. The gain is the transfer time "
       "that even calls would save."},
      {"MFU",
       "FLOPs of the model per second over the devices' dense bf16 peak: (6 N + 12 L H Q T) per token (PaLM), from "
       "--params and --tokens, or with N = 12 L h^2 + V h from the transformer's shape."},
      {"HFU",
       "The same for what the hardware did, all ranks of a device together: recomputed activations count (8 N + "
       "16 L H Q T when all "
       "are), or the matrix shapes of the trace."},
      {"overlap efficiency",
       "1 - (actual - max(compute, communication)) / min(compute, communication), actual being the time in which "
       "either runs: 1 when the shorter of the two is completely hidden, 0 when they run one after the other. Idle "
       "time is excluded."},
      {"communication efficiency",
       "Time that the transfers would take at the link's peak over the time they took, without waiting for peers; the "
       "mean of \"share of peak\" weighted by transfer time. Not reported for TCP sockets, whose peak is unknown; "
       "--peak-gbs "
       "sets it."},
      {"fraction hidden",
       "Hidden communication as a share of all communication (hidden and exposed) in the recorded steps; for the job, "
       "of the mean budget."},
      {"peak allocated, reserved",
       "Largest sum of live tensors, and largest memory the caching allocator took from the "
       "device. Fragmentation is 1 - allocated / reserved at the peak. Pressure: more than 92 % of the device "
       "reserved, or "
       "an allocation that failed."},
      {"memory split",
       "By sizes and lifetimes, since traces do not state purposes. Parameters: as large as the gradients of a step (a "
       "rank's shard where sharded). Persistent: what else is allocated at the lowest point, optimizer state and "
       "communication buckets. Transient: peak minus lowest, activations, gradients and workspace."},
      {"verdict",
       "compute-bound: compute takes at least 75 % of the step. Otherwise the largest of exposed communication, idle "
       "time "
       "(host wait, launch and data) and copies decides, when it is at least 15 % of the step and 1.25 times the "
       "next: communication-bound or pipeline bubble (in a pipeline), host-bound, copy-bound. Otherwise balanced."},
      {"gain",
       "Predicted share of the step time saved. \"At most\" marks what would be saved if the whole loss went "
       "away. Gains of several pieces of advice do not add up."},
  };
  return kDefinitions;
}

}  // namespace tacet
