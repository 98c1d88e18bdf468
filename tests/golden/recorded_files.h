// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/fragment.h"
#include "report/report.h"

namespace tacet {

// A file of a recording, held in memory so that it can be left out of one diagnosis and used in the next.
struct RecordedFile {
  std::string path;  // relative to the recording's folder
  std::string bytes;
};

// The folder of a recording under tests/, or under the data of others that is not part of the repository.
std::filesystem::path TestFolder(std::string_view below);

std::string ReadWhole(const std::filesystem::path& path);

// All files below the folder whose relative path is wanted, sorted.
std::vector<RecordedFile> ReadRecording(const std::filesystem::path& folder,
                                        const std::function<bool(std::string_view path)>& is_wanted);

// Diagnoses one recording again and again, each time with other files left out or changed: a file that is as it was
// recorded is read once.
class RecordingReader {
 public:
  // `recording` outlives the reader.
  explicit RecordingReader(const std::vector<RecordedFile>& recording);

  // The whole way from bytes to report, over those of `files` that are kept.
  Report Diagnose(const std::vector<RecordedFile>& files, const std::function<bool(std::string_view path)>& is_kept);

  // Over those of the recording that are kept.
  Report DiagnoseKept(const std::function<bool(std::string_view path)>& is_kept) {
    return Diagnose(recording_, is_kept);
  }

 private:
  struct Known {
    const RecordedFile* file = nullptr;
    std::optional<Fragment> fragment;  // once it was read
  };
  Fragment Read(const RecordedFile& file);

  const std::vector<RecordedFile>& recording_;
  std::map<std::string, Known> known_;  // by path
};

// The same for a folder as a user names it.
Report DiagnoseFolder(const std::filesystem::path& folder);

}  // namespace tacet
