// SPDX-License-Identifier: Apache-2.0
#include "model/operation.h"

#include <algorithm>
#include <array>
#include <string>

namespace tacet {

std::string_view Name(OpKind kind) {
  static constexpr std::array<std::string_view, 13> kNames = {
      "unknown", "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce",   "all_to_all",
      "gather",  "scatter",    "send",       "recv",           "barrier",   "coalesced"};
  return kNames[static_cast<size_t>(kind)];
}

std::string_view Name(DataType type) {
  static constexpr std::array<std::string_view, 17> kNames = {
      "unknown",  "int8",    "uint8",   "int16",       "int32",       "uint32", "int64",     "uint64",    "float16",
      "bfloat16", "float32", "float64", "float8_e4m3", "float8_e5m2", "bool",   "complex64", "complex128"};
  return kNames[static_cast<size_t>(type)];
}

std::string_view Name(ReduceOp op) {
  static constexpr std::array<std::string_view, 7> kNames = {"unknown", "sum", "prod", "max", "min", "avg", "user"};
  return kNames[static_cast<size_t>(op)];
}

int BytesOf(DataType type) {
  switch (type) {
    case DataType::unknown: return 0;
    case DataType::int8:
    case DataType::uint8:
    case DataType::boolean:
    case DataType::float8_e4m3:
    case DataType::float8_e5m2: return 1;
    case DataType::int16:
    case DataType::float16:
    case DataType::bfloat16: return 2;
    case DataType::int32:
    case DataType::uint32:
    case DataType::float32: return 4;
    case DataType::int64:
    case DataType::uint64:
    case DataType::float64:
    case DataType::complex64: return 8;
    case DataType::complex128: return 16;
  }
  return 0;
}

bool IsPointToPoint(OpKind kind) { return kind == OpKind::send || kind == OpKind::recv; }

// Lower case with everything but letters and digits dropped: "nccl:_all_gather_base" -> "ncclallgatherbase".
static std::string Squeeze(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

OpKind ParseOpKind(std::string_view name) {
  if (const size_t colon = name.find(':'); colon != std::string_view::npos) name.remove_prefix(colon + 1);
  if (const size_t blank = name.find(' '); blank != std::string_view::npos) name = name.substr(0, blank);
  const std::string key = Squeeze(name);
  const auto has = [&](std::string_view part) { return key.find(part) != std::string::npos; };
  if (key == "coalesced") return OpKind::coalesced;
  // A closing entry is written in the style of the C++ enum: "ALLGATHER_coalesced".
  if (key.ends_with("coalesced") &&
      std::any_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; }) &&
      name.find("_coalesced") != std::string_view::npos)
    return OpKind::coalesced;
  if (has("barrier")) return OpKind::barrier;
  if (has("allreduce")) return OpKind::all_reduce;
  if (has("allgather")) return OpKind::all_gather;
  if (has("reducescatter")) return OpKind::reduce_scatter;
  if (has("alltoall") || has("all2all")) return OpKind::all_to_all;
  if (has("broadcast") || has("bcast")) return OpKind::broadcast;
  if (has("reduce")) return OpKind::reduce;
  if (has("scatter")) return OpKind::scatter;
  if (has("gather")) return OpKind::gather;
  if (has("sendrecv")) return OpKind::coalesced;
  if (has("recv")) return OpKind::recv;
  if (has("send")) return OpKind::send;
  return OpKind::unknown;
}

DataType ParseDataType(std::string_view name) {
  if (name.starts_with("torch.")) name.remove_prefix(6);
  if (name.starts_with("c10::")) name.remove_prefix(5);
  if (name.starts_with("nccl")) name.remove_prefix(4);
  const std::string key = Squeeze(name);
  struct Entry {
    std::string_view key;
    DataType type;
  };
  static constexpr Entry kTypes[] = {
      {"float", DataType::float32},
      {"float32", DataType::float32},
      {"f32", DataType::float32},
      {"fp32", DataType::float32},
      {"fp16", DataType::float16},
      {"fp64", DataType::float64},
      {"double", DataType::float64},
      {"float64", DataType::float64},
      {"f64", DataType::float64},
      {"half", DataType::float16},
      {"float16", DataType::float16},
      {"f16", DataType::float16},
      {"bfloat16", DataType::bfloat16},
      {"bf16", DataType::bfloat16},
      {"long", DataType::int64},
      {"int64", DataType::int64},
      {"i64", DataType::int64},
      {"int", DataType::int32},
      {"int32", DataType::int32},
      {"i32", DataType::int32},
      {"short", DataType::int16},
      {"int16", DataType::int16},
      {"char", DataType::int8},
      {"int8", DataType::int8},
      {"i8", DataType::int8},
      {"byte", DataType::uint8},
      {"uint8", DataType::uint8},
      {"u8", DataType::uint8},
      {"uint32", DataType::uint32},
      {"u32", DataType::uint32},
      {"uint64", DataType::uint64},
      {"u64", DataType::uint64},
      {"bool", DataType::boolean},
      {"float8e4m3fn", DataType::float8_e4m3},
      {"float8e4m3", DataType::float8_e4m3},
      {"f8e4m3", DataType::float8_e4m3},
      {"float8e4m3fnuz", DataType::float8_e4m3},
      {"float8e5m2", DataType::float8_e5m2},
      {"f8e5m2", DataType::float8_e5m2},
      {"float8e5m2fnuz", DataType::float8_e5m2},
      {"complexfloat", DataType::complex64},
      {"complex64", DataType::complex64},
      {"complexdouble", DataType::complex128},
      {"complex128", DataType::complex128},
  };
  for (const auto& entry : kTypes)
    if (entry.key == key) return entry.type;
  return DataType::unknown;
}

DataType DataTypeFromNccl(int64_t code) {
  static constexpr DataType kTypes[] = {DataType::int8,     DataType::uint8,       DataType::int32,
                                        DataType::uint32,   DataType::int64,       DataType::uint64,
                                        DataType::float16,  DataType::float32,     DataType::float64,
                                        DataType::bfloat16, DataType::float8_e4m3, DataType::float8_e5m2};
  return code >= 0 && code < 12 ? kTypes[code] : DataType::unknown;
}

ReduceOp ReduceOpFromNccl(int64_t code) {
  static constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min, ReduceOp::avg};
  if (code < 0) return ReduceOp::unknown;
  return code < 5 ? kOps[code] : ReduceOp::user;
}

double BusFactor(OpKind kind, int32_t n) {
  if (n < 1) return 1;
  const double share = static_cast<double>(n - 1) / n;
  switch (kind) {
    case OpKind::all_reduce: return 2 * share;
    case OpKind::all_gather:
    case OpKind::reduce_scatter:
    case OpKind::all_to_all:
    case OpKind::gather:
    case OpKind::scatter: return share;
    default: return 1;
  }
}

}  // namespace tacet
