// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "nsys_import.h"
#include "tests/fuzz/timeline_check.h"

namespace tacet {
extern const Format kNsysFormat;
}  // namespace tacet

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tacet::kNsysFormat.recognise(bytes.substr(0, tacet::kPrefixBytes), "report.sqlite");
  tacet::Fragment fragment;
  tacet::kNsysFormat.read({"report_rank1.sqlite", bytes, false}, fragment);
  tacet::CheckTimelines(fragment);
  return 0;
}
