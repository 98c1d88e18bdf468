// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_keywords.h"

#include <array>
#include <bit>
#include <cstring>

namespace tacet {
namespace {

struct Phrase {
  Keyword keyword;
  std::string_view text;  // four characters or more
};

constexpr Phrase kPhrases[] = {
    {Keyword::traceback, "Traceback (most recent call last):"},
    {Keyword::framed_traceback, "Traceback (most recent call last) "},
    {Keyword::work, "WorkNCCL("},
    {Keyword::work, "WorkHCCL("},
    {Keyword::work, "WorkMCCL("},
    {Keyword::work, "WorkXCCL("},
    {Keyword::work, "WorkBCCL("},
    {Keyword::work, "WorkCNCL("},
    {Keyword::work, "WorkBKCL("},
    {Keyword::failed_work, "detected by watchdog at work"},
    {Keyword::failed_work, "Timeout at NCCL work:"},
    {Keyword::broken_report, "Failed to retrieve NCCL_DESYNC_DEBUG report"},
    {Keyword::broken_report, "Failed to retrieve TORCH_NCCL_DESYNC_DEBUG report"},
    {Keyword::enqueued_work, "last enqueued NCCL work:"},
    {Keyword::received_signal, "Received a "},
    {Keyword::prepare_dump, "preparing to dump debug info"},
    {Keyword::dump_to, "dumping nccl trace to "},
    {Keyword::finished_writing, "debug info to "},
    {Keyword::got_stuck, "watchdog got stuck for"},
    {Keyword::monitor_timeout, "monitor thread timeout"},
    {Keyword::monitor_timeout, "Heartbeat monitor timed out"},
    {Keyword::acquire_gil, "Could not acquire GIL"},
    {Keyword::terminating, "Terminating the process after attempting to dump"},
    {Keyword::should_dump, "\"should dump\" flag on TCPStore"},
    {Keyword::broadcast_failed, "Failed to broadcast"},
    {Keyword::store_down, "Store is down"},
    {Keyword::on_socket, " failed on SocketImpl("},
    {Keyword::on_socket, "Failed to recv, got 0 bytes"},
    {Keyword::remote_error, "remote error detected from rank"},
    {Keyword::aborted_comm, "NCCLABORTEDCOMM"},
    {Keyword::init_options, "initialization options: size:"},
    {Keyword::desync, "Timeout at collective:"},
    {Keyword::taken_down, "taking the entire process down"},
    {Keyword::new_comms, "[TC][rank="},
    {Keyword::new_comms, "nccl hit async error on rank"},
    {Keyword::nccl_error, "NCCL error"},
    {Keyword::nccl_error, "NCCL Error"},
    {Keyword::nccl_reason, "Duplicate GPU detected"},
    {Keyword::error_record, "\"message\": \""},
    {Keyword::kernel_kill, "out of memory: Kill"},
    {Keyword::kernel_kill, " oom_kill event"},
    {Keyword::other_library, "HCCL error"},
    {Keyword::other_library, "hccl api failed"},
    {Keyword::other_library, "function error: Hccl"},
    {Keyword::other_library, "acl api failed"},
    {Keyword::other_library, "EI00"},
    {Keyword::other_library, "EJ00"},
    {Keyword::other_library, "|CCL_ERROR|"},
    {Keyword::other_library, "[HCL "},
    {Keyword::other_library, "Memory access fault by GPU node"},
    {Keyword::other_library, "HIP failure"},
    {Keyword::other_library, "HW Exception by GPU node"},
    {Keyword::other_library, "Failed to meet rendezvous"},
    {Keyword::other_library, "JAX distributed service detected"},
    {Keyword::other_library, "and may be stuck. Expected "},
    {Keyword::other_library, "Watchdog timeout (self."},
    {Keyword::other_library, "Collective call returned error"},
    {Keyword::other_library, "UCX  ERROR"},
    {Keyword::other_library, "Transport retry count exceeded"},
    {Keyword::other_library, ":Got completion from peer "},
    {Keyword::other_library, ": Got completion from peer "},
    {Keyword::other_library, "ailed to modify QP to RT"},
    {Keyword::other_library, ": Test NCCL failure "},
    {Keyword::other_library, ": Test CUDA failure "},
    {Keyword::idle_engine, "No available shared memory broadcast block"},
    {Keyword::other_library, "Horovod has been shut down"},
    {Keyword::other_library, "hccl fftsplus task timeout"},
    {Keyword::other_library, "tream synchronize timeout"},
    {Keyword::other_library, "tream sync timeout"},
    {Keyword::other_library, "and specific port["},
    {Keyword::other_library, "heartbeat timeout. This indicates"},
    {Keyword::other_library, "Barrier timed out"},
    {Keyword::other_library, "/replica:"},
    {Keyword::other_library, "CollectiveExecutor::StartAbort"},
    {Keyword::other_library, "NET/OFI "},
    {Keyword::other_library, "CCOM WARN "},
    {Keyword::other_library, "libfabric:"},
    {Keyword::stalled_tensors, "Missing ranks:"},
    {Keyword::stalled_tensors, "[missing ranks: "},
    {Keyword::stalled_tensors, "[ready ranks: "},
    {Keyword::stalled_tensors, "Not all ranks joining collective"},
    {Keyword::stalled_tensors, "missing ranks: {"},
    {Keyword::stalled_tensors, "waiting for remainder of ranks"},
    {Keyword::worker_ended, "Child process with PID "},
    {Keyword::worker_ended, "Worker exit type: "},
    {Keyword::worker_ended, "ActorDiedError"},
    {Keyword::worker_ended, "RayActorError"},
    {Keyword::worker_ended, "due to memory pressure"},
    {Keyword::worker_ended, "node running low on memory"},
    {Keyword::worker_ended, ") exited with code "},
    {Keyword::worker_ended, " crashed with exit code "},
    {Keyword::worker_ended, " died with <Signals."},
    {Keyword::worker_ended, " returned non-zero exit status "},
    {Keyword::worker_ended, "OOMKilled"},
    {Keyword::worker_ended, "container init was OOM-killed"},
    {Keyword::worker_ended, "has been marked dead because the detector"},
    {Keyword::worker_ended, "Your MPI job will now abort"},
    {Keyword::worker_ended, "Container rank "},
    {Keyword::worker_ended, "spawn: [WARNING] Terminating process "},
    {Keyword::worker_ended, "terminated with the following error"},
    {Keyword::worker_ended, "Exit Code:"},
    {Keyword::worker_ended, " WTERMSIG "},
    {Keyword::worker_ended, "MPI_ABORT was invoked on rank "},
    {Keyword::worker_ended, " died from signal "},
    {Keyword::worker_ended, " died unexpectedly, shutting down"},
    {Keyword::worker_ended, " exit with status code "},
    {Keyword::worker_ended, "EngineCore failed to start"},
    {Keyword::worker_ended, "ssh: Could not resolve hostname "},
    {Keyword::last_error, "Last error:"},
    {Keyword::device_assert, "] Assertion `"},
    {Keyword::cuda_error, "CUDA error: "},
    {Keyword::cuda_error, "HIP error: "},
    {Keyword::cuda_error, "cuda runtime error ("},
    {Keyword::cuda_error, "Triton Error [CUDA]: "},
    {Keyword::cuda_error, "CUDA driver error: "},
    {Keyword::cuda_error, "cuDNN error: "},
    {Keyword::cuda_failure, "Cuda failure "},
    {Keyword::out_of_memory, "out of memory"},
    {Keyword::mismatch, "Detected mismatch between collectives"},
    {Keyword::no_grad, "did not receive grad for rank"},
    {Keyword::prior_iteration, "Expected to have finished reduction in the prior iteration"},
    {Keyword::prior_iteration, "has parameters that were not used in producing the loss"},
    {Keyword::ready_once, "Expected to mark a variable ready only once"},
    {Keyword::ready_twice, "has been marked as ready twice"},
    {Keyword::monitored_barrier, "monitoredBarrier"},
    {Keyword::peer_gone, "Connection closed by peer"},
    {Keyword::peer_gone, "closed by remote peer"},
    {Keyword::peer_gone, "Connection reset by peer"},
    {Keyword::peer_gone, "Broken pipe"},
    {Keyword::socket_timeout, "Socket Timeout"},
    {Keyword::wait_timeout, "wait timeout after "},
    {Keyword::client_timeout, "socket has timed out after "},
    {Keyword::client_timeout, "socket has failed to connect to any network address of"},
    {Keyword::client_timeout, "connect() timed out. Original timeout was"},
    {Keyword::client_timeout, "host not found: Name or service not known"},
    {Keyword::client_timeout, "host not found: Temporary failure in name resolution"},
    {Keyword::waiting_clients, " clients joined"},
    {Keyword::store_barrier, "in store based barrier on rank"},
    {Keyword::store_barrier_wait, "Waiting in store based barrier"},
    {Keyword::rendezvous_timeout, "RendezvousTimeoutError"},
    {Keyword::rendezvous_connection, "RendezvousConnectionError"},
    {Keyword::terminate_called, "terminate called "},
    {Keyword::fatal_python, "Fatal Python error:"},
    {Keyword::fatal_signal, "*** SIG"},
    {Keyword::core_dumped, "(core dumped)"},
    {Keyword::killed, "Killed"},
    {Keyword::exit_code, "failed (exitcode:"},
    {Keyword::nodes, "nnodes"},
    {Keyword::nodes, "node_rank"},
    {Keyword::nodes, "node-rank"},
    {Keyword::nodes, "num_machines"},
    {Keyword::nodes, "machine_rank"},
    {Keyword::restart, "will restart worker group"},
    {Keyword::closing_signal, "closing signal SIG"},
    {Keyword::death_signal, "death signal, shutting down workers"},
    {Keyword::unable_to_shutdown, "Unable to shutdown process "},
    {Keyword::return_code, "exits with return code = "},
    {Keyword::killing_subprocess, "Killing subprocess "},
    {Keyword::mpi_noticed, " noticed that process rank "},
    {Keyword::mpi_noticed, "Process name: ["},
    {Keyword::mpi_noticed, " RUNNING AT "},
    {Keyword::mpi_noticed, "ORTE has lost communication with "},
    {Keyword::mpi_noticed, "PRTE has lost communication with "},
    {Keyword::mpi_noticed, "An MPI communication peer process has unexpectedly"},
    {Keyword::mpi_noticed, "ORTE was unable to reliably start one or more daemons"},
    {Keyword::batch_killed, ": job killed"},
    {Keyword::spawn_ended, "terminated with signal SIG"},
    {Keyword::spawn_ended, " terminated with exit code "},
    {Keyword::srun, "srun: "},
    {Keyword::slurmstepd, "slurmstepd"},
    {Keyword::summary_field, "time      : 2"},
    {Keyword::summary_field, "rank      : "},
    {Keyword::summary_field, "exitcode  : "},
    {Keyword::may_progress, "step"},
    {Keyword::may_progress, "Step"},
    {Keyword::may_progress, "STEP"},
    {Keyword::may_progress, "iter"},
    {Keyword::may_progress, "Iter"},
    {Keyword::may_progress, "ITER"},
    {Keyword::may_progress, "poch"},
    {Keyword::may_progress, "EPOCH"},
    {Keyword::may_progress, "loss"},
    {Keyword::may_progress, "Loss"},
    {Keyword::may_progress, "atch"},
    {Keyword::may_progress, "it/s"},
    {Keyword::may_progress, "s/it"},
    {Keyword::may_finish, "inish"},
    {Keyword::may_finish, "FINISH"},
    {Keyword::may_finish, "omplete"},
    {Keyword::may_finish, "done"},
    {Keyword::may_finish, "Done"},
    {Keyword::may_finish, "DONE"},
    {Keyword::may_finish, "xiting"},
    {Keyword::may_finish, "xited"},
    {Keyword::may_finish, "end of training"},
    {Keyword::may_finish, "Trainer.fit"},
    {Keyword::may_finish, "train_runtime"},
    {Keyword::may_finish, "uccess"},
    {Keyword::may_tell_pid, "pid "},
    {Keyword::may_tell_pid, "pid="},
    {Keyword::may_tell_pid, "pid:"},
    {Keyword::may_tell_pid, "PID "},
    {Keyword::may_tell_pid, "PID="},
    {Keyword::may_tell_pid, "PID:"},
    {Keyword::python_warning, "Warning: "},
    {Keyword::no_space, "No space left on device"},
    {Keyword::no_space, "no space left on device"},
    {Keyword::no_space, "Disk quota exceeded"},
    {Keyword::no_space, "PytorchStreamWriter failed writing"},
    {Keyword::no_space, "inline_container.cc"},
    {Keyword::shared_memory, "shared memory"},
    {Keyword::shared_memory, "/dev/shm"},
    {Keyword::shared_memory, "</torch_"},
    {Keyword::shared_memory, "killed by signal: Bus error"},
    {Keyword::port_taken, "ddress already in use"},
    {Keyword::port_taken, "EADDRINUSE"},
    {Keyword::port_taken, "port have been bound already"},
    {Keyword::outside_kill, "Signals.SIGTERM death signal"},
    {Keyword::outside_kill, "got signal: "},
    {Keyword::outside_kill, "Evicted"},
    {Keyword::outside_kill, "evicted"},
    {Keyword::outside_kill, "reempted"},
    {Keyword::outside_kill, "node was low on resource"},
    {Keyword::outside_kill, "TaintManagerEviction"},
    {Keyword::outside_kill, "DeadlineExceeded"},
    {Keyword::outside_kill, "longer than specified deadline"},
    {Keyword::outside_kill, "imminent node shutdown"},
    {Keyword::outside_kill, "pot interruption"},
    {Keyword::outside_kill, "pot Interruption"},
    {Keyword::outside_kill, "pot Instance"},
    {Keyword::outside_kill, "pot instance"},
    {Keyword::outside_kill, "nterruption notice"},
    {Keyword::outside_kill, "after receiving SIGTERM"},
    {Keyword::outside_kill, "auto-requeue signal"},
    {Keyword::model_check, "appears not to match"},
    {Keyword::model_check, "expects same model across all ranks"},
    {Keyword::gpu_path, "peer access"},
    {Keyword::gpu_path, "peer mapping resources"},
    {Keyword::gpu_path, "system not yet initialized"},
    {Keyword::gpu_path, "cudaIpcOpenMemHandle"},
    {Keyword::gpu_path, "GPU driver interface version"},
    {Keyword::rdma_path, "RLIMIT_MEMLOCK"},
    {Keyword::rdma_path, "ibv_reg_"},
    {Keyword::rdma_path, "ibv_create_"},
    {Keyword::refused, "connect ["},
    {Keyword::refused, "remote=["},
    {Keyword::refused, "SO_ERROR: "},
    {Keyword::refused, "connectFullMesh failed"},
};

constexpr size_t kSlots = 4096;
constexpr uint32_t Slot(uint32_t first_four) { return (first_four * 2654435761u) >> 20; }

constexpr uint32_t FirstFour(std::string_view text) {
  uint32_t word = 0;
  for (int i = 3; i >= 0; --i) word = word << 8 | static_cast<unsigned char>(text[static_cast<size_t>(i)]);
  return word;
}

// The phrases by a hash of their first four characters: head of a chain, then the next with the same hash. 0 ends it.
struct PhraseIndex {
  std::array<uint16_t, kSlots> head{};
  std::array<uint16_t, std::size(kPhrases) + 1> next{};
};

constexpr PhraseIndex MakeIndex() {
  PhraseIndex index;
  for (size_t i = 0; i < std::size(kPhrases); ++i) {
    const uint32_t slot = Slot(FirstFour(kPhrases[i].text));
    index.next[i + 1] = index.head[slot];
    index.head[slot] = static_cast<uint16_t>(i + 1);
  }
  return index;
}

constexpr PhraseIndex kIndex = MakeIndex();

uint32_t LoadFour(const char* at) {
  uint32_t word = 0;
  std::memcpy(&word, at, 4);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap32(word);
  return word;
}

}  // namespace

KeywordSet FindKeywords(std::string_view line) {
  KeywordSet found;
  if (line.size() < 4) return found;
  for (size_t at = 0; at + 4 <= line.size(); ++at) {
    for (uint16_t entry = kIndex.head[Slot(LoadFour(line.data() + at))]; entry != 0; entry = kIndex.next[entry]) {
      const Phrase& phrase = kPhrases[entry - 1];
      if (line.substr(at).starts_with(phrase.text)) found.add(phrase.keyword);
    }
  }
  return found;
}

}  // namespace tacet
