// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tacet {

// Every phrase that makes a line worth a closer look. One pass over a line finds all of them, so that the readers below
// need not search the line again and again.
enum class Keyword : uint8_t {
  traceback,
  framed_traceback,
  notebook_traceback,
  work,
  failed_work,
  broken_report,
  enqueued_work,
  received_signal,
  prepare_dump,
  dump_to,
  finished_writing,
  got_stuck,
  monitor_timeout,
  acquire_gil,
  terminating,
  should_dump,
  broadcast_failed,
  store_down,
  group_left,
  on_socket,
  remote_error,
  aborted_comm,
  init_options,
  desync,
  taken_down,
  new_comms,
  nccl_error,
  nccl_reason,
  nccl_result,
  last_error,
  cuda_error,
  cuda_failure,
  out_of_memory,
  tried_to_allocate,
  mismatch,
  no_grad,
  prior_iteration,
  ready_once,
  ready_twice,
  monitored_barrier,
  peer_gone,
  socket_timeout,
  wait_timeout,
  client_timeout,
  waiting_clients,
  store_barrier,
  store_barrier_wait,
  store_barrier_passed,
  rendezvous_timeout,
  rendezvous_connection,
  rdzv_endpoint,  // of torchrun's list of settings
  agent_runs,     // a call of torchrun's agent once its workers run
  terminate_called,
  unhandled,
  fatal_python,
  fatal_signal,
  core_dumped,
  killed,
  exit_code,
  idle_engine,
  nodes,
  device_assert,
  restart,
  closing_signal,
  death_signal,
  unable_to_shutdown,
  return_code,
  killing_subprocess,
  mpi_noticed,
  mpi_help,  // the first words of a note of Open MPI's
  mpi_error,
  mpi_detail,  // words that mean something only beside those of mpi_error
  batch_killed,
  spawn_ended,
  srun,
  slurmstepd,
  slurmd,  // what slurmstepd says, in the log of its daemon
  sacct,
  summary_field,
  worker_ended,
  stalled_tensors,
  known_error,  // of torch_log_known_line.h: an error of the process itself
  known_line,   // ... what it tells of others
  other_library,
  library_line,  // a mark of torch_log_library_table.h
  error_record,
  kernel_kill,
  // Words that a job's own lines may carry; a closer look decides.
  may_progress,
  loss_scale,
  not_finite,
  may_finish,
  may_tell_pid,
  python_warning,
  // Words that tell a cause; torch_log_limits and torch_log_scheduler look closer.
  no_space,
  shared_memory,
  port_taken,
  outside_kill,
  model_check,
  gpu_path,
  rdma_path,
  missing_symbol,
  setup_words,
  refused,
  pending,  // words of schedulers, and common ones among them
  count,
};

class KeywordSet {
 public:
  bool has(Keyword keyword) const { return bits_.test(static_cast<size_t>(keyword)); }
  bool any() const { return bits_.any(); }
  void add(Keyword keyword) { bits_.set(static_cast<size_t>(keyword)); }

 private:
  std::bitset<static_cast<size_t>(Keyword::count)> bits_;
};

KeywordSet FindKeywords(std::string_view line);

}  // namespace tacet
