// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>

#include "base/xml_reader.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tacet::XmlReader xml({reinterpret_cast<const char*>(data), size});
  while (xml.Next()) {
    if (xml.depth() > tacet::XmlReader::kDeepest || xml.offset() > size) std::abort();
    for (const auto& attribute : xml.attributes())
      if (attribute.value.size() > tacet::XmlReader::kLongestValue) std::abort();
  }
  return 0;
}
