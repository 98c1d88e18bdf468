// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>

#include "evidence/format.h"

namespace tacet {
extern const Format kTopologyXmlFormat;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  tacet::kTopologyXmlFormat.recognise(bytes.substr(0, tacet::kPrefixBytes), "topo.xml");
  tacet::Fragment out;
  tacet::kTopologyXmlFormat.read({"topo.xml", bytes, false}, out);
  const tacet::Accounting& sum = out.bytes;
  if (sum.total != size || sum.understood + sum.ignored + sum.not_understood != sum.total) std::abort();
  for (const tacet::Hardware& hardware : out.hardware)
    for (const tacet::HardwarePath& path : hardware.paths)
      if (path.from >= hardware.devices.size() || path.to >= hardware.devices.size()) std::abort();
  return 0;
}
