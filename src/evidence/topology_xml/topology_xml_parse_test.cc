// SPDX-License-Identifier: Apache-2.0
#include "evidence/topology_xml/topology_xml_parse.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "evidence/topology_xml/topology_xml_import.h"

namespace tacet {
namespace {

Fragment ReadText(std::string_view text) {
  Fragment out;
  ReadTopologyXml({"topo.xml", text, false}, out);
  EXPECT_EQ(out.bytes.understood + out.bytes.ignored + out.bytes.not_understood, text.size());
  return out;
}

Fragment ReadSample(const std::string& name) {
  std::ifstream in(std::string(TACET_SOURCE_DIR) + "/src/evidence/topology_xml/samples/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return ReadText(text.str());
}

const HardwarePath* PathTo(const Hardware& hardware, std::string_view gpu, std::string_view other) {
  for (const HardwarePath& path : hardware.paths)
    if (hardware.devices[path.from].name == gpu && hardware.devices[path.to].name == other) return &path;
  return nullptr;
}

TEST(TopologyXml, CountsPciLinksAsNcclDoes) {
  EXPECT_DOUBLE_EQ(PciGbs("32.0 GT/s PCIe", 16), 48);
  EXPECT_DOUBLE_EQ(PciGbs("16.0 GT/s PCIe", 16), 24);
  EXPECT_DOUBLE_EQ(PciGbs("8.0 GT/s PCIe", 16), 12);
  EXPECT_DOUBLE_EQ(PciGbs("32.0 GT/s PCIe", 0), 48) << "a virtual machine tells no width";
  EXPECT_DOUBLE_EQ(PciGbs("16.0 GT/s PCIe", 8), 12);
  EXPECT_EQ(ParseBusId("0000:c8:00.0"), 0xc8000u);
}

TEST(TopologyXml, ReadsTheTreeOfAHost) {
  const Fragment out = ReadSample("eight_gpus_topo.xml");
  ASSERT_EQ(out.hardware.size(), 1u);
  const Hardware& hardware = out.hardware[0];
  int gpus = 0, nets = 0;
  for (const HardwareDevice& device : hardware.devices) {
    gpus += device.kind == DeviceKind::gpu;
    nets += device.kind == DeviceKind::net;
    if (device.kind == DeviceKind::gpu) {
      EXPECT_NEAR(device.nvlink_gbs, 370.8, 0.01);
    }
    if (device.kind == DeviceKind::net) {
      EXPECT_DOUBLE_EQ(device.speed_gbs, 50);
    }
  }
  EXPECT_EQ(gpus, 8);
  EXPECT_EQ(nets, 8);
  EXPECT_EQ(PathTo(hardware, "GPU3", "mlx5_3")->type, NcclPath::pix);
  EXPECT_EQ(PathTo(hardware, "GPU3", "mlx5_2")->type, NcclPath::phb);
  EXPECT_EQ(PathTo(hardware, "GPU3", "mlx5_7")->type, NcclPath::sys);
  EXPECT_EQ(PathTo(hardware, "GPU3", "GPU5")->type, NcclPath::nvl);
}

TEST(TopologyXml, ReadsAHostThatHasOnlyOneGpu) {
  const Fragment out = ReadSample("one_gpu_topo.xml");
  ASSERT_EQ(out.hardware.size(), 1u);
  const HardwarePath* path = PathTo(out.hardware[0], "GPU0", "eth0");
  ASSERT_NE(path, nullptr);
  EXPECT_EQ(path->type, NcclPath::phb);
  EXPECT_DOUBLE_EQ(path->gbs, 1.25);
}

TEST(TopologyXml, ReadsGraphsWithTheirChannels) {
  const Fragment out = ReadSample("eight_gpus_graph.xml");
  ASSERT_EQ(out.nccl_setups.size(), 1u);
  const NcclSetup& setup = out.nccl_setups[0];
  const NcclGraphSearch* ring = setup.GraphOf(NcclAlgorithm::ring);
  ASSERT_NE(ring, nullptr);
  EXPECT_EQ(ring->channels, 8);
  EXPECT_DOUBLE_EQ(ring->bw_inter, 48);
  EXPECT_EQ(ring->type_inter, NcclPath::pxn);
  ASSERT_EQ(ring->rows.size(), 8u);
  EXPECT_EQ(out.strings.Get(ring->rows[1]), "NET/1 GPU/1 GPU/2 GPU/3 GPU/4 GPU/5 GPU/6 GPU/7 GPU/0 NET/1");
  EXPECT_NE(setup.GraphOf(NcclAlgorithm::nvls), nullptr);
}

TEST(TopologyXml, KeepsWhatStandsBeforeACut) {
  const Fragment out =
      ReadText("<system version=\"1\"><cpu numaid=\"0\"><pci busid=\"0000:06:00.0\"><gpu dev=\"0\" sm=\"90\"");
  EXPECT_EQ(out.diagnostics.size(), 1u);
  ASSERT_EQ(out.hardware.size(), 1u);
  EXPECT_EQ(out.hardware[0].devices.size(), 2u);
}

TEST(TopologyXml, LeavesOtherXmlAlone) {
  EXPECT_EQ(KindOfTopologyXml("<html><body/></html>"), TopologyXmlKind::none);
  EXPECT_EQ(KindOfTopologyXml("<system><disk/></system>"), TopologyXmlKind::none);
  EXPECT_EQ(KindOfTopologyXml("no markup"), TopologyXmlKind::none);
}

}  // namespace
}  // namespace tacet
