// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/fragment.h"

namespace tacet {

struct LoadOptions {
  unsigned threads = 0;  // 0: one per core
  // No file is decompressed beyond this: a gzip bomb costs bounded memory. What fits is read, and the cut is told.
  uint64_t max_file_bytes = uint64_t{512} << 20;
  std::function<void(size_t done, size_t total)> progress;  // called from worker threads
};

struct Loaded {
  std::vector<Fragment> fragments;   // one a readable file, sorted by path
  size_t unreadable = 0;             // files that could not be opened; each also has a fragment with a diagnostic
  std::vector<std::string> missing;  // arguments that do not exist, among others that do
};

// Finds all files under the given paths ("-" is standard input), recognises and reads them. A file that
// cannot be read and a path that does not exist are diagnostics, and all others are still read; when no path exists at
// all, that is an Error.
Result<Loaded> LoadEvidence(const std::vector<std::string>& paths, const LoadOptions& options);

// How the message of an Error ends where no path exists.
inline constexpr std::string_view kNoSuchPath = "no such file or folder";

// All of standard input, at most `limit` bytes.
Result<std::string> ReadStandardInput(uint64_t limit);

// Reads one file that is already in memory. Used for standard input and by tests.
Fragment ReadFragment(std::string_view path, std::string_view bytes, const LoadOptions& options);

}  // namespace tacet
