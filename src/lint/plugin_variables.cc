// SPDX-License-Identifier: Apache-2.0
#include "lint/variable_rows.h"

namespace tacet {

// Plugins of NCCL, libraries below it and what CUDA reads. Their lists are open: an unknown name is not reported.
std::string_view PluginVariableRows() {
  static constexpr std::string_view kRows =
      R"rows(NCCL_INSPECTOR_ENABLE|integer|0|2.28||should||1 lets NCCL Inspector record
NCCL_INSPECTOR_ENABLE_P2P|integer|1|2.30||should||1 records sends and receives, too
NCCL_INSPECTOR_DUMP_THREAD_ENABLE|integer|1|2.28||should||1 writes records while the job runs
NCCL_INSPECTOR_DUMP_THREAD_INTERVAL_MICROSECONDS|integer|-1|2.28||should||µs between two writes; without it nothing is written
NCCL_INSPECTOR_DUMP_DIR|text||2.28||may||folder of the records
NCCL_INSPECTOR_DUMP_VERBOSE|integer|0|2.28||should||1 writes every event of an operation
NCCL_INSPECTOR_PROM_DUMP|integer|0|2.29.3||should||1 writes metrics for Prometheus
NCCL_INSPECTOR_DUMP_MIN_SIZE_BYTES|integer|8192|2.30||should||operations smaller than this are skipped
NCCL_INSPECTOR_DUMP_COLL_RING_SIZE|integer|1024|2.30||should||collectives kept per communicator
NCCL_INSPECTOR_DUMP_P2P_RING_SIZE|integer|1024|2.30||should||sends and receives kept per communicator
NCCL_INSPECTOR_COLL_POOL_SIZE|integer|256|2.30||should||collectives in flight
NCCL_INSPECTOR_P2P_POOL_SIZE|integer|256|2.30||should||sends and receives in flight
NCCL_INSPECTOR_COMM_POOL_SIZE|integer|256|2.30||should||communicators
NCCL_INSPECTOR_POOL_GROW|integer|1|2.30||should||1 lets the Inspector's pools grow
NCCL_INSPECTOR_REQUIRE_KERNEL_TIMING|integer|1|2.30||should||1 drops operations without GPU times
NCCL_INSPECTOR_OTEL_EXPORT|integer|0|2.31||should||1 sends metrics to OpenTelemetry
NCCL_INSPECTOR_OTEL_VERBOSE|integer|0|2.31||should||1 logs what is sent to OpenTelemetry
NCCL_PROFILE_EVENT_MASK|text||2.23||should||events of the example profiler
NCCL_PROFILE_DUMP_FILE|text||2.23||may||file of the example profiler
NCCL_PROFILER_TRACK_NCCLOP|text|true|||should||CoMMA: record operations
NCCL_PROFILER_TRACK_PROXYOP|text|false|||should||CoMMA: record operations of the proxy
NCCL_PROFILER_TRACK_STEPS|text|false|||should||CoMMA: record steps of the proxy
NCCL_TESTS_MIN_BW|text||||should||nccl-tests: the average bandwidth must not be lower
NCCL_TESTS_SPLIT|text||||should||nccl-tests: how ranks are split into groups
NCCL_TESTS_SPLIT_MASK|text||||should||nccl-tests: how ranks are split into groups
UCX_TLS|text|all|||should||transports that UCX may use
UCX_NET_DEVICES|text|all|||may||devices that UCX may use
UCX_LOG_LEVEL|text|warn|||may||what UCX logs
UCX_IB_GID_INDEX|text|auto|||should||which address of the port RoCE uses
UCX_IB_SL|text|auto|||should||InfiniBand service level
UCX_IB_TRAFFIC_CLASS|text|auto|||should||traffic class
UCX_IB_PCI_RELAXED_ORDERING|text|auto|||should||PCIe relaxed ordering
UCX_MEMTYPE_CACHE|text|try|||should||whether UCX remembers which memory is the GPU's
UCX_RNDV_SCHEME|text|auto|||should||how large messages are moved
UCX_RNDV_THRESH|text|auto|||should||bytes from which a message is large
UCX_MAX_RNDV_RAILS|text|2|||should||devices that a large message uses
UCX_WARN_UNUSED_ENV_VARS|text|y|||may||whether UCX warns of names it does not know
FI_PROVIDER|text||||should||provider of libfabric: efa, cxi, tcp, ...
FI_EFA_USE_DEVICE_RDMA|text||||should||old switch of RDMA on EFA; the plugin decides
FI_EFA_FORK_SAFE|text||||should||1 made fork safe on kernels before 5.13
FI_EFA_ENABLE_SHM_TRANSFER|text|1|||should||1 uses shared memory inside a host
FI_EFA_SET_CUDA_SYNC_MEMOPS|text|1|||should||1 synchronizes operations on GPU memory
FI_MR_CACHE_MONITOR|text||||should||how registered memory is watched: memhooks, userfaultfd, kdreg2, disabled
FI_MR_CACHE_MAX_COUNT|text||||should||registrations that are kept
FI_LOG_LEVEL|text|warn|||may||what libfabric logs
FI_HMEM|text||||should||kinds of GPU memory that are used
FI_HMEM_CUDA_USE_GDRCOPY|text|1|||should||1 copies with GDRCopy
FI_CXI_DISABLE_HOST_REGISTER|text||||should||1 does not register host memory with CUDA
FI_CXI_DEFAULT_CQ_SIZE|text||||should||entries of a completion queue
FI_CXI_DEFAULT_TX_SIZE|text||||should||entries of a send queue
FI_CXI_RDZV_THRESHOLD|text||||should||bytes from which a message is large
FI_CXI_RX_MATCH_MODE|text|hardware|||should||where messages are matched
OFI_NCCL_PROTOCOL|text||||should||SENDRECV or RDMA
OFI_NCCL_EXCLUDE_TCP_IF|text|lo,docker0|||may||interfaces that are not used
OFI_NCCL_EAGER_MAX_SIZE|text|8192|||should||bytes up to which a message is sent at once
OFI_NCCL_MIN_STRIPE_SIZE|text|131072|||should||bytes from which a message is spread over rails
OFI_NCCL_FORCE_NUM_RAILS|text|0|||should||rails that are used; 0 is all
OFI_NCCL_TUNER_TYPE|text|REGION|||should||how the tuner chooses
OFI_NCCL_DISABLE_GDR_REQUIRED_CHECK|text|0|||should||1 continues without GPUDirect RDMA
OFI_NCCL_USE_IPV6_TCP|text|0|||should||1 uses IPv6 with the tcp provider
OFI_NCCL_NET_LATENCY|text||||should||µs that the plugin tells NCCL
GLOO_SOCKET_IFNAME|text||||may||interface of gloo
TP_SOCKET_IFNAME|text||||may||interface of TensorPipe
OMP_NUM_THREADS|text||||should||threads per process; torchrun sets 1 where it is not set
CUDA_LAUNCH_BLOCKING|text|0|||should||1 makes every launch wait for its kernel
CUDA_DEVICE_MAX_CONNECTIONS|text|8|||should||hardware queues per GPU; Megatron wants 1
CUDA_VISIBLE_DEVICES|text||||may||GPUs that a process sees
CUDA_DEVICE_ORDER|text|FASTEST_FIRST|||should||order of the GPUs
CUDA_AUTO_BOOST|text||||should||clock boost of old GPUs
CUDA_COREDUMP_FILE|text||||may||file of GPU core dumps
CUDA_DEVICE_WAITS_ON_EXCEPTION|text|0|||should||1 stops a GPU at an exception until a debugger attaches
CUDA_ENABLE_COREDUMP_ON_EXCEPTION|text|0|||should||1 writes a core dump at a GPU exception
CUDA_INJECTION32_PATH|text||||should||library that is put into every CUDA process
CUDA_INJECTION64_PATH|text||||should||library that is put into every CUDA process
CUDA_PROFILE|text|0|||should||1 runs the old command line profiler
COMPUTE_PROFILE|text|0|||should||1 runs the old command line profiler
OPENCL_PROFILE|text|0|||should||1 runs the old command line profiler
NSIGHT_CUDA_DEBUGGER|text|0|||should||1 runs under a debugger
)rows";
  return kRows;
}

}  // namespace tacet
