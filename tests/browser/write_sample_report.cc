// SPDX-License-Identifier: Apache-2.0
// Writes the reports of render/sample_report.h as pages: write_sample_report FOLDER
#include <cstdio>
#include <string>
#include <utility>

#include "render/html_render.h"
#include "render/sample_report.h"

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
  return 0;
}
