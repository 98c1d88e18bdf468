// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "evidence/format.h"

namespace tacet {
extern const Format kKernelLogFormat;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tacet::kKernelLogFormat.recognise(bytes.substr(0, tacet::kPrefixBytes), "dmesg.txt");
  tacet::Fragment out;
  tacet::kKernelLogFormat.read({"dmesg.txt", bytes, false}, out);
  const tacet::Accounting& sum = out.bytes;
  if (sum.total != size || sum.understood + sum.ignored + sum.not_understood != size) std::abort();
  for (const auto& event : out.events)
    if (event.speaker != tacet::kNobody && event.speaker >= out.speakers.size()) std::abort();
  return 0;
}
