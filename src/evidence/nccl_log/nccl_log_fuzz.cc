// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>

#include "evidence/format.h"

namespace tacet {
extern const Format kNcclLogFormat;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tacet::kNcclLogFormat.recognise(bytes.substr(0, tacet::kPrefixBytes), "nccl_rank3.log");
  tacet::Fragment fragment;
  tacet::kNcclLogFormat.read({"nccl_rank3.log", bytes, false}, fragment);
  const tacet::Accounting& account = fragment.bytes;
  if (account.total != size || account.understood + account.ignored + account.not_understood != size) std::abort();
  for (const tacet::CallStream& stream : fragment.streams) {
    if (stream.speaker >= fragment.speakers.size()) std::abort();
    for (const tacet::Call& call : stream.calls)
      if (static_cast<uint32_t>(call.group) >= fragment.groups.size() || call.Bytes() < -16) std::abort();
  }
  for (const tacet::Event& event : fragment.events)
    if (event.speaker != tacet::kNobody && event.speaker >= fragment.speakers.size()) std::abort();
  return 0;
}
