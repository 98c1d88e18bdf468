// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>

#include "evidence/format.h"

namespace tacet {
extern const Format kPipelineTraceFormat;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tacet::kPipelineTraceFormat.recognise(bytes.substr(0, tacet::kPrefixBytes), "timeline.json");
  tacet::Fragment fragment;
  tacet::kPipelineTraceFormat.read({"timeline.json", bytes, false}, fragment);
  const tacet::Accounting& count = fragment.bytes;
  if (count.understood + count.ignored + count.not_understood != count.total || count.total != size) std::abort();
  return 0;
}
