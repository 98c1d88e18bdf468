// SPDX-License-Identifier: Apache-2.0
#include "lint/settings_scan.h"

#include <gtest/gtest.h>

#include <string>

namespace tacet {
namespace {

std::string ValueOf(const GivenEnvironment& environment, std::string_view name) {
  for (const GivenVariable& variable : environment.variables)
    if (variable.name == name) return variable.value;
  return "(none)";
}

std::string Scanned(std::string_view line, std::string_view name) {
  const auto found = ScanSettings("job.sh", line);
  return found ? ValueOf(*found, name) : "(nothing)";
}

TEST(SettingsScan, ReadsAssignmentsOfManyLanguages) {
  EXPECT_EQ(Scanned("export NCCL_DEBUG=INFO\n", "NCCL_DEBUG"), "INFO");
  EXPECT_EQ(Scanned("  export NCCL_ALGO=\"Ring,Tree\"  # why\n", "NCCL_ALGO"), "Ring,Tree");
  EXPECT_EQ(Scanned("NCCL_DEBUG=WARN NCCL_IB_HCA='mlx5' python train.py", "NCCL_IB_HCA"), "mlx5");
  EXPECT_EQ(Scanned("mpirun -np 8 -x NCCL_IB_DISABLE=1 -x PATH ./all_reduce_perf", "NCCL_IB_DISABLE"), "1");
  EXPECT_EQ(Scanned("#SBATCH --export=ALL,NCCL_IB_TC=106,NCCL_DEBUG=INFO", "NCCL_IB_TC"), "106");
  EXPECT_EQ(Scanned("ENV NCCL_SOCKET_IFNAME eth0", "NCCL_SOCKET_IFNAME"), "eth0");
  EXPECT_EQ(Scanned("docker run -e NCCL_P2P_DISABLE=1 image", "NCCL_P2P_DISABLE"), "1");
  EXPECT_EQ(Scanned("setenv NCCL_DEBUG INFO", "NCCL_DEBUG"), "INFO");
  EXPECT_EQ(Scanned("os.environ[\"NCCL_TIMEOUT\"] = \"3600\"", "NCCL_TIMEOUT"), "3600");
  EXPECT_EQ(Scanned("os.environ.setdefault('NCCL_NET', 'Socket')", "NCCL_NET"), "Socket");
  EXPECT_EQ(Scanned("  NCCL_DEBUG: \"INFO\"", "NCCL_DEBUG"), "INFO");
  EXPECT_EQ(Scanned("{\"env_vars\": {\"NCCL_IB_TIMEOUT\": 22, \"NCCL_NET\": \"IB\"}}", "NCCL_IB_TIMEOUT"), "22");
  EXPECT_EQ(Scanned("- name: NCCL_DEBUG\n  value: \"WARN\"\n", "NCCL_DEBUG"), "WARN");
  EXPECT_EQ(Scanned("declare -x TORCH_DISTRIBUTED_DEBUG=\"DETAIL\"", "TORCH_DISTRIBUTED_DEBUG"), "DETAIL");
}

TEST(SettingsScan, LeavesAloneWhatSetsNothing) {
  EXPECT_EQ(Scanned("# export NCCL_DEBUG=INFO\nexport A=1\n", "NCCL_DEBUG"), "(none)");
  EXPECT_EQ(Scanned("export A=1\necho ${NCCL_DEBUG:-INFO}", "NCCL_DEBUG"), "(none)");
  EXPECT_EQ(Scanned("export A=1\nif [ \"$NCCL_DEBUG\" == INFO ]; then", "NCCL_DEBUG"), "(none)");
  EXPECT_EQ(Scanned("export NCCL_DEBUG=INFO\nunset NCCL_DEBUG\n", "NCCL_DEBUG"), "(none)");
  EXPECT_EQ(Scanned("os.environ.get(\"NCCL_DEBUG\", \"x\")\nA=1", "NCCL_DEBUG"), "(none)");
  EXPECT_EQ(Scanned("This text tells about NCCL_DEBUG and nothing else.", "NCCL_DEBUG"), "(nothing)");
  EXPECT_EQ(Scanned("", "NCCL_DEBUG"), "(nothing)");
}

TEST(SettingsScan, AValueThatOnlyAShellKnowsIsMarked) {
  const auto found = ScanSettings("job.sh", "export NCCL_DEBUG_FILE=/tmp/$RANK.log\nexport NCCL_NET=IB\n");
  ASSERT_TRUE(found);
  ASSERT_EQ(found->variables.size(), 2u);
  EXPECT_FALSE(found->variables[0].value_known);
  EXPECT_TRUE(found->variables[1].value_known);
  EXPECT_EQ(found->variables[1].line, 2u);
}

TEST(SettingsScan, TheOutputOfEnvIsTakenAsItStands) {
  const auto found = ScanSettings("env.txt", "PATH=/bin\nNCCL_SOCKET_IFNAME=\"eth0\"\nRANK=3\nNCCL_DEBUG=INFO\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->source, EnvironmentSource::dump);
  EXPECT_EQ(found->holder, "rank 3");
  EXPECT_EQ(ValueOf(*found, "NCCL_SOCKET_IFNAME"), "\"eth0\"");
}

TEST(SettingsScan, NcclConfIsReadAsNcclReadsIt) {
  const auto found = ScanSettings("etc/nccl.conf", "# site\nNCCL_NET =IB\nNCCL_IB_HCA=mlx5_0\r\n NCCL_DEBUG=INFO\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->source, EnvironmentSource::host_conf);
  ASSERT_EQ(found->variables.size(), 3u);
  EXPECT_EQ(found->variables[0].name, "NCCL_NET ");
  EXPECT_EQ(found->variables[1].value, "mlx5_0\r");
  EXPECT_EQ(found->variables[2].name, " NCCL_DEBUG");
}

TEST(SettingsScan, ReadsTheManifestOfARun) {
  const auto found = ScanSettings(
      "manifest.json",
      R"({"schema":"tacet.manifest.v1","kind":"run","hosts":["n1"],"environment":{"set":{"NCCL_DEBUG":"INFO"},"kept":{"NCCL_NET":"IB"},"inherited":{"NCCL_TIMEOUT":"9"}}})");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->source, EnvironmentSource::manifest);
  EXPECT_EQ(found->host, "n1");
  EXPECT_EQ(ValueOf(*found, "NCCL_TIMEOUT"), "9");
}

TEST(SettingsScan, SurvivesHostileText) {
  std::string text = "NCCL_=\nNCCL_X=\n=\nNCCL_DEBUG\nexport\n\"NCCL_A\n";
  text += std::string(300'000, 'N') + "\nNCCL_" + std::string(300'000, 'A') + "=1\n";
  for (size_t n = 0; n < 60; ++n) ScanSettings("x", std::string_view(text).substr(0, n));
  const auto found = ScanSettings("x", text);
  ASSERT_TRUE(found);
  EXPECT_LE(found->variables.size(), 4u);
}

TEST(SettingsScan, ReadsTheBlockOfAProcess) {
  const std::string block("A=1\0NCCL_DEBUG=INFO\0=odd\0B\0", 27);
  const GivenEnvironment environment = ReadEnvironBlock(block);
  ASSERT_EQ(environment.variables.size(), 2u);
  EXPECT_EQ(ValueOf(environment, "NCCL_DEBUG"), "INFO");
}

}  // namespace
}  // namespace tacet
