// SPDX-License-Identifier: Apache-2.0
#include "rules/words/library_words.h"

#include "rules/words/gpu_maker.h"

namespace tacet {

std::string_view LibraryName(Library library) {
  switch (library) {
    case Library::hccl: return "HCCL";
    case Library::oneccl: return "oneCCL";
    case Library::jax: return "JAX";
    case Library::tensorflow: return "TensorFlow";
    case Library::paddle: return "Paddle";
    case Library::mpi: return "MPI";
    case Library::neuron: return "the Neuron runtime";
    case Library::nvshmem: return "NVSHMEM";
    case Library::ucx: return "UCX";
    case Library::libfabric: return "libfabric";
    case Library::other: return "the collective library";
    case Library::server:
    case Library::not_told: break;
  }
  return "NCCL";
}

std::string_view LibraryName(const Incident& incident, const Event& event) {
  if (LibraryName(event.library) != "NCCL") return LibraryName(event.library);
  return MakerOfGpus(incident, event) == GpuMaker::amd ? "RCCL" : "NCCL";
}

std::string_view SetupName(Library library) {
  switch (library) {
    case Library::jax: return "the barrier of the coordination service";
    case Library::tensorflow: return "a TensorFlow collective";
    case Library::neuron: return "the setup of the Neuron collectives";
    case Library::hccl: return "the setup of the HCCL communicator";
    default: return "process-group setup";
  }
}

std::vector<std::string> MissingRankSteps(Library library) {
  switch (library) {
    case Library::jax:
      return {
          "Look at the output of the processes that are named as missing; where none are, at that of every process, "
          "starting with process 0 (it runs the coordination service): one that ended or was never started keeps the "
          "others waiting.",
          "Check num_processes, process_id and coordinator_address of jax.distributed.initialize: as many processes as "
          "declared, each with its own id.",
          "If some only start late (scheduling, image pulls): raise the limit of this wait; for the first one it is "
          "initialization_timeout of jax.distributed.initialize."};
    case Library::tensorflow:
      return {
          "Check that the task that did not answer runs and can be reached: its own output, and its host and port in "
          "the cluster of TF_CONFIG.",
          "TF_CONFIG must hold the same cluster on all hosts, and a different index on each.",
          "Start all tasks at about the same time: the others give up when the deadline has passed."};
    case Library::neuron:
      return {
          "Look at the output of every process: one that ended or is still compiling (neuronx-cc) keeps the others "
          "waiting.",
          "Check that every process that uses this NEURON_RT_ROOT_COMM_ID was started. Check ulimit -n on the "
          "host.",
          "Check that the versions of the Neuron runtime and driver are the same on all hosts (neuron-ls, dpkg -l)."};
    case Library::hccl:
      return {
          "Look at the output and the plogs (ascend/log/debug/plog) of the processes that did not connect: one that "
          "failed or was never started keeps the others waiting.",
          "Check that the launcher started all of them: number of nodes, processes per node, WORLD_SIZE.",
          "If they run: check that they reach the host of rank 0 (HCCL_IF_IP, HCCL_SOCKET_IFNAME); if they only start "
          "late, raise HCCL_CONNECT_TIMEOUT on all ranks."};
    default: return {};
  }
}

// "1. Check the processes.2. If this is reported for all NPUs, check the limit. If so, adjust the ." Ascend numbers its
// steps without blanks between them, and leaves names out.
static std::string AscendAdvice(std::string cure) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (size_t i = 1; i + 2 < cure.size(); ++i)
    if (cure[i] == '.' && is_digit(cure[i + 1]) && cure[i + 2] == '.' && !is_digit(cure[i - 1]))
      cure.insert(i + 1, " ");
  if (cure.find(" 2. ") == std::string::npos && cure.starts_with("1. ")) cure.erase(0, 3);
  while (cure.ends_with(" .")) {
    const size_t end = cure.rfind(". ", cure.size() - 3);
    cure.resize(end == std::string::npos ? 0 : end + 1);
  }
  return cure.empty() || cure.ends_with('.') ? cure : cure + ".";
}

