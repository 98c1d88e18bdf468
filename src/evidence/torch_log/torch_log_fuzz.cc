// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "evidence/format.h"

namespace tacet {
extern const Format kTorchLogFormat;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tacet::kTorchLogFormat.recognise(bytes.substr(0, tacet::kPrefixBytes), "stdout_rank3.log");
  tacet::Fragment fragment;
  tacet::kTorchLogFormat.read({"stdout_rank3.log", bytes, false}, fragment);
  const tacet::Accounting& sum = fragment.bytes;
  if (sum.total != size || sum.understood + sum.ignored + sum.not_understood != sum.total) std::abort();
  for (const tacet::Event& event : fragment.events)
    if (event.speaker != tacet::kNobody && event.speaker >= fragment.speakers.size()) std::abort();
  return 0;
}
