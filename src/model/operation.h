// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace tacet {

enum class OpKind : uint8_t {
  unknown,
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  gather,
  scatter,
  send,
  recv,
  barrier,
  coalesced,  // the closing entry of a coalesced group, or a batch whose members are not known
};

enum class DataType : uint8_t {
  unknown,
  int8,
  uint8,
  int16,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  bfloat16,
  float32,
  float64,
  float8_e4m3,
  float8_e5m2,
  boolean,
  complex64,
  complex128,
};

enum class ReduceOp : uint8_t { unknown, sum, prod, max, min, avg, user };

std::string_view Name(OpKind kind);    // "all_reduce"
std::string_view Name(DataType type);  // "float32"
std::string_view Name(ReduceOp op);    // "sum"
int BytesOf(DataType type);            // 0 for unknown
bool IsPointToPoint(OpKind kind);      // send or recv

// Whatever name a tool gave it: "nccl:all_reduce", "ALLREDUCE", "AllReduce", "_allgather_base",
// "all_gather_into_tensor", "nccl:send 0->1", "all_reduce_barrier", "nccl:ALLGATHER_coalesced" (coalesced). Unknown
// names give OpKind::unknown.
OpKind ParseOpKind(std::string_view name);
// "Float", "BFloat16", "ncclFloat32", "float", "bf16", "torch.float32".
DataType ParseDataType(std::string_view name);
DataType DataTypeFromNccl(int64_t code);  // ncclDataType_t: 7 is float32
ReduceOp ReduceOpFromNccl(int64_t code);  // ncclRedOp_t: 0 is sum

// As nccl-tests define it: the bus bandwidth is data over time, times what the best algorithm has to move between n
// ranks.
double BusFactor(OpKind kind, int32_t n);

}  // namespace tacet
