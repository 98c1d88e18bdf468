// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mapped_file.h"

namespace tacet {

// Reads single lines of files again, once it is known which of them a report cites: nobody keeps the text of a log for
// the few lines that matter in the end.
class CitedLines {
 public:
  // `paths`: the arguments that LoadEvidence was given.
  explicit CitedLines(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  // The line as it stands in the file, without its line break; a long one is cut. Empty where the file has no lines (a
  // binary record, one line for everything), where it lies in an archive or is standard input, or has changed since.
  // `shown` is the path in a report; `offset` lies in that line, 0: not known.
  std::string Read(const std::string& shown, uint32_t line, uint64_t offset);

 private:
  std::string FindPath(const std::string& shown) const;
  void Open(const std::string& shown);

  std::vector<std::string> paths_;
  // The file that was read last, and its text, in the file or unpacked.
  std::string shown_, unpacked_;
  std::optional<MappedFile> file_;
  std::string_view text_;
};

// The line of `text` that holds `offset`, or the line of that number, counted from 1, where the offset is 0.
std::string_view FindLine(std::string_view text, uint32_t line, uint64_t offset);

}  // namespace tacet
