// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/black_box_layout.h"

// NCCL's names for functions, types, algorithms and protocols as codes. The first letters decide; each character is
// looked at only after the one before it was not the end. API v1 passes numbers instead of names.
namespace tacet::plugin {

inline bool Begins(const char* text, const char* with) {
  while (*with != 0)
    if (*text++ != *with++) return false;
  return true;
}

inline box::Kind KindOf(const char* name) {
  using box::Kind;
  if (name == nullptr) return Kind::unknown;
  switch (name[0]) {
    case 'A':
      if (!Begins(name, "All")) return Kind::unknown;
      return name[3] == 'R'                     ? Kind::all_reduce
             : name[3] == 'G'                   ? Kind::all_gather
             : name[3] == 't' || name[3] == 'T' ? Kind::all_to_all
                                                : Kind::unknown;
    case 'B': return Kind::broadcast;
    case 'G': return Kind::gather;
    case 'P': return Kind::put_signal;
    case 'R':
      if (Begins(name, "Recv")) return Kind::recv;
      if (!Begins(name, "Reduce")) return Kind::unknown;
      return name[6] == 'S' ? Kind::reduce_scatter : Kind::reduce;
    case 'S':
      if (Begins(name, "Send")) return name[4] == 'R' ? Kind::send_recv : Kind::send;
      return name[1] == 'c' ? Kind::scatter : name[1] == 'i' ? Kind::signal : Kind::unknown;
    case 'W': return Kind::wait_signal;
    default: return Kind::unknown;
  }
}

inline box::Kind KindOf(uint8_t code) {
  using box::Kind;
  constexpr Kind kinds[] = {Kind::broadcast,  Kind::reduce,    Kind::all_gather, Kind::reduce_scatter,
                            Kind::all_reduce, Kind::send_recv, Kind::send,       Kind::recv};
  return code < sizeof kinds ? kinds[code] : Kind::unknown;
}

// "ncclFloat32", "ncclBfloat16", "ncclFloat8e4m3", "ncclInt8".
inline box::Type TypeOf(const char* name) {
  using box::Type;
  if (name == nullptr || !Begins(name, "nccl")) return Type::unknown;
  name += 4;
  if (Begins(name, "Float")) {
    switch (name[5]) {
      case '1': return Type::float16;
      case '3': return Type::float32;
      case '6': return Type::float64;
      case '8': return name[6] == 'e' && name[7] == '5' ? Type::float8_e5m2 : Type::float8_e4m3;
      default: return Type::unknown;
    }
  }
  if (name[0] == 'B') return Type::bfloat16;
  const bool is_unsigned = Begins(name, "Uint");
  if (!is_unsigned && !Begins(name, "Int")) return Type::unknown;
  switch (name[is_unsigned ? 4 : 3]) {
    case '8': return is_unsigned ? Type::uint8 : Type::int8;
    case '3': return is_unsigned ? Type::uint32 : Type::int32;
    case '6': return is_unsigned ? Type::uint64 : Type::int64;
    default: return Type::unknown;
  }
}

inline box::Type TypeOf(uint8_t code) {  // ncclDataType_t
  return code <= 11 ? static_cast<box::Type>(code + 1) : box::Type::unknown;
}

inline box::Algorithm AlgorithmOf(const char* name) {
  using box::Algorithm;
  if (name == nullptr) return Algorithm::unknown;
  switch (name[0]) {
    case 'T': return Algorithm::tree;
    case 'R': return Algorithm::ring;
    case 'P': return Algorithm::pat;
    case 'N': return Begins(name, "NVLS_") ? Algorithm::nvls_tree : Algorithm::nvls;
    case 'C': return Begins(name, "COLLNET_C") ? Algorithm::collnet_chain : Algorithm::collnet_direct;
    default: return Algorithm::unknown;
  }
}
inline box::Algorithm AlgorithmOf(uint8_t code) {
  return code <= 6 ? static_cast<box::Algorithm>(code + 1) : box::Algorithm::unknown;
}

inline box::Protocol ProtocolOf(const char* name) {
  using box::Protocol;
  if (name == nullptr) return Protocol::unknown;
  if (name[0] == 'S') return Protocol::simple;
  if (!Begins(name, "LL")) return Protocol::unknown;
  return name[2] == 0 ? Protocol::ll : Protocol::ll128;
}
inline box::Protocol ProtocolOf(uint8_t code) {
  return code <= 2 ? static_cast<box::Protocol>(code + 1) : box::Protocol::unknown;
}

}  // namespace tacet::plugin
