// SPDX-License-Identifier: Apache-2.0
#include "evidence/topology_xml/topology_xml_import.h"

#include <algorithm>
#include <string>

#include "base/text_scan.h"
#include "base/xml_reader.h"
#include "evidence/topology_xml/topology_xml_parse.h"

namespace tacet {
namespace {

constexpr size_t kMostDevices = 4096;  // of one host

int Number(std::string_view text, int otherwise = -1) {
  int value = otherwise;
  return TakeNumber(text, &value) ? value : otherwise;
}

double Decimal(std::string_view text) {
  double value = 0;
  return TakeDouble(text, &value) && value >= 0 && value < 1e9 ? value : 0;
}

// The class of a PCI device: "0x060400" is a bridge.
bool IsBridge(std::string_view pci_class) { return pci_class.starts_with("0x0604"); }

class SystemImport {
 public:
  explicit SystemImport(Fragment& out) : out_(out) {}

  void Take(const XmlReader& xml) {
    parents_.resize(std::min(parents_.size(), xml.depth() - 1));
    while (parents_.size() + 1 < xml.depth()) parents_.push_back(parents_.empty() ? -1 : parents_.back());
    int32_t own = parents_.empty() ? -1 : parents_.back();
    const std::string_view name = xml.name();
    if (hardware_.devices.size() >= kMostDevices) return;
    if (name == "system") {
      hardware_.source = {FileId{0}, xml.line(), xml.offset()};
    } else if (name == "cpu") {
      own = Add(xml, DeviceKind::cpu, static_cast<uint64_t>(Number(xml.Get("numaid"), 0)), -1);
      if (hardware_.host.empty()) hardware_.host = xml.Get("host_hash").substr(0, 64);
    } else if (name == "pci") {
      own = Add(xml, IsBridge(xml.Get("class")) ? DeviceKind::pci : DeviceKind::unknown, ParseBusId(xml.Get("busid")),
                own);
      hardware_.devices.back().link_gbs = PciGbs(xml.Get("link_speed"), Number(xml.Get("link_width"), 0));
    } else if (name == "gpu") {
      // The PCI device around it is the GPU itself.
      if (own < 0 || hardware_.devices[static_cast<size_t>(own)].kind == DeviceKind::cpu)
        own = Add(xml, DeviceKind::gpu, 0, own);
      HardwareDevice& gpu = hardware_.devices[static_cast<size_t>(own)];
      gpu.kind = DeviceKind::gpu;
      gpu.number = Number(xml.Get("rank"), Number(xml.Get("dev")));
      gpu.gdr = Number(xml.Get("gdr"));
      gpu.name = "GPU" + std::to_string(Number(xml.Get("dev"), 0));
      capability_ = Number(xml.Get("sm"), 0);
    } else if (name == "nvlink") {
      if (own >= 0 && hardware_.devices[static_cast<size_t>(own)].kind == DeviceKind::gpu)
        hardware_.devices[static_cast<size_t>(own)].nvlink_gbs +=
            std::clamp(Number(xml.Get("count"), 1), 0, 64) * NvlinkGbs(capability_);
    } else if (name == "nic") {
      if (own < 0 || hardware_.devices[static_cast<size_t>(own)].kind != DeviceKind::unknown)
        own = Add(xml, DeviceKind::nic, 0, own);
      hardware_.devices[static_cast<size_t>(own)].kind = DeviceKind::nic;
    } else if (name == "net") {
      const int dev = Number(xml.Get("dev"));
      own = Add(xml, DeviceKind::net, static_cast<uint64_t>(std::max(dev, 0)), own);
      HardwareDevice& net = hardware_.devices.back();
      net.number = dev;
      net.name = xml.Get("name").substr(0, 64);
      net.speed_gbs = net.link_gbs = Decimal(xml.Get("speed")) / 8000;
      net.gdr = Number(xml.Get("gdr"));
    }
    parents_.push_back(own);
  }

  void Finish() {
    DerivePaths(hardware_);
    if (!hardware_.devices.empty()) out_.hardware.push_back(std::move(hardware_));
  }

