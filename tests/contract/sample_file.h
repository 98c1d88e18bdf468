// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "evidence/format.h"

namespace tacet {

// One file of a format's samples folder, decompressed.
struct SampleFile {
  const Format* format = nullptr;
  std::string name;  // relative to the samples folder
  std::string bytes;

  std::string_view prefix() const { return std::string_view(bytes).substr(0, kPrefixBytes); }
};
std::ostream& operator<<(std::ostream& out, const SampleFile& sample);

// src/evidence/NAME; a dash in the name is an underscore there.
std::filesystem::path FolderOf(const Format& format);

// The samples of all registered formats.
const std::vector<SampleFile>& AllSamples();

// For gtest: "ras_dead_2_27_txt".
std::string TestName(const SampleFile& sample);

// Gives one file to one format, as the loader does.
Fragment ReadWith(const Format& format, std::string_view path, std::string_view bytes, bool cut = false);

}  // namespace tacet