std::vector<std::string> LibraryErrorSteps(const Event& error) {
  const std::string& cure = error.As<NcclError>().cure;
  if (!cure.empty() && error.library != Library::hccl)
    return {cure, "Look at the output of the peers for an earlier error."};
  switch (error.library) {
    case Library::hccl: {
      std::vector<std::string> steps = {"Read the plogs of this process and of its peers (ascend/log/debug/plog).",
                                        "Look at the output of the peers for an earlier error."};
      if (const std::string advice = AscendAdvice(cure); !advice.empty())
        steps.insert(steps.begin(), "Ascend's own advice: " + advice);
      return steps;
    }
    case Library::oneccl:
      return {"Read the first |CCL_ERROR| line: it names what is missing; those below it only pass it on.",
              "See which providers libfabric has: fi_info -l; set FI_PROVIDER_PATH to theirs, or choose one with "
              "FI_PROVIDER (tcp as a test).",
              "Run again with CCL_LOG_LEVEL=info, and source the same oneAPI environment on all hosts."};
    case Library::neuron:
      return {
          "Read the lines of this process above the error (NEURON_RT_LOG_LEVEL=INFO shows more): the first ERROR line "
          "names the call that failed.",
          "Check that runtime, driver and compiler match each other and are the same on all hosts (neuron-ls, dpkg -l "
          "| grep neuron).",
          "Look at the devices: neuron-top, and the kernel log (dmesg -T | grep -i neuron)."};
    case Library::nvshmem:
      return {"Run again with NVSHMEM_DEBUG=INFO: the lines above the error then name the adapter and the call.",
              "Check that the adapters are visible to the process (ibv_devinfo), and restrict NVSHMEM to those of the "
              "job's network with NVSHMEM_HCA_LIST.",
              "Look at the output of the peers for an earlier error."};
    case Library::mpi:
      return {
          "Read the lines above the cited one: what a rank, ssh or a daemon of the launcher printed first is the "
          "reason.",
          "Run again with each line marked by its rank: mpirun --tag-output, mpiexec -prepend-rank; mpiexec -v shows "
          "what the launcher does."};
    case Library::libfabric:
      return {"Follow the message: it names the variable or the call that libfabric refuses.",
              "See what libfabric finds in the container: fi_info -p PROVIDER; run again with FI_LOG_LEVEL=warn."};
    case Library::other:
      return {"Look at the output of the peers for an earlier error.",
              "Run again with the log of the library that reports it."};
    default: return {};
  }
}

std::vector<std::string> LibraryHangSteps(const Event& told) {
  if (told.library == Library::nvshmem)
    return {
        "Check whether every rank of the job calls dispatch and combine the same number of times, including ranks that "
        "have no tokens: a rank that skips the call, or has ended, keeps the others waiting.",
        "If all call it: check the path between the hosts alone, with the test of the library (DeepEP's "
        "test_internode.py, NVSHMEM's perftest) and with ib_write_bw between the adapters that are used.",
        "NVSHMEM_DEBUG=INFO shows the adapters; on RoCE compare NVSHMEM_IB_GID_INDEX and NVSHMEM_IB_TRAFFIC_CLASS with "
        "what works for NCCL."};
  if (told.library != Library::hccl) return {};
  // HCCL counts it within its group.
  const std::string awaited = told.peer.known() ? "rank " + std::to_string(told.peer.value) + " of that group" : "";
  return {
      awaited.empty() ? "Read the plogs of all ranks (ascend/log/debug/plog) for the earliest error, and look for the "
                        "rank that reports no timeout: the others wait for it."
                      : "Read the plog of " + awaited +
                            " first (ascend/log/debug/plog), then those of the other ranks, for the earliest error.",
      told.Means(Meaning::setup_failed) ? "Check the link itself: hccn_tool -i DEVICE -link -g and -ip -g on both "
                                          "hosts, hccn_tool -i DEVICE -ping -g "
                                          "address ADDRESS, and -tls -g, which must be the same everywhere."
                                        : "While it hangs: npu-smi info shows which devices still work; py-spy dump "
                                          "--pid PID shows where each process "
                                          "is.",
      told.Means(Meaning::setup_failed) ? "If some ranks only arrive late (loading, compiling): raise "
                                          "HCCL_CONNECT_TIMEOUT on all ranks, the limit of "
                                          "this wait."
      : told.op == OpKind::unknown && !told.peer.known()
          ? "If the ranks were merely slow: raise ACL_DEVICE_SYNC_TIMEOUT (device synchronization) and "
            "HCCL_EXEC_TIMEOUT "
            "(collectives), the limits of the wait."
          : "If the ranks were merely slow: raise HCCL_EXEC_TIMEOUT and HCCL_CONNECT_TIMEOUT, the limits of the wait."};
}

std::string LibraryCapture(Library library) {
  switch (library) {
    case Library::hccl:
      return "the plogs of all ranks (ascend/log/debug/plog; ASCEND_GLOBAL_LOG_LEVEL=1 for more) and their output";
    case Library::oneccl: return "the output of every rank with CCL_LOG_LEVEL=info and FI_LOG_LEVEL=info";
    case Library::mpi:
      return "the output of mpirun and of every rank from the start (mpirun --tag-output), and the kernel log (dmesg "
             "-T)";
    case Library::jax:
    case Library::tensorflow:
      return "the output of every process from the start, with the launcher's list of processes and hosts";
    case Library::neuron: return "the output of every process with NEURON_RT_LOG_LEVEL=INFO";
    case Library::paddle: return "the log of every trainer (log/workerlog.N), and the kernel log (dmesg -T)";
    case Library::nvshmem: return "the output of every rank with NVSHMEM_DEBUG=INFO";
    case Library::ucx: return "the output of every rank from the start, with UCX_LOG_LEVEL=info";
    case Library::libfabric: return "the output of every rank from the start, with FI_LOG_LEVEL=warn";
    case Library::other: return "the output of every rank, with the log of its collective library";
    case Library::server:
    case Library::not_told: break;
  }
  return "";
}

std::vector<std::string> LibraryPortSteps(Library library) {
  if (library != Library::hccl) return {};
  return {
      "Choose other ports for HCCL: HCCL_IF_BASE_PORT, or ranges by HCCL_HOST_SOCKET_PORT_RANGE and "
      "HCCL_NPU_SOCKET_PORT_RANGE.",
      "Two jobs on one host need ports of their own, and so do several processes that share a device."};
}

}  // namespace tacet
