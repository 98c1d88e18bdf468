// SPDX-License-Identifier: Apache-2.0
#include "lint/variable_rows.h"

namespace tacet {

// Read from the sources of NCCL 2.3 to 2.30 (parameter macros and calls of getenv) and its user guide. "until" is the
// last release that reads a variable.
std::string_view NcclNetworkVariableRows() {
  static constexpr std::string_view kRows =
      R"rows(NCCL_DMABUF_ENABLE|integer|1|2.13||should||1 registers GPU memory through DMA-BUF
NCCL_GDAKI_USE_RELIABLE_DB|integer|0|2.29.7||should||1 uses reliable doorbells
NCCL_GDR_FLUSH_DISABLE|integer|0|||should||1 skips the flush after GPUDirect RDMA
NCCL_GIN_COUNTER_POOL_SIZE|integer|524288|2.28.7|2.29|should||counters of GPU-initiated networking
NCCL_GIN_ENABLE|integer|1|2.28.7||should||1 allows GPU-initiated networking
NCCL_GIN_ERROR_QUERY_SEC|integer|10|2.28.7||should||seconds between checks for errors of GPU-initiated networking
NCCL_GIN_EXCLUSIVE_CONTEXTS|integer|-1|2.29.7|2.29|should||exclusive contexts of GPU-initiated networking
NCCL_GIN_GDAKI_MAX_DEST_RD_ATOMIC|integer|-2|2.30||should||reads in flight at the target
NCCL_GIN_GDAKI_MAX_QP_RD_ATOMIC|integer|-2|2.30||should||reads in flight at the source
NCCL_GIN_GDAKI_NIC_HANDLER|integer|0|2.28.7||should||who writes the adapter's doorbell
NCCL_GIN_GDAKI_QP_DEPTH|integer|128|2.28.7||should||entries of the queue pairs of GPU-initiated networking
NCCL_GIN_IB_TC|integer|-1|2.30.7||should||traffic class of GPU-initiated networking
NCCL_GIN_NCONNECTIONS|integer|-2|2.29.7||should||connections of GPU-initiated networking
NCCL_GIN_NCONTEXTS|integer|-1|2.28.7|2.29|should||contexts of GPU-initiated networking
NCCL_GIN_PLUGIN_REF_COUNT|integer|0|2.29.7||should||1 unloads the GIN plugin with the last communicator
NCCL_GIN_PLUGIN|text||2.29.7||should||library for GPU-initiated networking
NCCL_GIN_PROXY_QUEUE_SIZE|integer|-1|2.28.7||should||entries of the GIN proxy's queue
NCCL_GIN_SIGNAL_POOL_SIZE|integer|524288|2.28.7|2.29|should||signals of GPU-initiated networking
NCCL_GIN_TYPE|integer|-1|2.28.7||should||kind of GPU-initiated networking
NCCL_IBVERBS_LIB|text||2.30||should||library that is loaded for InfiniBand
NCCL_IB_ADAPTIVE_ROUTING|integer|-2|2.16||should||1 expects packets out of order
NCCL_IB_ADDR_FAMILY|choice||2.21||should||AF_INET or AF_INET6, for the choice of the GID
NCCL_IB_ADDR_RANGE|text||2.21||should||addresses among which the GID is chosen
NCCL_IB_AR_THRESHOLD|integer|-2|2.6||should||bytes from which data and completion are sent separately
NCCL_IB_CUDA_SUPPORT|integer|-2||2.3|should|NCCL_NET_GDR_LEVEL|old switch of GPUDirect RDMA
NCCL_IB_DATA_DIRECT|integer|1|2.27||should||1 uses Data Direct on adapters that have it
NCCL_IB_DEVICE_PCI_ORDER|integer|1|2.29.7||should||1 orders adapters by PCI address
NCCL_IB_DISABLE|integer|0|||must||1 forbids InfiniBand and RoCE
NCCL_IB_ECE_ENABLE|integer|1|2.23||should||1 negotiates enhanced connections
NCCL_IB_FIFO_TC|integer|-1|2.22||should||traffic class of control messages
NCCL_IB_GDR_LEVEL|integer|-2||2.3|should|NCCL_NET_GDR_LEVEL|old name of NCCL_NET_GDR_LEVEL
NCCL_IB_GID_INDEX|integer|-1|||should||which address of the port RoCE uses; -1 chooses
NCCL_IB_HCA|list||||may||adapters: prefixes, = for exact names, ^ to exclude, name:port
NCCL_IB_MERGE_NICS|integer|1|2.20||should||1 uses both ports of an adapter as one
NCCL_IB_MERGE_VFS|integer|1|2.18||should||1 counts virtual functions of an adapter as one
NCCL_IB_MQP_RETRY_ALL|integer|0|2.24||should||1 repeats ibv_modify_qp after any error
NCCL_IB_MQP_RETRY_CNT|integer|34|2.24||should||how many times ibv_modify_qp is repeated
NCCL_IB_MQP_RETRY_SLEEP_MSEC|integer|100|2.24||should||ms between two attempts of ibv_modify_qp
NCCL_IB_OOO_RQ|integer|0|2.30||should||1 receives out of order
NCCL_IB_PCI_RELAXED_ORDERING|integer|2|2.12||should||PCIe relaxed ordering: 0 off, 1 on, 2 where it works
NCCL_IB_PKEY|integer|0|2.8||should||index of the partition key
NCCL_IB_PREPOST_RECEIVE_WORK_REQUESTS|integer|-2|2.29.7||should||1 posts receives in advance
NCCL_IB_QPS_PER_CONNECTION|integer|1|2.10||should||queue pairs per connection: 1 to 128
NCCL_IB_QUERY_PORT_SPEED|integer|1|2.30.7||should||1 asks the port for its speed
NCCL_IB_RECEIVER_SIDE_MATCHING_SCHEME|integer|-2|2.29.7||should||how the receiver matches messages
NCCL_IB_RESILIENCY_PORT_FAILOVER_MAX_ATTEMPTS|integer|1|2.29.7||should||how many times a failover is tried
NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY|integer|10|2.29.7||should||delay before a failover is probed
NCCL_IB_RESILIENCY_PORT_FAILOVER|integer|0|2.29.7||should||1 continues over another port when one fails
NCCL_IB_RESILIENCY_PORT_RECOVERY_ACK_TIMEOUT|integer|5000|2.30||should||ms until an answer must arrive
NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_INTERVAL|integer|500|2.30||should||ms between batches of alive messages
NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_BATCH_SIZE|integer|5|2.30||should||alive messages per batch
NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_SEQUENCE_SIZE|integer|5|2.30||should||alive messages in a row
NCCL_IB_RESILIENCY_PORT_RECOVERY_ALIVE_MSG_TIMEOUT|integer|4000|2.30||should||ms until an alive message counts as lost
NCCL_IB_RESILIENCY_PORT_RECOVERY_ATTEMPTS_MAX|integer|5|2.30||should||how many times recovery is tried
NCCL_IB_RESILIENCY_PORT_RECOVERY_START_DELAY|integer|200|2.30||should||ms before recovery begins
NCCL_IB_RESILIENCY_PORT_RECOVERY|integer|0|2.30||should||1 returns to a port that works again
NCCL_IB_RETRY_CNT|integer|7|||should||how many times a packet is sent again: 0 to 7
NCCL_IB_RETURN_ASYNC_EVENTS|integer|1|2.23||should||1 ends the communicator on a fatal event of the adapter
NCCL_IB_ROCE_VERSION_NUM|integer|2|2.21||should||RoCE version for the choice of the GID
NCCL_IB_ROUTABLE_FLID_GID_INDEX|integer|1|2.22||should||GID with the routable LID
NCCL_IB_SL|integer|-1|||should||InfiniBand service level
NCCL_IB_SPLIT_DATA_ON_QPS|integer|0|2.18||should||1 splits each message over the queue pairs
NCCL_IB_SUBNET_AWARE_ROUTING|integer|0|2.30.7||should||1 connects within subnets
NCCL_IB_SUBNET_PREFIX_LEN|integer|24|2.30.7||should||bits of a subnet
NCCL_IB_TC|integer|-1|||should||traffic class
NCCL_IB_TIMEOUT|integer|20|||should||a packet is sent again after 4.096 µs x 2^value: 18 is 1.1 s, 20 is 4.3 s, 22 is 17 s
NCCL_IB_USE_INLINE|integer|0|2.8||should||1 sends small control messages inline
NCCL_IB_WARN_RAIL_LOCAL|integer|0|2.24||should||1 warns where the two ends are different devices
NCCL_IGNORE_NET_MISMATCH|integer|1|2.30||should||1 continues where hosts have different numbers of network devices
NCCL_NETDEVS_POLICY|text|AUTO|2.28||should||how many devices a GPU uses: AUTO, ALL, MAX:N
NCCL_NET_DISABLE_INTRA|integer|0|2.12||should||1 forbids the network between ranks of one host
NCCL_NET_FORCE_FLUSH|integer|0|2.15||should||1 flushes after every receive
NCCL_NET_FORCE_MERGE|text||2.24||should||devices that are used as one
NCCL_NET_GDR_C2C|integer|1|2.26||should||1 uses GPUDirect RDMA over C2C
NCCL_NET_GDR_LEVEL|level||2.4||should||the farthest path over which GPUDirect RDMA is used: LOC, PIX, PXB, PHB, SYS (old numbers: 0 to 3 in this order, 4 and 5 SYS)
NCCL_NET_GDR_READ|integer|-2|||should||1 sends from GPU memory without staging
NCCL_NET_MERGE_LEVEL|level|PORT|2.24||should||the farthest path over which devices are merged: LOC, PORT, PIX, PXB, PHB, SYS
NCCL_NET_MERGE_POLICY|text||2.30.7||should||which devices are merged
NCCL_NET_OPTIONAL_RECV_COMPLETION|integer|1|2.24||should||1 does not wait for completions that are not needed
NCCL_NET_OVERHEAD|integer|-2|2.18||should||ns that the model adds per network step
NCCL_NET_PLUGIN_REF_COUNT|integer|0|2.26||should||1 unloads the plugin with the last communicator
NCCL_NET_PLUGIN|text||2.11||should||library of the network; none for no plugin
NCCL_NET_SHARED_BUFFERS|integer|-2|2.8||should||1 shares buffers between sends to the same host
NCCL_NET_SHARED_COMMS|integer|1|2.12||should||1 shares connections between ranks of a host
NCCL_NET|text||2.10||must||name of the network: IB, Socket, or a plugin's
NCCL_NSOCKS_PERTHREAD|integer|-2|2.4.8||should||sockets per thread: 1 to 16, at most 64 in all
NCCL_NUM_RMA_CTX|integer||2.29||should||contexts of one-sided operations
NCCL_OOB_NET_ENABLE|integer|0|2.23||should||1 runs setup over the network plugin
NCCL_OOB_NET_IFNAME|list||2.23||may||device for setup over the network plugin
NCCL_RMA_DISABLE|integer|0|2.30.7||should||1 forbids one-sided operations
NCCL_RMA_PLUGIN_REF_COUNT|integer|0|2.30.7||should||1 unloads the RMA plugin with the last communicator
NCCL_RMA_PLUGIN|text||2.30.7||should||library of one-sided operations
NCCL_RMA_PROXY_DUMP_SIGNAL|integer|-1|2.29||should||signal that makes the RMA proxy print what is in flight
NCCL_RMA_PROXY_QUEUE_SIZE|integer|-1|2.29||should||entries of the RMA proxy's queue
NCCL_SOCKET_FAMILY|choice||||should||AF_INET or AF_INET6
NCCL_SOCKET_IFNAME|list||||may||interfaces of bootstrap and sockets: prefixes, = for exact names, ^ to exclude
NCCL_SOCKET_INLINE|integer|128|2.27||should||bytes that are sent with the header
NCCL_SOCKET_MAGIC|text||2.30.7||should||number that tells jobs apart on the bootstrap port
NCCL_SOCKET_MIN_TASKSIZE|integer|65536|2.27||should||bytes from which a message is split
NCCL_SOCKET_NTHREADS|integer||||should||threads per connection: 1 to 16
NCCL_SOCKET_POLL_TIMEOUT_MSEC|integer|0|2.29||should||ms to wait for a socket
NCCL_SOCKET_RCVBUF|integer|-1|2.27||should||bytes of the kernel's receive buffer
NCCL_SOCKET_RETRY_CNT|integer|34|2.24||should||how many times a connection is tried again
NCCL_SOCKET_RETRY_SLEEP_MSEC|integer|100|2.24||should||ms between two attempts to connect, growing
NCCL_SOCKET_SNDBUF|integer|-1|2.27||should||bytes of the kernel's send buffer
)rows";
  return kRows;
}

}  // namespace tacet
