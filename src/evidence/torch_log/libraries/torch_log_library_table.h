// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tacet {

// What a line of a communication library says, whatever wrote it.
enum class LibraryTell : uint8_t {
  warning,      // `what` is the id of the warning
  completion,   // a network request ended with the status `number` of verbs; -1: the line tells it
  lost,         // a peer's connection broke
  unreachable,  // a peer cannot be reached; `what` is the system's word where the line does not tell it
  shm_full,
  gpu_memory,  // the GPU's memory is exhausted
  device,      // the GPU failed, in the words of its runtime
  peer_access,
  rdma,      // memory cannot be registered, or a queue not be made: RdmaFault by the system's word
  failed,    // an error of `what`, told in its own words
  waited,    // somebody waited for a peer until a time limit
  harmless,  // looks like an error, and is none
};

struct LibraryLine {
  std::string_view mark;  // four characters or more: makes a line worth a look
  std::string_view part;  // stands in the same line; empty: anything
  LibraryTell tell;
  std::string_view what = {};
  int64_t number = -1;
  std::string_view cure = {};  // the first step, where the library's own steps do not fit
};

// The first row that fits counts: the special before the general. Whoever adds a row needs nothing else: the marks are
// keywords by being here.
inline constexpr LibraryLine kLibraryLines[] = {
    // UCX: "Remote access error on mlx5_1:1/IB (synd 0x13 vend 0x88 hw_synd 0/0)"
    {"Local length error on ", "(synd 0x", LibraryTell::completion, "", 1},
    {"Local QP operation error on ", "(synd 0x", LibraryTell::completion, "", 2},
    {"Local protection error on ", "(synd 0x", LibraryTell::completion, "", 4},
    {"Bad response on ", "(synd 0x", LibraryTell::completion, "", 7},
    {"Local access error on ", "(synd 0x", LibraryTell::completion, "", 8},
    {"Invalid request on ", "(synd 0x", LibraryTell::completion, "", 9},
    {"Remote access error on ", "(synd 0x", LibraryTell::completion, "", 10},
    {"Remote operation error on ", "(synd 0x", LibraryTell::completion, "", 11},
    {"Receive-no-ready retry count exceeded on ", "(synd 0x", LibraryTell::completion, "", 13},
    {"Remote side aborted on ", "(synd 0x", LibraryTell::completion, "", 16},
    {"UCX  FATAL UD endpoint ", "timeout", LibraryTell::warning, "ucx-failed", 12},
    {": keepalive failed on ep ", "", LibraryTell::warning, "ucx-failed", 12},
    {"tcp_ep 0x", "Connection reset by peer", LibraryTell::lost},
    {"UCX  ERROR recv(fd=", "Connection reset by peer", LibraryTell::lost},
    {"UCX  ERROR connect(fd=", "Connection refused", LibraryTell::unreachable},
    {"UCX  ERROR connect(fd=", "No route to host", LibraryTell::unreachable},
    {"UCX  ERROR connect(fd=", "Network is unreachable", LibraryTell::unreachable},
    {"reached maximum number of connection retries", "tcp_ep", LibraryTell::unreachable, "no connection"},
    {"UCX  ERROR no ", " transport to ", LibraryTell::warning, "ucx-no-transport"},
    {"no usable transports/devices", "", LibraryTell::warning, "ucx-no-device"},
    {"is not available, please use one or more of", "UCX", LibraryTell::warning, "ucx-not-there"},
    {"process_vm_readv", "Operation not permitted", LibraryTell::warning, "ucx-copy-refused"},
    {"process_vm_writev", "Operation not permitted", LibraryTell::warning, "ucx-copy-refused"},
    {"UCP API version is incompatible", "", LibraryTell::warning, "ucx-version"},
    {"UCP version is incompatible", "", LibraryTell::warning, "ucx-version"},
    {"max open files limit (ulimit -n)", "", LibraryTell::warning, "ucx-too-many-files"},
    {"UCX  ERROR iface ", "failed to create ", LibraryTell::rdma, "queue"},
    {"Could not open the KNEM device", "", LibraryTell::warning, "ucx-path-refused"},
    {"check for CAP_IPC_LOCK privilege", "SHM_HUGETLB", LibraryTell::warning, "ucx-path-refused"},
    {"Not enough memory to write total of ", "/dev/shm", LibraryTell::shm_full},
    {"shared-memory backing", "not enough space for ", LibraryTell::shm_full},
    {"libfabric:", "ftruncate error: No space left", LibraryTell::shm_full},
    {"Unable to initialize shared memory key ", "to requested size", LibraryTell::shm_full},  // Triton's server
    {"failed to open ipc mem handle", "", LibraryTell::peer_access, "a GPU buffer of another process cannot be opened"},
    {"cuIpcOpenMemHandle() failed", "", LibraryTell::peer_access, "a GPU buffer of another process cannot be opened"},
    {"UCX  ERROR cu", ") failed: ", LibraryTell::device},
    {"UCX  ERROR hip", ") failed: ", LibraryTell::device},
    // whoever prints the words of UCX's status
    {"Connection reset by remote peer", "", LibraryTell::lost},
    {"Endpoint timeout", "", LibraryTell::warning, "ucx-failed", 12},
    // Open MPI: "[gpu02][[21100,1],3][btl_tcp_frag.c:241:mca_btl_tcp_frag_recv] ... readv failed: Connection reset ..."
    {"mca_btl_tcp_frag_", "Connection reset by peer", LibraryTell::lost},
    {"mca_btl_tcp_frag_", "Broken pipe", LibraryTell::lost},
    {"mca_btl_tcp_frag_", "Connection timed out", LibraryTell::lost},
    {"connect-ack received from", ", expected ", LibraryTell::warning, "mpi-versions-differ"},
    {"Failed to receive UCX worker address", "", LibraryTell::warning, "mpi-endpoint-missing"},
    {"Failed to create UCP worker", "", LibraryTell::failed, "an error of UCX", -1,
     "Read the lines of UCX above it, which name the reason (UCX_LOG_LEVEL=info); ucx_info -d shows what that host "
     "has, "
     "and ulimit -l whether memory may be locked."},
    {"message sizes do not match across processes in the collective", "", LibraryTell::warning, "message-truncated"},
    {"*** MPI_ERR_PROC_FAILED", "", LibraryTell::lost},
    // Hydra and MPICH
    {"OFI endpoint open failed", "", LibraryTell::warning, "mpi-fabric-refused"},
    {"OFI addrinfo() failed", "", LibraryTell::warning, "mpi-fabric-refused"},
    {"OFI fi_getinfo() failed", "", LibraryTell::warning, "mpi-fabric-refused"},
    {"No valid libfabric provider", "", LibraryTell::warning, "mpi-fabric-refused"},
    {"unable to allocate shared memory", "", LibraryTell::warning, "mpi-shared-memory"},
    {"Too many communicators (", "", LibraryTell::warning, "mpi-too-many-communicators"},
    {"HYDU_sock_connect", "unable to connect from ", LibraryTell::unreachable},
    {"Communication error with rank ", ": Connection", LibraryTell::unreachable},
    {"one of the processes terminated badly", "", LibraryTell::failed, "an error of mpiexec"},
    {"unable to run bstrap_proxy on ", "", LibraryTell::failed, "an error of mpiexec", -1,
     "On the node that starts the job: ssh HOST hostname must work without a password, and the same MPI must be "
     "installed on the named host at the same path; mpiexec -v shows the command."},
    {"assert (!closed) failed", "pmip", LibraryTell::failed, "an error of mpiexec"},
    // MVAPICH: "Got completion with error 12, vendor code=0x81, dest rank=5"
    {"Got completion with error ", "vendor code=", LibraryTell::completion},
    // oneCCL
    {"|CCL_ERROR|", "Connection refused", LibraryTell::unreachable},
    {"|CCL_ERROR|", "zeMemOpenIpcHandle", LibraryTell::failed, "a oneCCL error", -1,
     "Test with CCL_TOPO_P2P_ACCESS=0. In a container: /dev/dri must be there, and the capability SYS_PTRACE; "
     "CCL_ZE_IPC_EXCHANGE=sockets goes without it."},
    {"|CCL_ERROR|", "pidfd_getfd failed", LibraryTell::failed, "a oneCCL error", -1,
     "Give the container the capability SYS_PTRACE, or set CCL_ZE_IPC_EXCHANGE=sockets on all ranks."},
    {"ZE_RESULT_ERROR_DEVICE_LOST", "", LibraryTell::device, "device lost"},
    {"ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY", "", LibraryTell::gpu_memory},
    // ROCm: "Queue 0x7f2e00 aborting with error : HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in ..."
    {"aborting with error : HSA_STATUS_ERROR_OUT_OF_RESOURCES", "Available Free mem : 0 MB", LibraryTell::gpu_memory},
    {"aborting with error : HSA_STATUS_ERROR_", "", LibraryTell::device},
    // NVSHMEM
    {"mem registration failed. Reason: ", "", LibraryTell::rdma},
    {"nvidia_peermem kernel module is not loaded", "", LibraryTell::rdma, "", 14},
    {"Out of memory in nvshmem_allocate", "", LibraryTell::gpu_memory},
    {"nvshmem malloc failed", "", LibraryTell::failed, "an NVSHMEM error", -1,
     "Raise NVSHMEM_SYMMETRIC_SIZE on all ranks: the symmetric heap is full."},
    {"nvshmem out of memory", "", LibraryTell::failed, "an NVSHMEM error", -1,
     "Raise NVSHMEM_SYMMETRIC_SIZE on all ranks: the symmetric heap is full."},
    {"non-zero status: 2 cuMemCreate failed", "", LibraryTell::gpu_memory},
    {"nvshmem API called before nvshmem_init", "", LibraryTell::failed, "an NVSHMEM error", -1,
     "Call nvshmem_init (or the library's own init, as Buffer(...) of DeepEP) in every process before the call that "
     "fails."},
    {" teams, but only ", " are supported", LibraryTell::failed, "an NVSHMEM error", -1,
     "Set NVSHMEM_MAX_TEAMS to a lower number."},
    {"does not match with NVSHMEM host library", "", LibraryTell::failed, "an NVSHMEM error", -1,
     "Build and run with one NVSHMEM: compare the version the program was linked with and LD_LIBRARY_PATH "
     "(ldd, pip show nvidia-nvshmem-cu12)."},
    {"Bootstrap unable to load '", "", LibraryTell::failed, "an NVSHMEM error", -1,
     "Make the bootstrap library visible (LD_LIBRARY_PATH to NVSHMEM's lib), or choose another one: NVSHMEM_BOOTSTRAP "
     "(MPI, PMI, UID)."},
    {"nvshmem device initialization failed", "", LibraryTell::failed, "an NVSHMEM error"},
    {"nvshmem_bootstrap failed", "", LibraryTell::failed, "an NVSHMEM error"},
    {"ibv_poll_cq failed", "non-zero status: ", LibraryTell::failed, "an NVSHMEM error"},
    {"received timeout signal from GPU thread", "", LibraryTell::waited},
    // DeepEP, MSCCL++
    {"DeepEP error: CPU recv timeout", "", LibraryTell::waited},
    {"DeepEP error: timeout (", "", LibraryTell::waited},
    {"pollSendCq timed out", "", LibraryTell::waited},
    {"Host2HostSemaphore::wait timed out", "", LibraryTell::waited},
    {"an IB work item failed: transport retry counter exceeded", "", LibraryTell::completion, "", 12},
    {"createMulticast failed: ", "", LibraryTell::failed, "an MSCCL++ error", -1,
     "See the state of the NVLink fabric on that host: systemctl status nvidia-fabricmanager, and nvidia-smi -q | grep "
     "-A3 Fabric; multicast needs NVSwitches."},
    // UCC
    {"UCC  WARN  timeout ", "has expired on ", LibraryTell::waited},
    {"TL_NCCL ERROR NCCL error ", "", LibraryTell::failed, "a UCC error"},
    // libfabric
    {"Application will abort()", "", LibraryTell::failed, "an error of libfabric"},
    {"application will now abort", "", LibraryTell::failed, "an error of libfabric"},
    {"EFA provider has encountered an internal error", "", LibraryTell::failed, "an error of libfabric"},
    {"cxil_alloc_", "No space left on device", LibraryTell::warning, "fabric-resources"},
    {"Cassini Event Queue overflow", "", LibraryTell::warning, "fabric-queue-full"},
    {"PTLTE_NOT_FOUND", "", LibraryTell::lost},
    {"Unable to register MR of ", "libfabric:", LibraryTell::rdma},
    {"gdr_open failed! Failed to initialize gdrcopy", "", LibraryTell::harmless},
    // gloo
    {"gloo/", "No ibverbs devices present", LibraryTell::rdma, "", 19},
    {"Wait timeout for key(s): ", "", LibraryTell::waited},
    {"gloo/rendezvous/redis_store.cc", "Connection refused", LibraryTell::unreachable},
    {"op.preamble.length <= op.nbytes", "", LibraryTell::warning, "message-truncated"},
    // nccl-tests: "gpu02: Test timeout (120s) common.cu:523"
    {": Test timeout (", "common.cu:", LibraryTell::waited},
    {"Invalid number of GPUs: ", " requested but only ", LibraryTell::failed, "an error of nccl-tests", -1,
     "Start as many processes, threads (-t) and GPUs per thread (-g) as there are GPUs: nvidia-smi -L in the same "
     "container, CUDA_VISIBLE_DEVICES."},
    {"Incompatible NCCL versions. nccl-tests was compiled", "", LibraryTell::failed, "an error of nccl-tests", -1,
     "Build nccl-tests against the NCCL that runs (NCCL_HOME), or put the one it was built with first in "
     "LD_LIBRARY_PATH."},
};

}  // namespace tacet
