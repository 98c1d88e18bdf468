// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command.h"

namespace tacet {

// "tacet: message" with the hint below it, on standard error. Returns the exit code for wrong usage.
int Complain(const Error& error);

// "in /data/run" of one path, "in these paths" of several: where a search found nothing.
std::string InPaths(const std::vector<std::string>& paths);
// The hint where files are there and none could be read.
inline constexpr std::string_view kNothingRead = "check that files are there, and their permissions";

bool StandardOutputTakesColour();  // a terminal, and neither NO_COLOR nor a dumb one
int TerminalWidth();               // 100 where it cannot be told
size_t HelpWidth();                // the same, but as the help is written (120) where nobody states a width
// The same for lists that programs read, completions among them: without a terminal one line per entry.
size_t ListWidth();

// Writes to a file, or to standard output for an empty path. False after complaining.
// `option`: the one that named the path, for the complaint.
bool WriteOutput(const std::string& path, std::string_view bytes, std::string_view option = "-o");

// A line of progress on standard error while it is a terminal; silent otherwise. Safe to call from several threads.
class ProgressLine {
 public:
  explicit ProgressLine(std::string_view what);
  ~ProgressLine();
  void Update(size_t done, size_t total);

 private:
  std::string what_;
  bool active_ = false;
  bool shown_ = false;
};

}  // namespace tacet
