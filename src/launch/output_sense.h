// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace tacet {

// What PyTorch's watchdog prints when it gives up waiting for a collective. The process lives on for as long as it
// takes to write its flight record, up to a minute.
inline constexpr std::string_view kWatchdogTimeoutWords = "Watchdog caught collective operation timeout";

// Tells output of a job that shows work from lines that come whether or not anything moves: with
// TORCH_CPP_LOG_LEVEL=INFO, PyTorch reports every look of its monitors into the store, several times a second.
class OutputSense {
 public:
  // Whether these bytes, the next ones of a stream, hold anything else than such lines.
  bool ShowsWork(std::string_view bytes);

 private:
  std::string head_;  // of the line that is not complete yet
};

}  // namespace tacet
