// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacet {

// What NCCL tells NVTX about one of its calls. -1 and 0: not told.
struct NsysNcclArguments {
  uint64_t comm_id = 0, parent_comm_id = 0;
  int64_t bytes = -1;              // of the buffer whose count the call names
  int32_t nranks = -1, rank = -1;  // of calls that make a communicator
  int32_t root = -1, peer = -1, reduction = -1;
};

// How NVTX payloads are laid out: NVTX_PAYLOAD_SCHEMA_ENTRIES says for every schema where which field lies.
//   domainId  schemaId  idx  type  name                    offset
//   3         16777221  0    18    "NCCL communicator ID"  NULL
//   3         16777221  1    22    "Message size [bytes]"  8
class NsysPayloadSchemas {
 public:
  void Add(uint64_t domain, uint64_t schema, int64_t type, std::string_view name, int64_t offset);

  // NVTX_EVENTS.binaryData: a header of 32 bytes (domain and schema, eight bytes each; size of the payload; where it
  // begins or ends), then the payload, little-endian. Fields that do not fit are left out.
  bool Decode(std::string_view binary, NsysNcclArguments* out) const;

  enum class Field : uint8_t { comm, parent, bytes, nranks, rank, root, peer, reduction };

 private:
  struct Entry {
    Field field;
    uint8_t width;
    size_t offset;
  };
  std::map<std::pair<uint64_t, uint64_t>, std::vector<Entry>> schemas_;  // by domain and schema
};

// NVTX_EVENTS.jsonText, where the exporter has decoded the payload itself; names are those of the schema:
//   {"NCCL communicator ID": 11650337413366214443, "Message size [bytes]": 4194304, "Reduction operation": "Sum"}
// Fields it does not have, or that are no numbers, are left out. False where none is known.
bool DecodeNsysJson(std::string_view json, NsysNcclArguments* out);

}  // namespace tacet
