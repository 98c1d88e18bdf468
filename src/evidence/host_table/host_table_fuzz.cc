// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "evidence/host_table/host_table_parse.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const tacet::HostTable table = tacet::ParseHostTable(bytes);
  if (table.understood + table.ignored + table.not_understood != size) std::abort();
  return 0;
}
