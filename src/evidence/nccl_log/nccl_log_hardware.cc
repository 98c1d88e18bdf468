// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_log/nccl_log_hardware.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMostHardware = 4096;  // devices of one host

// "GPU/0-c8000", "GPU/C8000", "NET/0-3", "CPU/0-ffffffffffffff", "NVS/0": takes it off the front.
bool TakeDeviceName(std::string_view& text, DeviceKind* kind, uint64_t* id) {
  static constexpr std::pair<std::string_view, DeviceKind> kKinds[] = {
      {"GPU/", DeviceKind::gpu},    {"NET/", DeviceKind::net}, {"NIC/", DeviceKind::nic},
      {"CPU/", DeviceKind::cpu},    {"PCI/", DeviceKind::pci}, {"NVS/", DeviceKind::nvswitch},
      {"GIN/", DeviceKind::unknown}};
  for (const auto& [word, one] : kKinds) {
    if (!TakeLiteral(text, word)) continue;
    *kind = one;
    std::string_view rest = text;
    uint64_t system = 0;
    if (TakeNumber(rest, &system) && TakeLiteral(rest, "-")) text = rest;  // the number of the system stands first
    return TakeNumber(text, id, 16);
  }
  return false;
}

class TreeReader {
 public:
  explicit TreeReader(Hardware& hardware) : hardware_(hardware) {}

  // CPU/0-0 (1/1/2)
  // + PCI[48.0] - PCI/0-16000 (1000c0301000100b)
  //               + PCI[48.0] - GPU/0-18000 (0)
  //                             + NVL[370.8] - NVS/0-0
  //               + PCI[48.0] - NIC/0-19000
  //                             + NET[50.0] - NET/0-3 (aa24210003bd70c4/1/50.000000)
  void Take(std::string_view row) {
    const size_t indent = std::min(row.find_first_not_of(' '), row.size());
    row.remove_prefix(indent);
    std::string_view link;
    double gbs = 0;
    const bool below = TakeLiteral(row, "+ ");
    if (below) {
      link = TakeUntil(row, '[');
      if (!TakeLiteral(row, "[") || !TakeDouble(row, &gbs) || !TakeLiteral(row, "] - ")) return;
      if (gbs < 0 || gbs > 1e6) gbs = 0;
    }
    DeviceKind kind{};
    uint64_t id = 0;
    if (!TakeDeviceName(row, &kind, &id) || hardware_.devices.size() >= kMostHardware) return;
    while (!open_.empty() && (!below || open_.back().first >= static_cast<int>(indent))) open_.pop_back();
    const int32_t parent = open_.empty() ? -1 : open_.back().second;
    if (link == "NVL" || link == "C2C" || link == "XGMI") {
      if (parent >= 0) hardware_.devices[static_cast<size_t>(parent)].nvlink_gbs += link == "C2C" ? 0 : gbs;
      if (kind == DeviceKind::nvswitch && hardware_.Find(kind, id) < 0) Add(kind, id, -1, 0);
      return;
    }
    if (link == "SYS") return;  // to another CPU, which has rows of its own
    const int32_t own = Add(kind, id, below ? parent : -1, gbs);
    ReadEnding(row, hardware_.devices[static_cast<size_t>(own)]);
    open_.emplace_back(below ? static_cast<int>(indent) : -1, own);
  }

 private:
  int32_t Add(DeviceKind kind, uint64_t id, int32_t parent, double gbs) {
    HardwareDevice device;
    device.kind = kind;
    device.id = id;
    device.parent = parent;
    device.link_gbs = gbs;
    hardware_.devices.push_back(std::move(device));
    return static_cast<int32_t>(hardware_.devices.size() - 1);
  }

  // " (3)" behind a GPU is its rank; " (guid/port/50.000000)" or " (coll/guid/port/50.000000)" behind a network.
  static void ReadEnding(std::string_view row, HardwareDevice& device) {
    if (!TakeLiteral(row, " (")) return;
    if (device.kind == DeviceKind::gpu) TakeNumber(row, &device.number);
    if (device.kind != DeviceKind::net) return;
    device.number = static_cast<int32_t>(std::min<uint64_t>(device.id, INT32_MAX));
    const size_t slash = row.rfind('/');
    if (slash == std::string_view::npos) return;
    std::string_view speed = row.substr(slash + 1);
    TakeDouble(speed, &device.speed_gbs);
  }

  Hardware& hardware_;
  std::vector<std::pair<int, int32_t>> open_;  // (indentation, device) from the CPU down
};

// GPU/0-60 :GPU/0-60 (0/5000.0/LOC) CPU/0-1 (1/48.0/PHB) NET/0-0 (3/1.2/PHB)
void ReadPaths(std::string_view row, Hardware& hardware) {
  DeviceKind kind{};
  uint64_t id = 0;
  if (!TakeDeviceName(row, &kind, &id) || kind != DeviceKind::gpu) return;
  const int32_t from = hardware.Find(kind, id);
  if (from < 0 || !TakeLiteral(row, " :")) return;
  for (SkipBlanks(row); TakeDeviceName(row, &kind, &id); SkipBlanks(row)) {
    int hops = 0;
    HardwarePath path;
    if (!TakeLiteral(row, " (") || !TakeNumber(row, &hops) || !TakeLiteral(row, "/") || !TakeDouble(row, &path.gbs) ||
        !TakeLiteral(row, "/"))
      return;
    path.type = ParseNcclPath(TakeUntil(row, ')'));
    TakeLiteral(row, ")");
    const int32_t to = hardware.Find(kind, id);
    if (to < 0 || to == from || (kind != DeviceKind::gpu && kind != DeviceKind::net)) continue;
    path.from = static_cast<uint32_t>(from);
    path.to = static_cast<uint32_t>(to);
    hardware.paths.push_back(path);
  }
}

}  // namespace

Hardware ParseHardware(std::span<const std::string_view> system_rows, std::span<const std::string_view> path_rows) {
  Hardware hardware;
  TreeReader tree(hardware);
  for (const std::string_view row : system_rows) tree.Take(row);
  for (const std::string_view row : path_rows) ReadPaths(row, hardware);
  if (hardware.paths.empty()) DerivePaths(hardware);
  return hardware;
}

void AddHardwareOfSetups(Fragment& out) {
  std::set<std::pair<uint32_t, std::vector<StringId>>> known;
  for (const NcclSetup& setup : out.nccl_setups) {
    if (setup.system_rows.empty() || !known.emplace(setup.speaker, setup.system_rows).second) continue;
    std::vector<std::string_view> rows, paths;
    for (const StringId row : setup.system_rows) rows.push_back(out.strings.Get(row));
    for (const StringId row : setup.path_rows) paths.push_back(out.strings.Get(row));
    Hardware hardware = ParseHardware(rows, paths);
    hardware.speaker = setup.speaker;
    hardware.group = setup.group;
    hardware.source = setup.system_source;
    if (!hardware.devices.empty()) out.hardware.push_back(std::move(hardware));
  }
}

}  // namespace tacet
