// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tacet {

// A signal of Linux on x86-64 and arm64. A table of our own: libraries of 2018, on which this is to run, have no names
// for signals without a locale, and a log may be of another machine.
struct SignalNames {
  int number = 0;
  std::string_view name;   // "SIGKILL"
  std::string_view shell;  // as a shell and srun print it: "Killed"; empty where no line of a log is read by it
};
std::span<const SignalNames> AllSignals();

// "SIGKILL" for 9, "" where there is no common name; and back, by either name, 0 where it is unknown.
std::string_view SignalName(int64_t signal);
int SignalNumber(std::string_view name);

}  // namespace tacet
