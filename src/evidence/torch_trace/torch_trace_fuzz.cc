// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "tests/fuzz/timeline_check.h"
#include "torch_trace_import.h"

namespace tacet {
extern const Format kTorchTraceFormat;
}  // namespace tacet

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tacet::kTorchTraceFormat.recognise(bytes.substr(0, tacet::kPrefixBytes), "trace.json");
  tacet::Fragment plain, streamed;
  tacet::kTorchTraceFormat.read({"trace_rank1.json", bytes, false}, plain);
  tacet::CheckTimelines(plain);
  tacet::kTorchTraceFormat.read_stream({"trace_rank1.json.gz", bytes, false}, streamed);
  tacet::CheckTimelines(streamed);
  return 0;
}
