// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "evidence/format.h"

namespace tacet {
extern const Format kBlackBoxFormat;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tacet::kBlackBoxFormat.recognise(bytes.substr(0, tacet::kPrefixBytes), "fuzz.box");
  tacet::Fragment out;
  tacet::kBlackBoxFormat.read({"fuzz.box", bytes}, out);
  if (out.bytes.total != size || out.bytes.understood + out.bytes.ignored + out.bytes.not_understood != size)
    std::abort();
  return 0;
}
