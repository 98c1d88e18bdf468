// SPDX-License-Identifier: Apache-2.0
#include "base/signal_name.h"

namespace tacet {
namespace {

constexpr SignalNames kSignalNames[] = {
    {1, "SIGHUP", "Hangup"},
    {2, "SIGINT", "Interrupt"},
    {3, "SIGQUIT", "Quit"},
    {4, "SIGILL", "Illegal instruction"},
    {5, "SIGTRAP", ""},
    {6, "SIGABRT", "Aborted"},
    {7, "SIGBUS", "Bus error"},
    {8, "SIGFPE", "Floating point exception"},
    {9, "SIGKILL", "Killed"},
    {10, "SIGUSR1", "User defined signal 1"},
    {11, "SIGSEGV", "Segmentation fault"},
    {12, "SIGUSR2", "User defined signal 2"},
    {13, "SIGPIPE", "Broken pipe"},
    {14, "SIGALRM", ""},
    {15, "SIGTERM", "Terminated"},
    {24, "SIGXCPU", ""},
};

}  // namespace

std::span<const SignalNames> AllSignals() { return kSignalNames; }

std::string_view SignalName(int64_t signal) {
  for (const SignalNames& one : kSignalNames)
    if (one.number == signal) return one.name;
  return "";
}

int SignalNumber(std::string_view name) {
  for (const SignalNames& one : kSignalNames)
    if (name.starts_with(one.name) || (!one.shell.empty() && name.starts_with(one.shell))) return one.number;
  return 0;
}

}  // namespace tacet
