// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "evidence/format.h"

namespace tacet {
extern const Format kRunRecordFormat;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tacet::kRunRecordFormat.recognise(bytes.substr(0, tacet::kPrefixBytes), "watch.json");
  tacet::Fragment out;
  tacet::kRunRecordFormat.read({"watch.json", bytes, false}, out);
  const tacet::Accounting& sum = out.bytes;
  if (sum.total != size || sum.understood + sum.ignored + sum.not_understood != sum.total) std::abort();
  return 0;
}
