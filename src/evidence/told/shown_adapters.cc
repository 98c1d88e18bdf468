// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/shown_adapters.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "base/line_reader.h"
#include "base/text_scan.h"

namespace tacet {
namespace {

// CA 'mlx5_0'                                           ibstat
// hca_id: mlx5_0                                        ibv_devinfo
//   NIC0: mlx5_0                                        nvidia-smi topo -m
// 17:00.0 Infiniband controller: Mellanox ... MT28908 Family [ConnectX-6]     lspci
std::string AdapterIn(std::string_view line) {
  std::string_view rest = Trim(line);
  const bool listed = TakeLiteral(rest, "CA '") || TakeLiteral(rest, "hca_id:") ||
                      (rest.starts_with("NIC") && rest.size() > 4 && IsDigit(rest[3]) &&
                       TakeLiteral(rest, rest.substr(0, std::min(rest.find(": "), size_t{5}) + 2)));
  if (listed) {
    SkipBlanks(rest);
    const std::string_view name = rest.substr(0, rest.find_first_of("' \t"));
    const bool fast = name.starts_with("mlx5_") || name.starts_with("mlx4_") || name.starts_with("bnxt_re") ||
                      name.starts_with("irdma") || name.starts_with("ibp") || name.starts_with("hfi1_");
    return fast ? std::string(name) : "";
  }
  if (rest.size() > 200 || rest.find("nfini") == std::string_view::npos) return "";
  return Contains(rest, "Infiniband controller: ") || Contains(rest, "InfiniBand controller: ") ? "InfiniBand adapters"
                                                                                                : "";
}

bool UsesSockets(const Event& event) {
  return event.kind == EventKind::network && event.As<NetworkName>().name == "Socket";
}

}  // namespace

void AddShownAdapters(std::string_view bytes, Fragment& fragment) {
  bool slow = false, sockets = false;
  for (const Event& event : fragment.events) {
    slow |= event.kind == EventKind::told_slow;
    sockets |= UsesSockets(event);
    if (event.kind == EventKind::device_found) return;
  }
  if (!slow || !sockets) return;
  LineReader reader(bytes);
  std::string_view line;
  while (reader.Next(&line)) {
    const std::string adapter = AdapterIn(line);
    if (adapter.empty()) continue;
    Event& event = fragment.events.emplace_back();
    event.kind = EventKind::device_found;
    event.speaker = kNobody;
    event.source = {FileId{}, reader.number(), reader.offset()};
    event.text = std::string(Trim(line).substr(0, 200));
    event.Set(Meaning::in_prose);
    auto& device = event.Make<NetworkDevice>();
    device.name = Contains(adapter, " ") ? adapter : "the adapter " + adapter;
    device.passed_over = true;
    return;
  }
}

}  // namespace tacet
