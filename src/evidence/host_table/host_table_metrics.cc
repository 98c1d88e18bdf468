// SPDX-License-Identifier: Apache-2.0
#include "evidence/host_table/host_table_metrics.h"

#include <algorithm>

#include "base/text_scan.h"

namespace tacet {
namespace {

std::string_view LabelOf(std::string_view labels, std::string_view key) {
  for (size_t at = labels.find(key); at != std::string_view::npos; at = labels.find(key, at + 1)) {
    if (at > 0 && labels[at - 1] != ',' && labels[at - 1] != '{') continue;
    std::string_view rest = labels.substr(at + key.size());
    if (!TakeLiteral(rest, "=\"")) continue;
    return rest.substr(0, rest.find('"'));
  }
  return {};
}

// "00000000:9B:00.0"
std::string KernelAddress(std::string_view pci) {
  if (pci.size() > 12 && pci[8] == ':') pci.remove_prefix(4);
  std::string out(pci.substr(0, pci.find('.')));
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out.size() == 10 ? out : std::string();
}

}  // namespace

std::optional<DcgmSample> ParseDcgmSample(std::string_view line) {
  const std::string_view text = Trim(line);
  const size_t open = text.find('{'), close = text.rfind('}');
  if (!text.starts_with("DCGM_FI_") || open == std::string_view::npos || close == std::string_view::npos || close < open)
    return std::nullopt;
  DcgmSample sample;
  sample.name = text.substr(0, open);
  if (sample.name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != std::string_view::npos)
    return std::nullopt;
  const std::string_view labels = text.substr(open + 1, close - open - 1);
  sample.host = LabelOf(labels, "Hostname");
  sample.pci = KernelAddress(LabelOf(labels, "pci_bus_id"));
  std::string_view value = Trim(text.substr(close + 1));
  if (!TakeDouble(value, &sample.value)) return std::nullopt;
  return sample;
}

}  // namespace tacet
