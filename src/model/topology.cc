// SPDX-License-Identifier: Apache-2.0
#include "model/topology.h"

#include <algorithm>

#include "base/text_scan.h"

namespace tacet {
namespace {

// "3(5)/GDRDMA(PCI)/Shared": device, relay and what follows.
void ReadNetEnding(std::string_view text, Transport& transport) {
  TakeNumber(text, &transport.device);
  if (text.starts_with("(")) {
    std::string_view rest = text.substr(1);
    if (TakeNumber(rest, &transport.proxy_rank)) text = rest;
  }
  transport.gdr = Contains(text, "/GDRDMA");
  transport.shared = Contains(text, "/Shared");
}

}  // namespace

// P2P/IPC/read                    P2P/direct pointer           P2P/indirect/3[3]
// SHM/direct/direct               direct shared memory
// NET/IB/3(5)/GDRDMA/Shared       NET/AWS Libfabric/2/GDRDMA   COLLNET/SHARP/0/GDRDMA
Transport ParseTransport(std::string_view via) {
  Transport transport;
  via = Trim(via).substr(0, 200);
  transport.text = via;
  std::string_view text = via;
  if (TakeLiteral(text, "P2P/")) {
    transport.kind = TransportKind::p2p;
    transport.name = TakeUntil(text, '/');
    transport.read = Contains(text, "/read");
    transport.copy_engine = Contains(text, "/CE");
  } else if (text.starts_with("SHM") || text == "direct shared memory") {
    transport.kind = TransportKind::shm;
    transport.name = "direct";
    transport.copy_engine = Contains(text, "/CE");
  } else if (text.starts_with("NET/") || text.starts_with("COLLNET/")) {
    transport.kind = text[0] == 'N' ? TransportKind::net : TransportKind::collnet;
    text.remove_prefix(transport.kind == TransportKind::net ? 4 : 8);
    transport.name = TakeUntil(text, '/');
    if (!text.empty()) text.remove_prefix(1);
    ReadNetEnding(text, transport);
  }
  return transport;
}

std::string Transport::Class() const {
  switch (kind) {
    case TransportKind::p2p: return "P2P/" + name;
    case TransportKind::shm: return "SHM";
    case TransportKind::net: return "NET/" + name + (gdr ? "/GDRDMA" : "");
    case TransportKind::collnet: return "COLLNET/" + name + (gdr ? "/GDRDMA" : "");
    case TransportKind::unknown: break;
  }
  return text;
}

int32_t Hardware::Find(DeviceKind kind, uint64_t id) const {
  for (size_t i = 0; i < devices.size(); ++i)
    if (devices[i].kind == kind && devices[i].id == id) return static_cast<int32_t>(i);
  return -1;
}

const HardwarePath* Hardware::Path(uint32_t from, uint32_t to) const {
  for (const HardwarePath& path : paths)
    if (path.from == from && path.to == to) return &path;
  return nullptr;
}

namespace {

// From a device to the top, itself first. A made-up tree may hold a circle: no real one is deeper than this.
std::vector<int32_t> WayUp(const Hardware& hardware, int32_t device) {
  constexpr size_t kDeepest = 32;
  std::vector<int32_t> way;
  for (; device >= 0 && way.size() < kDeepest; device = hardware.devices[static_cast<size_t>(device)].parent)
    way.push_back(device);
  return way;
}

HardwarePath Between(const Hardware& hardware, uint32_t a, uint32_t b) {
  const auto up_a = WayUp(hardware, static_cast<int32_t>(a)), up_b = WayUp(hardware, static_cast<int32_t>(b));
  HardwarePath path{a, b, 0, NcclPath::sys};
  double slowest = hardware.devices[b].speed_gbs > 0 ? hardware.devices[b].speed_gbs : 1e9;
  const auto pass = [&](int32_t device) {
    const double gbs = hardware.devices[static_cast<size_t>(device)].link_gbs;
    if (gbs > 0) slowest = std::min(slowest, gbs);
  };
  for (size_t i = 0; i < up_a.size(); ++i) {
    const auto met = std::find(up_b.begin(), up_b.end(), up_a[i]);
    if (met == up_b.end()) continue;
    int switches = 0;  // bridges on the way
    const auto count = [&](int32_t device) {
      switches += hardware.devices[static_cast<size_t>(device)].kind == DeviceKind::pci ? 1 : 0;
      pass(device);
    };
    for (size_t k = 0; k < i; ++k) count(up_a[k]);
    for (auto it = up_b.begin(); it != met; ++it) count(*it);
    const DeviceKind top = hardware.devices[static_cast<size_t>(up_a[i])].kind;
    if (top == DeviceKind::cpu)
      path.type = NcclPath::phb;
    else
      path.type = switches + 1 <= 1 ? NcclPath::pix : NcclPath::pxb;
    break;
  }
  path.gbs = slowest < 1e9 ? slowest : 0;
  return path;
}

}  // namespace

void DerivePaths(Hardware& hardware) {
  constexpr size_t kMostDevices = 512;  // of one host; beyond that the file is no host
  std::vector<uint32_t> gpus, nets;
  for (uint32_t i = 0; i < hardware.devices.size(); ++i) {
    if (hardware.devices[i].kind == DeviceKind::gpu) gpus.push_back(i);
    if (hardware.devices[i].kind == DeviceKind::net) nets.push_back(i);
  }
  if (gpus.size() + nets.size() > kMostDevices) return;
  for (const uint32_t gpu : gpus) {
    for (const uint32_t net : nets) hardware.paths.push_back(Between(hardware, gpu, net));
    for (const uint32_t other : gpus) {
      if (other == gpu) continue;
      HardwarePath path = Between(hardware, gpu, other);
      const double nvlink = std::min(hardware.devices[gpu].nvlink_gbs, hardware.devices[other].nvlink_gbs);
      if (nvlink > 0) path = {gpu, other, nvlink, NcclPath::nvl};
      hardware.paths.push_back(path);
    }
  }
}

}  // namespace tacet
