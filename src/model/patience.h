// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace tacet {

// How long is too long, how close is the same moment, how few are few: every such limit, once. `diagnose`, the agent,
// the server and `tacet run` share it. Each field says where it comes from: *protocol* (a documented limit), *measured*
// (from jobs on record) or *guess*. A test halves and doubles every field over all test data.
struct Patience {
  static constexpr int64_t kSecond = 1'000'000'000;

  // A dump taken on demand from a running job is written moments after its newest entry; older than this, it waits.
  int64_t fresh_ns = 10 * kSecond;  // measured
  // The first operation of all waits for members that still start up, and for connections.
  int64_t starting_ns = 60 * kSecond;  // guess
  // By times in black boxes: nothing has ended for so long ...
  int64_t overdue_ns = 3 * kSecond;  // measured
  // ... and for so many times the longest pause before it ...
  int64_t overdue_times = 5;  // guess
  // ... of at least so many ends.
  size_t overdue_ends = 20;  // guess

  // Heartbeats that a busy machine may miss.
  int64_t missed_beats = 3;  // measured
  // ... and how long they must be missing, however fast they come.
  int64_t silence_ns = 3 * kSecond;  // measured
  // Clocks of hosts differ, and so do the times at which their boxes are copied.
  int64_t other_host_ns = 10 * kSecond;  // guess
  // A killed process may stay in the kernel for as long as a driver needs to tear it down.
  int64_t tear_down_ns = 60 * kSecond;  // guess
  // Silent from this long before the end of the wait: part of it, not its end.
  int64_t part_of_wait_ns = 10 * kSecond;  // guess
  // Processes that fell silent within this time fell together.
  int64_t together_ns = 3 * kSecond;  // measured

  // Connections that close so long after a watchdog fired close because the job is being ended.
  int64_t clean_up_ns = 5 * kSecond;  // measured
  // A process that wrote or called something so long after its peers began to wait lived on.
  int64_t lived_on_ns = 3 * kSecond;  // guess
  // Stacks taken within this margin show one moment.
  int64_t stack_margin_ns = 2 * kSecond;  // measured
  // Output that ended so long before that of others ended by itself.
  int64_t early_end_ns = 10 * kSecond;  // guess
  // The clock of log lines: two times within this are not ordered.
  int64_t log_resolution_ns = 1'500'000'000;  // protocol: lines are stamped to the second

  // Progress lines that came at a steady rhythm and then did not come for so many times that rhythm ...
  int64_t quiet_times = 10;  // guess
  // ... and for at least this long: a standstill.
  int64_t quiet_ns = 30 * kSecond;  // guess

  // A line of progress at most so long before the scheduler ended the job: the job was still running.
  int64_t moved_ns = 120 * kSecond;  // guess

  // Dumps so much older than the newest are of another run: recorders overwrite one file per rank.
  int64_t stale_ns = int64_t{2} * 3600 * kSecond;  // guess

  // Times of steps that make a trend: where the job prints how long a step took ...
  size_t few_exact_steps = 3;  // guess
  // ... and where it prints a rate, which a progress bar smooths.
  size_t few_steps = 6;  // guess
  // Growing from line to line, by so many times from the first to the last.
  double growing_steps = 1.5;  // guess
  // Growing steadily, in every part of a record with many times that the job itself measured.
  double steadily_slower_steps = 1.2;  // guess
  // Slower for good: the last third takes so many times as long as the first half.
  double slower_steps = 2;  // guess

  // By the times that a job prints: a rank's own part of the step is this much longer than that of any other rank.
  // Ranks with equal shares of the work differ by some percent; a node with other clocks by 20 % ...
  double printed_longer = 0.5;  // measured
  // ... and a stage of a pipeline than that of any other stage: embedding and loss make the first and the last one
  // longer by up to a half.
  double printed_stage_longer = 1;  // guess
  // What it takes longer is this part of its step: less costs little, whatever the ratio.
  double printed_share = 0.1;  // guess
  // Lines on end, up to the last, in which a printed figure is not finite: scalers and empty batches give one or two ...
  int64_t lost_lines = 3;  // guess
  // ... after so many lines with a number: a value that never was one is not there yet, or nobody's.
  int64_t lines_before_lost = 2;  // guess
  // Replicas' norms that differ by less are one value, rounded or summed in another order.
  double replica_tolerance = 2e-6;  // measured: float32 sums in another order

