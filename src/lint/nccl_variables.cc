// SPDX-License-Identifier: Apache-2.0
#include "lint/variable_rows.h"

namespace tacet {

// Read from the sources of NCCL 2.3 to 2.30 (parameter macros and calls of getenv) and its user guide. "until" is the
// last release that reads a variable.
std::string_view NcclVariableRows() {
  static constexpr std::string_view kRows =
      R"rows(NCCL_AGG_ALLOC_MODE|text||2.10|2.12|should||how calls in a group got their channels
NCCL_AGG_CHANNEL_SIZE|integer|-2|2.10|2.19|should||bytes per channel for calls in a group
NCCL_ALGO|algorithms||2.5||must||algorithms that may be chosen: Tree, Ring, CollNetDirect, CollNetChain, NVLS, NVLSTree, PAT
NCCL_ALLGATHERV_ENABLE|integer|1|2.29||should||1 runs several broadcasts as one gather
NCCL_ALLOC_P2P_NET_LL_BUFFERS|integer|0|2.16||should||1 allocates LL buffers for sends over the network
NCCL_BUFFSIZE|integer|4194304|||must||bytes of the buffer between two GPUs, per channel
NCCL_CGA_CLUSTER_SIZE|integer||2.15||should||blocks per cluster on Hopper and later
NCCL_CHECKS_DISABLE|integer|0||2.2|should|NCCL_CHECK_POINTERS|1 skipped the checks of arguments; replaced by NCCL_CHECK_POINTERS
NCCL_CHECK_MODE|choice|DEFAULT|2.29.7||should||DEFAULT, DEBUG_LOCAL or DEBUG_GLOBAL: what every call checks
NCCL_CHECK_POINTERS|integer|0|||should||1 checks the pointers of every call
NCCL_CHUNK_SIZE|integer|0|2.12||should||bytes that a kernel moves at a time; 0 lets NCCL choose
NCCL_COLLNET_ENABLE|integer|0|2.6||should||1 uses in-network reduction (SHARP)
NCCL_COLLNET_NODE_THRESHOLD|integer|2|2.9.9||should||hosts from which in-network reduction is used
NCCL_COMM_BLOCKING|integer||2.14||should||whether calls wait (1) or return at once (0)
NCCL_COMM_ID|text||||may||address of rank 0, as host:port
NCCL_COMM_SHRINK_SHARE_RESOURCES|integer||2.27||should||1 shares resources with the communicator that is shrunk
NCCL_COMM_SPLIT_SHARE_RESOURCES|integer||2.18||should||1 shares resources with the communicator that is split
NCCL_CONF_FILE|text||2.23||may||file that is read instead of ~/.nccl.conf
NCCL_CONNECT_ROUND_MAX_PEERS|integer|128|2.19.4||should||peers that are connected at a time
NCCL_CREATE_THREAD_CONTEXT|integer|0|2.13|2.30.4|should||1 created a CUDA context per thread
NCCL_CROSS_NIC|integer|2|2.5||must||whether a ring may leave and enter a host through different network devices: 0 no, 1 yes, 2 if it helps
NCCL_CTA_POLICY|text||2.27||should||whether blocks are spent for speed, or saved
NCCL_CUDA_PATH|text||2.13|2.20|should||where libcuda was looked for
NCCL_CUMEM_ENABLE|integer|-2|2.18||should||whether memory is shared through the cuMem API
NCCL_CUMEM_HOST_ENABLE|integer|-1|2.23||should||whether host memory is shared through the cuMem API
NCCL_DEBUG_FILE|text||||may||file of the log; %h is the host, %p the process
NCCL_DEBUG_SUBSYS|choice||||may||subsystems that INFO logs: INIT, COLL, P2P, SHM, NET, GRAPH, TUNING, ENV, ...
NCCL_DEBUG_TIMESTAMP_FORMAT|text||2.26||may||how times are written
NCCL_DEBUG_TIMESTAMP_LEVELS|text|WARN|2.26||may||levels whose lines carry a time
NCCL_DEBUG|choice||||may||what is logged: VERSION, WARN, INFO, TRACE
NCCL_DEV_API_JIT|integer|0|2.30.7||should||1 compiles kernels of the device API when they are needed
NCCL_DISABLE_MEM_MANAGER|integer|0|2.29.7||should||1 runs without NCCL's own memory manager
NCCL_ELASTIC_BUFFER_REGISTER|integer|1|2.30||should||1 registers buffers that grow
NCCL_ENABLE_VERSION_CHECK|integer|1|2.29||should||1 compares the versions of library and header
NCCL_ENV_PLUGIN|text||2.28.7||should||library that gives values of variables
NCCL_GDRCOPY_ENABLE|integer|0|2.9||should||1 writes flags into GPU memory with GDRCopy
NCCL_GDRCOPY_FIFO_ENABLE|integer|1|2.9||should||1 keeps the queue in GPU memory (GDRCopy)
NCCL_GDRCOPY_FLUSH_ENABLE|integer|0|2.9||should||1 flushes with GDRCopy
NCCL_GDRCOPY_SYNC_ENABLE|integer|1|2.12||should||1 synchronizes through GPU memory (GDRCopy)
NCCL_GDRCOPY_TAIL_ENABLE|integer|1|2.9|2.11|should|NCCL_GDRCOPY_SYNC_ENABLE|1 kept the tail in GPU memory (GDRCopy)
NCCL_GRAPH_DUMP_FILE_RANK|integer|0|2.6||should||rank that writes rings and trees
NCCL_GRAPH_DUMP_FILE|text||2.6||may||file that rings and trees are written to
NCCL_GRAPH_FILE|text||2.6||should||file of rings and trees that replaces NCCL's search
NCCL_GRAPH_HELPER_DISABLE|integer|0|2.11||should||1 runs without the helper thread of CUDA graphs
NCCL_GRAPH_MIXING_SUPPORT|integer|1|2.13||should||1 allows captured and direct calls at the same time
NCCL_GRAPH_REGISTER|integer|1|2.11||should||1 registers buffers of CUDA graphs
NCCL_GRAPH_STREAM_ORDERING|integer||2.30.7||should||whether CUDA graphs keep the order of streams
NCCL_GRAPH|text||2.5|2.5|should|NCCL_GRAPH_FILE|file of rings and trees
NCCL_GROUP_CUDA_STREAM|integer||||should||how groups of an old release used streams
NCCL_HOSTID|text||2.5||may||name of the host; ranks with equal names are treated as being on one host
NCCL_IGNORE_COLLNET_MISMATCH|integer|0|2.30||should||1 continues where only some ranks have in-network reduction
NCCL_IGNORE_CPU_AFFINITY|integer|0|2.4.6||should||1 uses the cores next to the GPU instead of those that the job was given
NCCL_IGNORE_DISABLED_P2P|integer|0|2.12||should||1 continues where NVLink exists but direct access does not
NCCL_IPC_USE_ABSTRACT_SOCKET|integer|1|2.29||should||1 passes handles through abstract sockets
NCCL_L1_SHARED_MEMORY_CARVEOUT|integer|0|2.12.10||should||share of L1 for shared memory
NCCL_LAUNCH_MODE|choice|PARALLEL|||should||PARALLEL or, as in old releases, GROUP
NCCL_LAUNCH_ORDER_IMPLICIT|integer|0|2.26||should||1 orders launches of several communicators as the host issued them
NCCL_LAUNCH_RACE_FATAL|integer|1|2.26||should||1 ends the job when two threads launch at the same time
NCCL_LEGACY_CUDA_REGISTER|integer|0|2.24||should||1 registers buffers of cudaMalloc with the old IPC
NCCL_LL128_BUFFSIZE|integer|-2|2.7||must||bytes of the buffer of protocol LL128
NCCL_LL128_C2C|integer|1|2.27||should||1 allows protocol LL128 over C2C
NCCL_LL128_NTHREADS|integer|640|2.5||should||threads per block of protocol LL128: 160 to 640
NCCL_LL_BUFFSIZE|integer|-2|2.7||must||bytes of the buffer of protocol LL
NCCL_LL_THRESHOLD|integer|-2||2.4|should|NCCL_PROTO|size up to which protocol LL was used
NCCL_LOCAL_REGISTER|integer|1|2.19||should||1 lets the user register buffers
NCCL_LSA_TEAM_SIZE|integer|0|2.29.7||should||ranks whose memory can be loaded and stored directly
NCCL_MAX_CTAS|integer||2.17||must||most blocks per collective
NCCL_MAX_NCHANNELS|integer|-2|2.5||must||the largest number of channels, and so of blocks, per collective
NCCL_MAX_NRINGS|integer|-2|||should|NCCL_MAX_NCHANNELS|most channels that NCCL uses
NCCL_MAX_P2P_NCHANNELS|integer|64|2.7||should||the largest number of channels for sends and receives
NCCL_MEM_SYNC_DOMAIN|integer|1|2.16||should||memory domain of kernels on Hopper and later
NCCL_MIN_CTAS|integer||2.17||must||fewest blocks per collective
NCCL_MIN_NCHANNELS|integer|-2|2.5||must||fewest channels per collective
NCCL_MIN_NRINGS|integer|-2|||should|NCCL_MIN_NCHANNELS|fewest channels that NCCL uses
NCCL_MIN_P2P_NCHANNELS|integer|1|2.7||should||fewest channels for sends and receives
NCCL_MLOPART_RDMA_ENABLE|integer|0|2.30.7||should||1 lets partitions of a GPU use RDMA
NCCL_MNNVL_CLIQUE_ID|integer|-1|2.23||should||overrides the number of the NVLink clique
NCCL_MNNVL_CROSS_CLIQUE|integer|0|2.30||should||1 lets communicators span NVLink cliques
NCCL_MNNVL_ENABLE|integer|2|2.21||should||NVLink between hosts: 0 off, 1 on, 2 where it works
NCCL_MNNVL_RAIL_PER_HOST|integer|0|2.28.7||should||1 counts rails per host inside an NVLink domain
NCCL_MNNVL_SCATTER_NETS_ENABLE|integer|1|2.27.5||should||1 spreads network devices over the GPUs of an NVLink domain
NCCL_MNNVL_UUID|integer|-1|2.25||should||overrides the id of the NVLink domain
NCCL_MNNVL|integer|-2|2.20|2.20|should|NCCL_MNNVL_ENABLE|old name of NCCL_MNNVL_ENABLE
NCCL_MULTI_RANK_GPU_ENABLE|integer|0|2.30||should||1 lets several ranks share one GPU
NCCL_MULTI_SEGMENT_REGISTER|integer|1|2.29||should||1 registers buffers that consist of several segments
NCCL_NCCL_ALLOC_P2P_NET_LL_BUFFERS|integer|0|2.14|2.15|should|NCCL_ALLOC_P2P_NET_LL_BUFFERS|wrong first name of NCCL_ALLOC_P2P_NET_LL_BUFFERS
NCCL_NCHANNELS_PER_NET_PEER|integer||2.12||should||channels per remote peer for sends and receives
NCCL_NET_GDR_MLOPART|integer|0|2.30.7||should||1 lets partitions of a GPU use GPUDirect RDMA
NCCL_NO_CACHE|text||2.29.7||should||variables that are read again each time
NCCL_NTHREADS|integer|512|||must||threads per block of NCCL's kernels: 64, 128, 256 or 512
NCCL_NVB_DISABLE|integer|0|2.9.9||should||1 forbids paths through another GPU over NVLink
NCCL_NVB_PRECONNECT|integer|1|2.9.9||should||1 connects paths through another GPU when a communicator is created
NCCL_NVLINK_UTIL_CENTRIC_SCHED_ENABLE|integer||2.27||should||1 schedules by the use of NVLink
NCCL_NVLSTREE_MAX_CHUNKSIZE|integer|-2|2.20||should||most bytes that NVLSTree moves at a time
NCCL_NVLS_CHUNKSIZE|integer|131072|2.21||should||bytes that NVLink SHARP moves at a time
NCCL_NVLS_ENABLE|integer|2|2.17||should||NVLink SHARP: 0 off, 1 on, 2 where it works
NCCL_NVLS_NCHANNELS|integer||2.17||should||channels of NVLink SHARP
NCCL_NVTX_DISABLE|integer|0|2.28||should||1 writes no ranges for profilers
NCCL_P2P_DIRECT_DISABLE|integer|0|2.12.12||should||1 forbids direct access between GPUs of one process
NCCL_P2P_DISABLE|integer|0|||must||1 forbids direct access between GPUs over NVLink or PCIe; only exactly 1 counts
NCCL_P2P_EPOCH_ENABLE|integer|1|2.29||should||1 orders sends and receives in epochs
NCCL_P2P_LEVEL|level||||should||the farthest path over which GPUs access each other: LOC, NVL, PIX, PXB, PHB, SYS (old numbers: 0 LOC, 1 PIX, 2 PXB, 3 PHB, 4 and 5 SYS)
NCCL_P2P_LL_THRESHOLD|integer|16384|2.14||should||bytes up to which sends and receives use protocol LL
NCCL_P2P_MAX_PEERS|integer||2.30||should||most peers that a rank sends to at the same time
NCCL_P2P_NET_CHUNKSIZE|integer|131072|2.14||should||bytes that a send moves at a time over the network
NCCL_P2P_NVL_CHUNKSIZE|integer|524288|2.16||should||bytes that a send moves at a time over NVLink
NCCL_P2P_PCI_CHUNKSIZE|integer|131072|2.16||should||bytes that a send moves at a time over PCIe
NCCL_P2P_PER_CHANNEL_NET_BW|integer|14|2.29||should||GB/s that one channel of a send is expected to give
NCCL_P2P_PXN_LEVEL|integer|2|2.12||should||whether sends go through the GPU next to the network device: 0 never, 1 if needed, 2 always
NCCL_P2P_READ_ENABLE|integer|-2|2.7||should||1 reads from the peer's memory instead of writing into it
NCCL_P2P_SCHEDULE_GROUP_SIZE|integer||2.28.7||should||sends and receives that are launched together
NCCL_P2P_USE_CUDA_MEMCPY|integer|0|2.13||should||1 copies between GPUs with the copy engine
NCCL_PARAM_DUMP_ALL|text||2.30||should||1 prints all parameters
NCCL_PAT_ENABLE|integer|2|2.23||should||algorithm PAT: 0 off, 1 on, 2 where it fits
NCCL_PROFILER_PLUGIN|text||2.23||may||library that records what NCCL does
NCCL_PROGRESS_APPENDOP_FREQ|integer|8|2.16.5||should||how often the proxy looks for new work
NCCL_PROGRESS_COUNTER_MONITOR_POLL_MS|integer|1000|2.30||should||ms between checks of progress
NCCL_PROGRESS_COUNTER_MONITOR_STALE_MS|integer|5000|2.30||should||how long without progress counts as stale
NCCL_PROGRESS_COUNTER_MONITOR_STALE_WARN_SEC|integer|600|2.30||should||how long without progress gives a warning
NCCL_PROTO|protocols||2.5||must||protocols that may be chosen: LL, LL128, Simple
NCCL_PROXY_APPEND_BATCH_SIZE|integer|16|2.16||should||operations that the proxy takes at a time
NCCL_PROXY_CPUSET|text||2.28||may||cores of the proxy threads
NCCL_PROXY_DUMP_SIGNAL|integer|-1|2.14||should||signal that makes the proxy print what is in flight
NCCL_PROXY_PROFILE|text||2.12|2.22|should|NCCL_PROFILER_PLUGIN|file that the proxy's times were written to
NCCL_PXN_C2C|integer|1|2.27||should||1 allows the GPU next to the network device to be reached over C2C
NCCL_PXN_DISABLE|integer|0|2.12||should||1 forbids the path through the GPU next to the network device
NCCL_RAS_ADDR|text|localhost:28028|2.24||may||address at which RAS answers
NCCL_RAS_ENABLE|integer|1|2.24||should||1 runs the thread that answers ncclras
NCCL_RAS_TIMEOUT_FACTOR|integer|1|2.24||should||multiplies the timeouts of RAS
NCCL_REPORT_CONNECT_PROGRESS|integer|0|2.19.4||should||1 prints the progress of connecting
NCCL_RINGS|text|||2.4|should|NCCL_GRAPH_FILE|rings written by hand
NCCL_RUNTIME_CONNECT|integer|1|2.22||should||1 connects when an algorithm is first used, 0 when a communicator is created
NCCL_RUN_RAS_DIAGNOSTICS|integer|0|2.31||should||1 runs the diagnostics of RAS when a communicator is created
NCCL_SET_CPU_STACK_SIZE|integer|1|2.28||should||1 gives threads a stack of a fixed size
NCCL_SET_STACK_SIZE|integer|0|2.9||should||1 sets the GPU's stack size when a communicator is created
NCCL_SET_THREAD_NAME|text|0|2.12||should||1 names NCCL's threads
NCCL_SHADOW_MEMPOOL_MAX_SIZE|integer|1073741824|2.30.7||should||most bytes of the pool for copies of device structures
NCCL_SHARED_BUFF_COUNT|integer|-2|2.8|2.8|should||buffers shared by sends and receives
NCCL_SHM_DISABLE|integer|0|||must||1 forbids shared memory between ranks of one host
NCCL_SHM_LOCALITY|integer|2|2.13||should||whether shared memory lies on the sender's side (1) or the receiver's (2)
NCCL_SHM_MEMCPY_MODE|integer|1|2.13|2.30.4|should||which side copied with the copy engine
NCCL_SHM_USE_CUDA_MEMCPY|integer|0|2.13|2.30.4|should||1 copied through shared memory with the copy engine
NCCL_SINGLE_PROC_MEM_REG_ENABLE|integer|0|2.28||should||1 registers buffers where one process has several GPUs
NCCL_SYM_CE_THRESHOLD|integer|8388608|2.29||should||bytes from which the copy engine is used
NCCL_SYM_CTAS|integer|0|2.27||should||blocks of symmetric kernels
NCCL_SYM_GIN_KERNELS_ENABLE|integer|1|2.29.7||should||1 allows symmetric kernels between hosts
NCCL_SYM_KERNEL|text||2.27||should||symmetric kernel that is used
NCCL_SYM_NOWIN_ENABLE|integer|0|2.29||should||1 allows symmetric kernels without windows
NCCL_SYM_REUSE_SYSMEM_HANDLES|integer|0|2.30.4||should||1 keeps handles of host memory
NCCL_SYM_RS_GIN_CHUNK_SIZE|integer|-1|2.30.7||should||bytes that reduce_scatter between hosts moves at a time
NCCL_SYM_TMA_ENABLE|integer|0|2.30||should||1 lets symmetric kernels use TMA
NCCL_THREAD_THRESHOLDS|text||2.5||should||six sizes below which fewer threads are used
NCCL_THREAD_THRESHOLD|integer|-2||2.4|should|NCCL_THREAD_THRESHOLDS|size below which fewer threads were used
NCCL_TOPO_DUMP_FILE_RANK|integer|0|2.6||should||rank that writes the topology
NCCL_TOPO_DUMP_FILE|text||2.6||may||file that the topology is written to
NCCL_TOPO_FILE|text||2.6||may||topology that is read before the machine is probed
NCCL_TOPO_SPLIT_MLOPART|integer|1|2.30.7||should||1 shows partitions of a GPU in the topology
NCCL_TREE_THRESHOLD|integer|-2|2.4|2.4|should|NCCL_ALGO|size up to which trees were used
NCCL_TUNER_CONFIG_FILE|text||2.27.5||should||file of the example tuner
NCCL_TUNER_PLUGIN|text||2.19||should||library that chooses algorithms
NCCL_UID_STAGGER_RATE|integer|7000|2.23||should||connections per second to rank 0 when a communicator is created
NCCL_UID_STAGGER_THRESHOLD|integer|256|2.23||should||number of ranks from which NCCL staggers connections to rank 0
NCCL_UNPACK_DOUBLE_NCHANNELS|integer|1|2.22||should||1 doubles channels where the network unpacks on the GPU
NCCL_WARN_ENABLE_DEBUG_INFO|text|0|2.19.4||should||1 logs INFO from the first warning on
NCCL_WIN_ENABLE|integer|1|2.27||should||1 allows symmetric memory windows
NCCL_WIN_STRIDE|integer|-1|2.27||should||distance between the windows of two ranks
NCCL_WORK_ARGS_BYTES|integer||2.22||should||most bytes of work passed as kernel arguments
NCCL_WORK_FIFO_BYTES|integer||2.22||should||bytes of the queue of work for the GPU
NCCL_WORK_FIFO_DEPTH|integer|65536|2.13|2.21|should|NCCL_WORK_FIFO_BYTES|entries of the queue of work for the GPU
)rows";
  return kRows;
}

}  // namespace tacet
