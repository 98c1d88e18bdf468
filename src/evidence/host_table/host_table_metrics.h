// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tacet {

// A sample of dcgm-exporter, as Prometheus reads it:
//   DCGM_FI_DEV_XID_ERRORS{gpu="3",UUID="GPU-...",pci_bus_id="00000000:9B:00.0",...,Hostname="gpu07"} 79
struct DcgmSample {
  std::string_view name, host;
  std::string pci;  // "0000:9b:00", as the kernel writes it
  double value = 0;
};

std::optional<DcgmSample> ParseDcgmSample(std::string_view line);

}  // namespace tacet
