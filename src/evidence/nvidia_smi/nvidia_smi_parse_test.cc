// SPDX-License-Identifier: Apache-2.0
#include "evidence/nvidia_smi/nvidia_smi_parse.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "evidence/format.h"

namespace tacet {
extern const Format kNvidiaSmiFormat;
namespace {

std::string Sample(const std::string& name) {
  std::ifstream in(std::string(TACET_SOURCE_DIR) + "/src/evidence/nvidia_smi/samples/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(NvidiaSmi, ReadsTheMatrixWithItsLegend) {
  const std::string text = Sample("eight_gpus.txt");
  const SmiOutput out = ParseSmiTopology(text);
  ASSERT_EQ(out.matrices.size(), 1u);
  EXPECT_EQ(out.matrices[0].columns.size(), 16u);
  EXPECT_EQ(out.matrices[0].rows.size(), 16u);
  EXPECT_EQ(out.matrices[0].cells[0][1], "NV18");
  EXPECT_EQ(out.matrices[0].cells[0][8], "PIX");
  ASSERT_EQ(out.matrices[0].names.size(), 8u);
  EXPECT_EQ(out.matrices[0].names[3].second, "mlx5_3");
  EXPECT_EQ(out.understood + out.ignored, text.size());
  EXPECT_EQ(out.not_understood, 0u);
}

TEST(NvidiaSmi, GivesPathsByName) {
  const std::string text = Sample("eight_gpus.txt");
  Fragment out;
  kNvidiaSmiFormat.read({"topo.txt", text, false}, out);
  ASSERT_EQ(out.hardware.size(), 1u);
  const Hardware& hardware = out.hardware[0];
  EXPECT_EQ(hardware.devices[11].name, "mlx5_3");
  EXPECT_EQ(hardware.Path(3, 11)->type, NcclPath::pix);
  EXPECT_EQ(hardware.Path(3, 10)->type, NcclPath::phb);
  EXPECT_EQ(hardware.Path(3, 15)->type, NcclPath::sys);
  EXPECT_EQ(hardware.Path(3, 4)->type, NcclPath::nvl);
}

TEST(NvidiaSmi, ReadsColumnsThatWerePastedWithBlanks) {
  const SmiOutput out = ParseSmiTopology(
      "        GPU0    GPU1    mlx5_0  CPU Affinity    NUMA Affinity\nGPU0     X      SYS     PIX     0-15    0\n"
      "GPU1    SYS      X      SYS     16-31   1\nmlx5_0  PIX     SYS      X\n");
  ASSERT_EQ(out.matrices.size(), 1u);
  EXPECT_EQ(out.matrices[0].columns[2], "mlx5_0");
  EXPECT_EQ(out.matrices[0].rows.size(), 3u);
}

TEST(NvidiaSmi, RefusesWhatOnlyMentionsGpus) {
  EXPECT_EQ(kNvidiaSmiFormat.recognise("GPU0 is on node 3\nCPU Affinity\n", "a.txt"), Recognition::no);
  EXPECT_EQ(kNvidiaSmiFormat.recognise("  GPU0 GPU1 temperature CPU Affinity\n", "a.txt"), Recognition::no);
  EXPECT_EQ(kNvidiaSmiFormat.recognise(Sample("one_gpu.txt"), "a.txt"), Recognition::yes);
}

}  // namespace
}  // namespace tacet