  // A rank this many operations behind all others is not merely late.
  size_t far_behind = 64;  // measured
  // Missing files of at most one in so many ranks are suspicious; of more, they were probably not collected.
  size_t few_absent_in = 4;  // guess
  // Beside a rank whose standstill is proven, an absent one is named only if at most one in so many is missing.
  size_t nearly_all_in = 8;  // guess

  // Watching live: nothing in a group may move for longer than this.
  int64_t watch_floor_ns = 4 * kSecond;  // measured: garbage collection, files, a busy neighbour
  // As many times what is normal for the operation ...
  int64_t watch_normal_times = 8;  // measured
  // ... and as many times the longest pause after which the group went on.
  int64_t watch_pause_times = 3;  // guess
  // An operation and size that this process has not finished often enough.
  int64_t watch_unseen_ns = 30 * kSecond;  // guess
  // A group that has finished fewer than `watch_first_operations` warms up.
  int64_t watch_first_ns = 120 * kSecond;  // guess
  uint64_t watch_first_operations = 8;     // guess
  // All seen members issued it and no GPU began it: they compute alike.
  int64_t watch_not_begun_ns = 30 * kSecond;  // guess
  // A member's process is gone.
  int64_t watch_lost_ns = 2 * kSecond;  // measured
  // No limit grows beyond this.
  int64_t watch_most_ns = 600 * kSecond;  // protocol: NCCL's own watchdog

  // `tacet run`: no output, or no use of the CPU, for so long makes it look at the ranks.
  int64_t run_quiet_ns = 15 * kSecond;  // guess
  // Between looks while nothing moves, and at the most while something does.
  int64_t run_look_ns = 5 * kSecond;        // guess
  int64_t run_most_look_ns = 60 * kSecond;  // guess
  // Somebody waits and nobody has moved for so long: a hang.
  int64_t run_still_ns = 30 * kSecond;  // guess
  // As many times the longest standstill after which the job went on.
  int64_t run_pause_times = 2;  // guess
  // Of one core; a rank that uses less is idle.
  int64_t run_busy_percent = 5;  // guess
  // What a process reads and writes per second without getting on: connections that are kept alive. NCCL's and
  // PyTorch's own threads do a few hundred bytes, and not all of them can be told by their names.
  int64_t run_chatter_bytes = 4096;  // guess
};

// Every field as (name, pointer to member), for the test that halves and doubles them and for `tacet diagnose --why`.
template <typename Visit>
void ForEachField(Patience& patience, const Visit& visit) {
  visit("fresh_ns", patience.fresh_ns);
  visit("starting_ns", patience.starting_ns);
  visit("overdue_ns", patience.overdue_ns);
  visit("overdue_times", patience.overdue_times);
  visit("overdue_ends", patience.overdue_ends);
  visit("missed_beats", patience.missed_beats);
  visit("silence_ns", patience.silence_ns);
  visit("other_host_ns", patience.other_host_ns);
  visit("tear_down_ns", patience.tear_down_ns);
  visit("part_of_wait_ns", patience.part_of_wait_ns);
  visit("together_ns", patience.together_ns);
  visit("clean_up_ns", patience.clean_up_ns);
  visit("lived_on_ns", patience.lived_on_ns);
  visit("stack_margin_ns", patience.stack_margin_ns);
  visit("early_end_ns", patience.early_end_ns);
  visit("log_resolution_ns", patience.log_resolution_ns);
  visit("quiet_times", patience.quiet_times);
  visit("quiet_ns", patience.quiet_ns);
  visit("moved_ns", patience.moved_ns);
  visit("stale_ns", patience.stale_ns);
  visit("far_behind", patience.far_behind);
  visit("few_absent_in", patience.few_absent_in);
  visit("nearly_all_in", patience.nearly_all_in);
}

}  // namespace tacet
