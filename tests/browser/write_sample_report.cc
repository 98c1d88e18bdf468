// SPDX-License-Identifier: Apache-2.0
// Writes the reports of render/report/sample_report.h and the profiles of render/profile/sample_profile.h as pages:
//   write_sample_report FOLDER
#include <cstdio>
#include <string>
#include <utility>

#include "render/profile/profile_html.h"
#include "render/profile/sample_profile.h"
#include "render/report/html_render.h"
#include "render/report/sample_report.h"
#include "render/topology/sample_topology.h"
#include "render/topology/topology_render.h"

static bool Write(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (!file) return false;
  const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && whole;
}

int main(int argc, char** argv) {
  using namespace tacet;
  if (argc != 2) return 2;
  const std::pair<const char*, Report> pages[] = {
      {"hang", SampleHang()},       {"healthy", SampleHealthy()},       {"hostile", SampleHostile()},
      {"ranks64", SampleLarge(64)}, {"ranks16384", SampleLarge(16384)}, {"empty", Report()}};
  for (const auto& [name, report] : pages)
    if (!Write(std::string(argv[1]) + "/" + name + ".html", RenderHtml(report))) return 1;
  ProfileReport second = SampleProfile(2, 3);
  second.job = "night run";
  const std::pair<const char*, std::string> timed[] = {
      {"profile4", RenderProfileHtml({SampleProfile(4, 3)})},
      {"profile1024", RenderProfileHtml({SampleProfile(1024, 100'000)})},
      {"profile_tiny", RenderProfileHtml({SampleTinyProfile()})},
      {"profile_empty", RenderProfileHtml({ProfileReport()})},
      {"profile_hostile", RenderProfileHtml({SampleHostileProfile()})},
      {"profile_two", RenderProfileHtml({SampleProfile(4, 3), second})},
      {"comparison", RenderComparisonHtml(SampleComparison())},
      {"comparison_empty", RenderComparisonHtml(ProfileComparison())},
      {"topology2", RenderTopologyHtml(SampleTopology(2, true))},
      {"topology256", RenderTopologyHtml(SampleTopology(256, true))},
      {"topology_clean", RenderTopologyHtml(SampleTopology(4, false))},
      {"topology_empty", RenderTopologyHtml(Report())},
      {"topology_hostile", RenderTopologyHtml(SampleHostileTopology())}};
  for (const auto& [name, page] : timed)
    if (!Write(std::string(argv[1]) + "/" + name + ".html", page)) return 1;
  return 0;
}
