// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>

#include "evidence/format.h"

namespace tacet {
extern const Format kFlightRecorderFormat;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const tacet::Format& format = tacet::kFlightRecorderFormat;
  format.recognise(bytes.substr(0, tacet::kPrefixBytes), "nccl_trace_rank_0");
  tacet::Fragment fragment;
  format.read({"nccl_trace_rank_0", bytes}, fragment);
  const tacet::Accounting& count = fragment.bytes;
  if (count.total != size || count.understood + count.ignored + count.not_understood != size) std::abort();
  for (const tacet::CallStream& stream : fragment.streams) {
    for (const tacet::Call& call : stream.calls) {
      if (call.group != tacet::GroupIndex::none && static_cast<size_t>(call.group) >= fragment.groups.size())
        std::abort();
      if (static_cast<size_t>(call.stack) >= fragment.stacks.size()) std::abort();
      if (static_cast<size_t>(call.shape) >= fragment.strings.size()) std::abort();
      if (call.offset >= size) std::abort();
      (void)call.Bytes();
    }
    for (const tacet::GroupProgress& row : stream.progress)
      if (row.group != tacet::GroupIndex::none && static_cast<size_t>(row.group) >= fragment.groups.size())
        std::abort();
  }
  return 0;
}