 private:
  int32_t Add(const XmlReader&, DeviceKind kind, uint64_t id, int32_t parent) {
    HardwareDevice device;
    device.kind = kind;
    device.id = id;
    device.parent = parent;
    hardware_.devices.push_back(std::move(device));
    return static_cast<int32_t>(hardware_.devices.size() - 1);
  }

  Fragment& out_;
  Hardware hardware_;
  std::vector<int32_t> parents_;  // by depth: the device whose children stand below
  int capability_ = 0;
};

// <graph id="0" pattern="4" ...> holds channels, and these their devices in order.
class GraphImport {
 public:
  explicit GraphImport(Fragment& out) : out_(out) { setup_.speaker = kNobody; }

  void Take(const XmlReader& xml) {
    const std::string_view name = xml.name();
    if (name == "graph") {
      EndChannel();
      NcclGraphSearch& graph = setup_.graphs.emplace_back();
      graph.pattern = Number(xml.Get("pattern"), 0);
      graph.algorithm = AlgorithmOf(Number(xml.Get("id")), graph.pattern);
      graph.cross_nic = Number(xml.Get("crossnic"), 0);
      graph.channels = Number(xml.Get("nchannels"), 0);
      graph.same_channels = Number(xml.Get("samechannels"), 0);
      graph.bw_intra = Decimal(xml.Get("speedintra"));
      graph.bw_inter = Decimal(xml.Get("speedinter"));
      graph.latency_inter_us = Decimal(xml.Get("latencyinter"));
      graph.type_intra = ParseNcclPath(xml.Get("typeintra"));
      graph.type_inter = ParseNcclPath(xml.Get("typeinter"));
      graph.simple_order = graph.channels > 0 && graph.bw_intra > 0 && graph.bw_intra < 0.11;
      graph.source = {FileId{0}, xml.line(), xml.offset()};
    } else if (name == "channel") {
      EndChannel();
      in_channel_ = !setup_.graphs.empty();
    } else if (in_channel_ && (name == "net" || name == "gpu") && row_.size() < 4096) {
      row_ += (row_.empty() ? "" : " ") + std::string(name == "net" ? "NET/" : "GPU/") + std::string(xml.Get("dev"));
    }
  }

  void Finish() {
    EndChannel();
    if (setup_.graphs.empty()) return;
    setup_.source = setup_.graphs.front().source;
    out_.nccl_setups.push_back(std::move(setup_));
  }

 private:
  static NcclAlgorithm AlgorithmOf(int id, int pattern) {
    static constexpr NcclAlgorithm kById[] = {NcclAlgorithm::ring, NcclAlgorithm::tree, NcclAlgorithm::collnet_chain,
                                              NcclAlgorithm::nvls, NcclAlgorithm::collnet_direct};
    if (pattern == kPatternRing) return NcclAlgorithm::ring;
    if (pattern == kPatternNvls) return NcclAlgorithm::nvls;
    return id >= 0 && id < 5 ? kById[id] : NcclAlgorithm::unknown;
  }
  void EndChannel() {
    if (in_channel_ && setup_.graphs.back().rows.size() < 256)
      setup_.graphs.back().rows.push_back(out_.strings.Intern(row_));
    row_.clear();
    in_channel_ = false;
  }

  Fragment& out_;
  NcclSetup setup_;
  std::string row_;
  bool in_channel_ = false;
};

template <typename Import>
void Walk(std::string_view bytes, Fragment& out) {
  Import import(out);
  XmlReader xml(bytes);
  while (xml.Next()) import.Take(xml);
  import.Finish();
  out.bytes.understood = bytes.size();
  if (!xml.problem().empty())
    out.Note(DiagnosticSeverity::warning, "truncated", xml.problem() + "; what came before was read",
             {FileId{0}, xml.line(), xml.offset()});
}

}  // namespace

void ReadTopologyXml(const FileView& file, Fragment& out) {
  out.bytes.total = file.bytes.size();
  switch (KindOfTopologyXml(file.bytes)) {
    case TopologyXmlKind::system: Walk<SystemImport>(file.bytes, out); break;
    case TopologyXmlKind::graphs: Walk<GraphImport>(file.bytes, out); break;
    case TopologyXmlKind::none: out.bytes.not_understood = file.bytes.size(); break;
  }
}

}  // namespace tacet
