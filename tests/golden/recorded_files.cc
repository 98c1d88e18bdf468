// SPDX-License-Identifier: Apache-2.0
#include "recorded_files.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "evidence/load.h"
#include "report/make_report.h"

namespace tacet {

namespace fs = std::filesystem;

fs::path TestFolder(std::string_view below) { return fs::path(TACET_SOURCE_DIR) / "tests" / below; }

std::string ReadWhole(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<RecordedFile> ReadRecording(const fs::path& folder,
                                        const std::function<bool(std::string_view path)>& is_wanted) {
  std::vector<RecordedFile> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().lexically_relative(folder).string();
    if (entry.is_regular_file() && is_wanted(path)) files.push_back({path, ReadWhole(entry.path())});
  }
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return files;
}

RecordingReader::RecordingReader(const std::vector<RecordedFile>& recording) : recording_(recording) {
  for (const RecordedFile& file : recording) known_[file.path].file = &file;
}

Fragment RecordingReader::Read(const RecordedFile& file) {
  const auto known = known_.find(file.path);
  if (known == known_.end() || known->second.file->bytes != file.bytes) return ReadFragment(file.path, file.bytes, {});
  std::optional<Fragment>& fragment = known->second.fragment;
  if (!fragment) fragment = ReadFragment(known->second.file->path, known->second.file->bytes, {});
  return Fragment(*fragment);
}

Report RecordingReader::Diagnose(const std::vector<RecordedFile>& files,
                                 const std::function<bool(std::string_view path)>& is_kept) {
  std::vector<Fragment> fragments;
  for (const RecordedFile& file : files)
    if (is_kept(file.path)) fragments.push_back(Read(file));
  return MakeReport(std::move(fragments));
}

Report DiagnoseFolder(const fs::path& folder) {
  auto loaded = LoadEvidence({folder.string()}, {});
  if (!loaded) throw std::runtime_error(loaded.error().message);
  return MakeReport(std::move(loaded->fragments));
}

}  // namespace tacet
