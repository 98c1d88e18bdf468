// SPDX-License-Identifier: Apache-2.0
#include "nsys_payload.h"

#include <bit>
#include <cstring>
#include <optional>

#include "base/json_reader.h"
#include "base/text_scan.h"

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

using Field = NsysPayloadSchemas::Field;

std::optional<Field> FieldOf(std::string_view name) {
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
  for (const Known& known : kFields)
    if (known.name == name) return known.field;
  return std::nullopt;
}

void Take(Field field, uint64_t value, NsysNcclArguments* out) {
  const auto small = static_cast<int32_t>(value & 0xffffffffu);
  switch (field) {
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

// 11650337413366214443 does not fit a signed number, and some writers put identities into strings: "0xa1ae...".
bool NumberIn(std::string_view text, uint64_t* value) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  if (!TakeNumber(text, value, hex ? 16 : 10) || !text.empty()) return false;
  if (negative) *value = ~*value + 1;
  return true;
}

}  // namespace

void NsysPayloadSchemas::Add(uint64_t domain, uint64_t schema, int64_t type, std::string_view name, int64_t offset) {
  const uint8_t width = WidthOf(type);
  if (width == 0 || offset > 4096 || (schemas_.size() >= kMaxSchemas && !schemas_.contains({domain, schema}))) return;
  const std::optional<Field> field = FieldOf(name);
  if (!field) return;
  std::vector<Entry>& entries = schemas_[{domain, schema}];
  // The first field has no offset; several processes of one file tell the same schema again.
  if (entries.size() < kMaxEntries) entries.push_back({*field, width, static_cast<size_t>(offset < 0 ? 0 : offset)});
}

bool NsysPayloadSchemas::Decode(std::string_view binary, NsysNcclArguments* out) const {
  if (binary.size() < kHeaderBytes) return false;
  const auto found = schemas_.find({ReadLittleEndian(binary, 0, 8), ReadLittleEndian(binary, 8, 8)});
  if (found == schemas_.end()) return false;
  const std::string_view payload = binary.substr(kHeaderBytes);
  for (const Entry& entry : found->second) {
    if (entry.offset + entry.width > payload.size()) continue;
    const uint64_t value = ReadLittleEndian(payload, entry.offset, entry.width);
    Take(entry.field, value, out);
  }
  return true;
}

bool DecodeNsysJson(std::string_view json, NsysNcclArguments* out) {
  JsonReader reader(json);
  bool known = false;
  // The payload may lie deeper, beside others: every member with a known name counts.
  std::optional<Field> field;
  for (size_t tokens = 0; tokens < 1000; ++tokens) {
    const JsonReader::Token token = reader.Next();
    if (token == JsonReader::Token::end || token == JsonReader::Token::error) break;
    if (token == JsonReader::Token::key) {
      field = FieldOf(reader.raw());
      continue;
    }
    uint64_t value = 0;
    const bool scalar = token == JsonReader::Token::number || token == JsonReader::Token::string;
    if (field && scalar && NumberIn(reader.raw(), &value)) {
      Take(*field, value, out);
      known = true;
    }
    field.reset();
  }
  return known;
}

}  // namespace tacet
