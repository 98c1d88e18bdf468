// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace tacet {

// What another program was allowed to take and what it gave.
struct CommandLimits {
  int64_t time_ms = 20'000;
  uint64_t most_bytes = uint64_t{64} << 20;  // of its output; the rest is read and thrown away
};

struct CommandOutcome {
  bool started = false;
  bool timed_out = false;
  bool cut = false;        // it wrote more than `most_bytes`
  int exit_code = -1;      // 128 + n for signal n, 127 where there is no such program
  std::string out, error;  // `error` holds the last 4 KiB of its standard error

  bool ok() const { return started && !timed_out && exit_code == 0; }
  // "timed out after 20 s", "ended with 3: permission denied", "is not installed"; empty where it went well.
  std::string problem;
};

// Runs a program without a shell, with nothing on its standard input, in a process group of its own, which is killed as
// a whole when the time is up. `sink`, where given, gets the output instead of `out`.
CommandOutcome RunCommand(const std::vector<std::string>& command, const CommandLimits& limits = {},
                          const std::function<void(std::string_view)>& sink = nullptr);

// Its path where the program is in PATH, else empty.
std::string FindProgram(const std::string& name);

// As one word for `sh`, whatever stands in it.
std::string QuoteForShell(std::string_view word);
std::string ShowCommand(const std::vector<std::string>& command);

}  // namespace tacet
