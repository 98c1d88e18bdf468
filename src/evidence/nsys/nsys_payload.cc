// SPDX-License-Identifier: Apache-2.0
#include "nsys_payload.h"

#include <bit>
#include <cstring>
#include <optional>

namespace tacet {
namespace {

constexpr size_t kHeaderBytes = 32;
constexpr size_t kMaxSchemas = 4096, kMaxEntries = 64;

// Bytes of an integer of NVTX's nvtxPayloadSchemaEntry type; 0 for what is none. `int` is 5, uint64_t 18, size_t 22.
uint8_t WidthOf(int64_t type) {
  static constexpr uint8_t kWidths[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 1, 1, 2, 2, 4, 4, 8, 8, 0, 0, 0, 8, 8};
  if (type >= 0 && type < static_cast<int64_t>(sizeof kWidths)) return kWidths[type];
  // NCCL's own enumeration of reductions is a schema of its own, an int.
  return type >= (1 << 24) ? 4 : 0;
}

uint64_t ReadLittleEndian(std::string_view bytes, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) value |= uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

}  // namespace

void NsysPayloadSchemas::Add(uint64_t domain, uint64_t schema, int64_t type, std::string_view name, int64_t offset) {
  struct Known {
    std::string_view name;
    Field field;
  };
  static constexpr Known kFields[] = {{"NCCL communicator ID", Field::comm},
                                      {"Parent NCCL communicator ID", Field::parent},
                                      {"Message size [bytes]", Field::bytes},
                                      {"Bytes", Field::bytes},
                                      {"No. of ranks", Field::nranks},
                                      {"Rank", Field::rank},
                                      {"Root", Field::root},
                                      {"Peer rank", Field::peer},
                                      {"Reduction operation", Field::reduction}};
  const uint8_t width = WidthOf(type);
  if (width == 0 || offset > 4096 || (schemas_.size() >= kMaxSchemas && !schemas_.contains({domain, schema}))) return;
  for (const Known& known : kFields) {
    if (known.name != name) continue;
    std::vector<Entry>& entries = schemas_[{domain, schema}];
    // The first field has no offset; several processes of one file tell the same schema again.
    if (entries.size() < kMaxEntries)
      entries.push_back({known.field, width, static_cast<size_t>(offset < 0 ? 0 : offset)});
  }
}

bool NsysPayloadSchemas::Decode(std::string_view binary, NsysNcclArguments* out) const {
  if (binary.size() < kHeaderBytes) return false;
  const auto found = schemas_.find({ReadLittleEndian(binary, 0, 8), ReadLittleEndian(binary, 8, 8)});
  if (found == schemas_.end()) return false;
  const std::string_view payload = binary.substr(kHeaderBytes);
  for (const Entry& entry : found->second) {
    if (entry.offset + entry.width > payload.size()) continue;
    const uint64_t value = ReadLittleEndian(payload, entry.offset, entry.width);
    const auto small = static_cast<int32_t>(value & 0xffffffffu);
    switch (entry.field) {
      case Field::comm: out->comm_id = value; break;
      case Field::parent: out->parent_comm_id = value; break;
      case Field::bytes: out->bytes = value < (uint64_t{1} << 58) ? static_cast<int64_t>(value) : -1; break;
      case Field::nranks: out->nranks = small; break;
      case Field::rank: out->rank = small; break;
      case Field::root: out->root = small; break;
      case Field::peer: out->peer = small; break;
      case Field::reduction: out->reduction = small; break;
    }
  }
  return true;
}

}  // namespace tacet
