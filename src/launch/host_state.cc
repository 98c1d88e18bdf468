// SPDX-License-Identifier: Apache-2.0
#include "launch/host_state.h"

#include <algorithm>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <thread>

#include "base/text_scan.h"
#include "launch/command_run.h"
#include "launch/run_folder.h"
#include "live/agent/ras_client.h"

namespace tacet {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostCounters = 20'000;

CapturedText AskProgram(std::string name, const std::vector<std::string>& command, int64_t command_ms) {
  CapturedText captured;
  captured.name = std::move(name);
  if (FindProgram(command[0]).empty()) {
    captured.problem = command[0] + " is not installed";
    return captured;
  }
  CommandOutcome outcome = RunCommand(command, {.time_ms = command_ms, .most_bytes = 16 << 20});
  captured.text = std::move(outcome.out);
  if (!outcome.ok()) captured.problem = command[0] + " " + outcome.problem;
  return captured;
}

CapturedText AskKernel(int64_t command_ms) {
  CapturedText kernel = AskProgram("dmesg.txt", {"dmesg", "--time-format", "iso"}, command_ms);
  if (!kernel.text.empty() || FindProgram("journalctl").empty()) return kernel;
  CapturedText journal =
      AskProgram("dmesg.txt", {"journalctl", "-k", "--no-pager", "-o", "short-iso", "-n", "20000"}, command_ms);
  return journal.text.empty() ? kernel : journal;
}

CapturedText AskJob() {
  CapturedText captured;
  captured.name = "ras.txt";
  auto answer = AskRas(RasAddress(), 3000);
  if (answer)
    captured.text = std::move(*answer);
  else
    captured.problem = "NCCL RAS: " + answer.error().message;
  return captured;
}

void AddCounters(const fs::path& folder, std::string& out, size_t& left) {
  std::error_code error;
  std::vector<fs::path> files;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    files.push_back(it->path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    if (left == 0) return;
    const std::string text = ReadSmallFile(file.string(), 256);
    if (text.empty()) continue;
    --left;
    out += file.string() + " " + std::string(Trim(std::string_view(text).substr(0, text.find('\n')))) + "\n";
  }
}

std::vector<fs::path> SortedEntries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    entries.push_back(it->path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace

std::string ReadNetworkCounters(const std::string& sys, const std::string& proc) {
  std::string out;
  size_t left = kMostCounters;
  for (const fs::path& device : SortedEntries(sys + "/class/infiniband"))
    for (const fs::path& port : SortedEntries(device / "ports")) {
      for (const char* name : {"state", "phys_state", "rate", "link_layer"}) {
        const std::string text = ReadSmallFile((port / name).string(), 256);
        if (!text.empty()) out += (port / name).string() + " " + text.substr(0, text.find('\n')) + "\n";
      }
      AddCounters(port / "counters", out, left);
      AddCounters(port / "hw_counters", out, left);
    }
  for (const fs::path& device : SortedEntries(sys + "/class/net")) {
    for (const char* name : {"operstate", "speed", "mtu"}) {
      const std::string text = ReadSmallFile((device / name).string(), 256);
      if (!text.empty()) out += (device / name).string() + " " + text.substr(0, text.find('\n')) + "\n";
    }
    AddCounters(device / "statistics", out, left);
  }
  for (const char* name : {"/net/dev", "/net/snmp", "/net/netstat"}) {
    const std::string text = ReadSmallFile(proc + name, 1 << 18);
    if (!text.empty()) out += "==> " + proc + name + " <==\n" + text;
  }
  return out;
}

std::string DescribeProcess(int64_t pid, const std::string& proc) {
  const std::string folder = proc + "/" + std::to_string(pid);
  std::string out;
  for (const char* name :
       {"status", "stat", "wchan", "stack", "syscall", "io", "limits", "cgroup", "net/tcp", "net/tcp6"}) {
    const std::string text = ReadSmallFile(folder + "/" + name, 1 << 18);
    if (!text.empty()) out += "==> " + std::string(name) + " <==\n" + text + (text.ends_with('\n') ? "" : "\n");
  }
  // One line for each thread: which of them sleeps where.
  size_t left = 512;
  for (const fs::path& thread : SortedEntries(folder + "/task")) {
    if (left-- == 0) break;
    out += "==> task " + thread.filename().string() + " <==\n" + ReadSmallFile((thread / "stat").string(), 4096) +
           "wchan " + ReadSmallFile((thread / "wchan").string(), 256) + "\n";
  }
  return out;
}

std::string KernelLinesSince(std::string_view text, int64_t wall_ns) {
  // The kernel's clock and that of the day drift apart by seconds while a machine sleeps or is set.
  const auto since = static_cast<time_t>(wall_ns / 1'000'000'000 - 5);
  tm local{};
  ::localtime_r(&since, &local);
  char first[32];
  std::strftime(first, sizeof first, "%Y-%m-%dT%H:%M:%S", &local);
  const size_t width = std::strlen(first);
  std::string kept;
  bool keep = false;
  while (!text.empty()) {
    const std::string_view line = TakeUntil(text, '\n');
    if (!text.empty()) text.remove_prefix(1);
    const bool stamped = line.size() > width && line[4] == '-' && line[10] == 'T' && line[13] == ':';
    if (stamped) keep = line.substr(0, width) >= std::string_view(first, width);
    if (keep) kept.append(line).push_back('\n');
  }
  return kept;
}

std::vector<CapturedText> CaptureHost(bool ask_ras, int64_t command_ms) {
  std::vector<std::function<CapturedText()>> questions = {
      [=] {
        return AskProgram("nvidia_smi.txt", {"nvidia-smi", "-q"}, command_ms);
      },
      [=] {
        return AskProgram("nvidia_smi_processes.csv",
                          {"nvidia-smi", "--query-compute-apps=pid,gpu_bus_id,used_memory", "--format=csv"},
                          command_ms);
      },
      [=] { return AskKernel(command_ms); },
      [] {
        return CapturedText{"network_counters.txt", ReadNetworkCounters(), ""};
      },
  };
  if (ask_ras) questions.emplace_back(AskJob);
  std::vector<CapturedText> answers(questions.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < questions.size(); ++i) threads.emplace_back([&, i] { answers[i] = questions[i](); });
  for (std::thread& thread : threads) thread.join();
  return answers;
}

}  // namespace tacet
