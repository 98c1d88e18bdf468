// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tacet {

// What a message is about, told by its first characters. Most lines of a log are set-up chatter, so this has to be
// cheap.
enum class NcclTopic : uint8_t {
  ignored,       // known, and nothing in it is used here
  call,          // AllReduce: opCount 1f sendbuff ...
  call_done,     // AllReduce: opCount 1e DONE
  api_call,      // CALL level: ncclAllReduce(...)
  api_init,      // CALL level: ncclCommInitRank(...), ncclCommSplit(...)
  init,          // ncclCommInitRank comm 0x.. rank 0 nranks 4 ... - Init START
  comm_end,      // comm 0x.. rank 0 nranks 4 ... - Destroy COMPLETE
  comm_shape,    // comm 0x.. rank 0 nRanks 4 nNodes 4 ...
  comm_hash,     // PROFILER/Plugin: init commName:  commHash: 1364.. nranks: 4 rank: 1
  version,       // NCCL version 2.28.9+cuda13.0
  environment,   // NCCL_PROTO set by environment to LL
  network,       // Using network Socket
  interfaces,    // Bootstrap: Using eth0:10.0.0.1<0>
  devices,       // NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>
  no_device,     // NET/IB : No device found.
  driver,        // cudaDriverVersion 12040
  gpu_direct,    // NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'
  connection,    // Channel 00/0 : 1[0] -> 2[0] [send] via NET/Socket/0
  topology,      // rings, trees, channel lists, what is connected: nccl_log_channels.h
  net_remark,    // NET/OFI Selected Provider is efa (found 4 nics)
  graph,         // Pattern 4, crossNic 0, ...; rows of channels, systems and paths: nccl_log_graph.h
  tuning_row,    // AllReduce |    26.8/   0.1 | ...
  choice,        // AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..1}
  propagation,   // misc/socket.cc:845 -> 6
  net_fallback,  // Failed to initialize NET plugin IB: the errors just before it were harmless
  kernel_trace,  // ## [170260.347287] [07:00] 000001 KL HWID 42300700 ...: nccl_log_trace.h
  abort_called,  // socketProgressOpt: abort called
  perhaps,       // may be one of the INFO lines that warn: model/events/nccl_warnings.h; else of no interest
};

NcclTopic ClassifyInfo(std::string_view message);
NcclTopic ClassifyCall(std::string_view message);  // of the CALL and TRACE levels

}  // namespace tacet
