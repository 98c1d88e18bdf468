// SPDX-License-Identifier: Apache-2.0
#include "plugin/output/finished_op.h"

#include "plugin/settings.h"

namespace tacet::plugin {

const char* NameOf(box::Kind kind) {
  static const char* const kNames[] = {"Unknown", "AllReduce", "AllGather", "ReduceScatter", "Broadcast",
                                       "Reduce",  "AlltoAll",  "Gather",    "Scatter",       "Send",
                                       "Recv",    "SendRecv",  "PutSignal", "Signal",        "WaitSignal"};
  return kind <= box::Kind::wait_signal ? kNames[static_cast<int>(kind)] : kNames[0];
}

const char* NameOf(box::Algorithm algorithm) {
  static const char* const kNames[] = {"unknown", "TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN",
                                       "NVLS",    "NVLS_TREE", "PAT",  "SYMMETRIC"};
  return algorithm <= box::Algorithm::symmetric ? kNames[static_cast<int>(algorithm)] : kNames[0];
}

const char* NameOf(box::Protocol protocol) {
  static const char* const kNames[] = {"unknown", "LL", "LL128", "SIMPLE"};
  return protocol <= box::Protocol::simple ? kNames[static_cast<int>(protocol)] : kNames[0];
}

static uint64_t BytesOf(box::Type type) {
  static const uint8_t kBytes[] = {0, 1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type <= box::Type::float8_e5m2 ? kBytes[static_cast<int>(type)] : 0;
}

// algorithm bandwidth = data / time; bus bandwidth = that times what the algorithm must move, as nccl-tests define it.
static void AddBandwidth(FinishedOp& finished) {
  const double seconds = static_cast<double>(finished.duration_ns) / 1e9;
  const double ranks = finished.size > 0 ? finished.size : 1;
  double data = static_cast<double>(finished.bytes), factor = 0;
  switch (finished.op.kind) {
    case box::Kind::all_reduce: factor = 2 * (ranks - 1) / ranks; break;
    case box::Kind::reduce_scatter:
    case box::Kind::all_gather: data *= ranks, factor = (ranks - 1) / ranks; break;
    case box::Kind::broadcast:
    case box::Kind::reduce:
    case box::Kind::send:
    case box::Kind::recv:
    case box::Kind::send_recv: factor = 1; break;
    default: data = 0; break;
  }
  finished.algorithm_gbs = seconds > 0 ? data / 1e9 / seconds : 0;
  finished.bus_gbs = finished.algorithm_gbs * factor;
}

static uint64_t TicksToNs(const OpenBox& box, uint64_t ticks) {
  return static_cast<uint64_t>(static_cast<double>(ticks) * 1e9 / static_cast<double>(box.header->tick_hz));
}

bool DescribeOp(const OpenBox& box, const box::Op& op, FinishedOp* finished) {
  if ((op.flags & (box::kOpCaptured | box::kOpEndUnknown)) != 0) return false;
  *finished = FinishedOp{};
  finished->op = op;
  const bool whole = op.issue_ticks != 0 && op.finish_ticks >= op.issue_ticks;
  const uint64_t in_flight_ns = whole ? TicksToNs(box, op.finish_ticks - op.issue_ticks) : 0;
  if (box::HasGpuTimes(op, whole ? static_cast<int64_t>(in_flight_ns) : -1)) {
    finished->duration_ns = op.gpu_finish_ns - op.gpu_start_ns;
    finished->timing_source = "kernel_gpu";
  } else if (op.start_ticks != 0 && op.finish_ticks >= op.start_ticks) {
    finished->duration_ns = TicksToNs(box, op.finish_ticks - op.start_ticks);
    finished->timing_source = "kernel_cpu";
  } else {
    return false;
  }
  finished->rank = finished->size = finished->nodes = finished->device = -1;
  CopyText(finished->comm_name, sizeof finished->comm_name, "unknown");
  if (op.comm != box::kNoComm && Load(box.comms[op.comm].comm_id) == op.comm_id) {
    const box::Comm& comm = box.comms[op.comm];
    finished->rank = Load(comm.rank);
    finished->size = Load(comm.size);
    finished->nodes = Load(comm.nodes);
    finished->device = Load(comm.device);
    if (comm.name[0] != 0) CopyText(finished->comm_name, sizeof finished->comm_name, comm.name);
  }
  finished->function = NameOf(op.kind);
  finished->transfer = op.kind == box::Kind::send || op.kind == box::Kind::recv || op.kind == box::Kind::send_recv;
  finished->bytes = op.count * BytesOf(op.type);
  AddBandwidth(*finished);
  return true;
}

bool RingReader::Next(OpenBox& box, box::Op* op) {
  const uint64_t head = Load(box.header->ring_head);
  const uint64_t count = uint64_t{box.ring_mask} + 1;
  for (; next_ < head; ++next_) {
    if (head - next_ > count) {  // overwritten before it was read
      Add(box.header->drops[static_cast<int>(box::Drop::output_lapped)], head - next_ - count);
      next_ = head - count;
    }
    const box::Record& record = box.ring[next_ & box.ring_mask];
    const uint64_t whole = 2 * (next_ + 1);
    const uint64_t seq = LoadAcquire(record.seq);
    if (seq == whole) {
      LoadWords(record.op, *op);
      if (box::CheckOf(*op, whole) == op->check) {
        ++next_;
        return true;
      }
    }
    // Still being written: look again next time. Not written by then: its writer gave it up.
    if (seq <= whole && stalled_at_ != next_) {
      stalled_at_ = next_;
      return false;
    }
    Add(box.header->drops[static_cast<int>(box::Drop::output_lapped)], seq > whole ? 1 : 0);
  }
  return false;
}

}  // namespace tacet::plugin
