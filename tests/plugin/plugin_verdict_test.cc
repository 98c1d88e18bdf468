// SPDX-License-Identifier: Apache-2.0
// Whole jobs of the stand-in with a fault in one rank, all ranks killed at the end: their boxes, and nothing else, must
// give the right rank and cause. All jobs run at once, since a hang is one only after ten seconds.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <thread>

#include "tests/plugin/box_reading.h"

namespace tacet::fake {
namespace {

struct Fault {
  const char* name;
  const char* cause;
};
constexpr Fault kFaults[] = {
    {"dead", "rank-dead"},          {"exit", "rank-dead"},           {"abort", "rank-dead"},
    {"frozen", "rank-frozen"},      {"stuck", "rank-stuck-on-host"}, {"launch", "rank-stuck-on-host"},
    {"gpu", "gpu-stalled"},         {"data", "transport-stalled"},   {"credit", "transport-stalled"},
    {"skip", "collective-skipped"},
};

std::string VerdictOf(const std::string& folder) {
  FILE* pipe = popen((std::string(TACET_TOOL_FILE) + " diagnose --format json " + folder + " 2>&1").c_str(), "r");
  std::string output;
  char buffer[4096];
  while (pipe != nullptr && std::fgets(buffer, sizeof buffer, pipe) != nullptr) output += buffer;
  if (pipe != nullptr) pclose(pipe);
  std::erase_if(output, [](char c) { return c == ' ' || c == '\n'; });
  const size_t from = output.find("\"verdict\":"), to = output.find("\"findings\":");
  return from == std::string::npos || to == std::string::npos ? output : output.substr(from, to - from);
}

class Verdict : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new BoxFolder;
    std::vector<std::thread> jobs;
    for (const Fault& fault : kFaults) jobs.emplace_back([&fault] { Run(fault.name, "--seconds 13 --fault-step 6"); });
    jobs.emplace_back([] { Run("killed", "--seconds 1 --fault-step 6"); });
    jobs.emplace_back([] { Run("", ""); });
    for (std::thread& job : jobs) job.join();
  }
  static void TearDownTestSuite() { delete folder_; }

  static std::string FolderOf(const std::string& fault) { return folder_->path() + "/" + fault + "_job"; }
  static void Run(const std::string& fault, const std::string& more) {
    std::string command = "TACET_BOX_DIR=" + FolderOf(fault) + " TACET_BOX_KB=256 TACET_HEARTBEAT_MS=100 nice " +
                          TACET_HOST_FILE + " --plugin " + PluginPath() + " --ranks 4 --network --fault-rank 1 " + more;
    if (!fault.empty()) command += " --fault " + (fault == "killed" ? std::string("stuck") : fault);
    FILE* pipe = popen((command + " >/dev/null 2>&1").c_str(), "r");
    if (pipe != nullptr) pclose(pipe);
  }
  static BoxFolder* folder_;
};
BoxFolder* Verdict::folder_ = nullptr;

TEST_F(Verdict, BoxesAloneNameRankAndCause) {
  for (const auto& [fault, cause] : kFaults) {
    const std::string verdict = VerdictOf(FolderOf(fault));
    EXPECT_NE(verdict.find(std::string("\"cause\":\"") + cause + "\""), std::string::npos) << fault << verdict;
    EXPECT_NE(verdict.find("\"ranks\":[1]"), std::string::npos) << fault << verdict;
    EXPECT_NE(verdict.find("\"status\":\"hang\""), std::string::npos) << fault << verdict;
  }
}

TEST_F(Verdict, AHealthyJobHasNoCause) {
  const std::string verdict = VerdictOf(FolderOf(""));
  EXPECT_NE(verdict.find("\"cause\":null"), std::string::npos) << verdict;
}

TEST_F(Verdict, AJobKilledInTheMiddleOfAShortWaitHangsForNobody) {
  const std::string verdict = VerdictOf(FolderOf("killed"));
  EXPECT_EQ(verdict.find("rank-dead"), std::string::npos) << verdict;
  EXPECT_EQ(verdict.find("rank-frozen"), std::string::npos) << verdict;
  EXPECT_EQ(verdict.find("\"status\":\"hang\""), std::string::npos) << verdict;
}

}  // namespace
}  // namespace tacet::fake
