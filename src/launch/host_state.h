// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacet {

// A file to be written, with its text, or why there is none.
struct CapturedText {
  std::string name, text, problem;
};

// The lines of a kernel log that are not older than this moment. What other jobs did before explains nothing.
//   2026-11-15T23:31:29,123456+00:00 Memory cgroup out of memory: Killed process 4711 (python3)
std::string KernelLinesSince(std::string_view text, int64_t wall_ns);

// What this host says of itself: nvidia-smi, the kernel's log, RAS, counters of its network devices. Each within
// `command_ms`, all at the same time.
std::vector<CapturedText> CaptureHost(bool ask_ras, int64_t command_ms);

// "proc_rank_3_pid_4711.txt": status, wchan, kernel stack, io, limits and open connections of one process, without its
// environment.
std::string DescribeProcess(int64_t pid, const std::string& proc = "/proc");

// Counters below /sys/class/infiniband and /sys/class/net, one "path value" per line, and /proc/net/{dev,snmp,netstat}.
std::string ReadNetworkCounters(const std::string& sys = "/sys", const std::string& proc = "/proc");

}  // namespace tacet
