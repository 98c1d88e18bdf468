// SPDX-License-Identifier: Apache-2.0
// Recorded traces for tests. They lie beside the repository and are never part of it; a test skips where they are
// absent.
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "evidence/torch_trace/torch_trace_import.h"
#include "model/assembly/assembly.h"

namespace tacet {

inline std::filesystem::path SharedFolder() { return std::filesystem::path(TACET_SOURCE_DIR) / ".." / "shared"; }

// All traces of a folder (names with `part` in them), assembled into one job. No timelines when the folder is absent.
inline Incident ReadTraces(const std::filesystem::path& folder, const std::string& part = "trace") {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().filename().string().find(part) != std::string::npos) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Fragment> fragments;
  for (const auto& path : files) {
    auto mapped = MappedFile::Open(path.string());
    if (!mapped || path.string().find(".json") == std::string::npos) continue;
    Fragment& fragment = fragments.emplace_back();
    fragment.path = path.filename().string();
    fragment.format = "torch_trace";
    ReadTorchTraceStream({fragment.path, mapped->bytes(), false}, fragment);
  }
  auto jobs = Assemble(std::move(fragments));
  return jobs.empty() ? Incident() : std::move(jobs.front());
}

}  // namespace tacet
