// SPDX-License-Identifier: Apache-2.0
#include "launch/job_processes.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/text_scan.h"
#include "launch/python_hook.h"
#include "launch/run_folder.h"

namespace tacet {
namespace {

constexpr size_t kMostEnviron = 1 << 20;

std::vector<int64_t> ListPids(const std::string& proc) {
  std::vector<int64_t> pids;
  DIR* folder = ::opendir(proc.c_str());
  if (folder == nullptr) return pids;
  while (const dirent* entry = ::readdir(folder)) {
    std::string_view name = entry->d_name;
    int64_t pid = 0;
    if (TakeNumber(name, &pid) && name.empty() && pid > 0) pids.push_back(pid);
  }
  ::closedir(folder);
  return pids;
}

std::string_view ValueIn(std::string_view environ_bytes, std::string_view name) {
  while (!environ_bytes.empty()) {
    std::string_view entry = TakeUntil(environ_bytes, '\0');
    if (!environ_bytes.empty()) environ_bytes.remove_prefix(1);
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
      return entry.substr(name.size() + 1);
  }
  return {};
}

int64_t ReadIoBytes(const std::string& folder) {
  const std::string io = ReadSmallFile(folder + "/io", 4096);
  const auto read = IntAfter(io, "rchar: "), written = IntAfter(io, "wchar: ");
  return read && written ? *read + *written : -1;
}

bool ReadProcess(const std::string& proc, int64_t pid, JobMemberProcess* process) {
  const std::string folder = proc + "/" + std::to_string(pid);
  if (!ParseStatLine(ReadSmallFile(folder + "/stat", 4096), process)) return false;
  process->takes_stack_signal = CatchesSignal(ReadSmallFile(folder + "/status", 1 << 14), StackSignal());
  process->io_bytes = ReadIoBytes(folder);
  process->main_io_bytes = ReadIoBytes(folder + "/task/" + std::to_string(pid));
  return true;
}

// A rank of the job is none of these, though they have its variables. `arguments`: /proc/PID/cmdline.
bool IsWrapper(const JobMemberProcess& process, std::string_view arguments) {
  static constexpr std::array<std::string_view, 21> kNames = {
      "sh",    "bash",   "dash",    "zsh",     "ksh",     "env",   "timeout", "numactl",         "taskset",
      "nice",  "srun",   "mpirun",  "mpiexec", "prterun", "orted", "prted",   "hydra_pmi_proxy", "slurmstepd",
      "tacet", "stdbuf", "torchrun"};
  static constexpr std::array<std::string_view, 5> kModules = {"torch.distributed.run", "torch.distributed.launch",
                                                               "torch/distributed/run.py", "accelerate.commands",
                                                               "deepspeed.launcher"};
  return std::find(kNames.begin(), kNames.end(), process.program) != kNames.end() ||
         std::any_of(kModules.begin(), kModules.end(), [&](auto name) { return Contains(arguments, name); });
}

}  // namespace

int RankFromEnviron(std::string_view environ_bytes) {
  for (const std::string_view name : {"RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    std::string_view value = ValueIn(environ_bytes, name);
    int rank = -1;
    if (TakeNumber(value, &rank) && value.empty() && rank >= 0) return rank;
  }
  return -1;
}

bool EnvironHas(std::string_view environ_bytes, std::string_view name, std::string_view value) {
  return !value.empty() && ValueIn(environ_bytes, name) == value;
}

// "4711 (python3 -m train) S 4700 4711 4700 0 -1 4194304 9021 0 3 0 212 34 0 0 20 0 9 0 8273645 ..."
bool ParseStatLine(std::string_view text, JobMemberProcess* process) {
  const size_t open = text.find('('), close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return false;
  std::string_view front = text.substr(0, open), rest = text.substr(close + 1);
  if (!TakeNumber(front, &process->pid)) return false;
  process->program = std::string(text.substr(open + 1, close - open - 1));
  const std::string_view state = TakeWord(rest);
  if (state.size() != 1) return false;
  process->state = state[0];
  static const int64_t tick_ns = 1'000'000'000 / std::max(1L, ::sysconf(_SC_CLK_TCK));
  int64_t cpu_ticks = 0;
  for (int field = 4; field <= 22; ++field) {
    std::string_view word = TakeWord(rest);
    int64_t value = 0;
    if (!TakeNumber(word, &value)) return false;
    if (field == 4) process->parent = value;
    if (field >= 14 && field <= 17) cpu_ticks += value;
    if (field == 22) process->start_jiffies = static_cast<uint64_t>(value);
  }
  process->cpu_ns = cpu_ticks * tick_ns;
  return true;
}

bool CatchesSignal(std::string_view status, int number) {
  auto mask_text = After(status, "SigCgt:");
  if (!mask_text) return false;
  SkipBlanks(*mask_text);
  uint64_t mask = 0;
  return TakeHex(*mask_text, &mask) && (mask >> (number - 1) & 1) != 0;
}

std::vector<JobMemberProcess> FindJobProcesses(const ProcessSearch& search) {
  std::map<int64_t, JobMemberProcess> all;
  std::multimap<int64_t, int64_t> children;
  for (const int64_t pid : ListPids(search.proc)) {
    JobMemberProcess process;
    if (!ReadProcess(search.proc, pid, &process)) continue;
    children.emplace(process.parent, pid);
    all.emplace(pid, std::move(process));
  }
  std::set<int64_t> members;
  std::vector<int64_t> waiting(search.pids.begin(), search.pids.end());
  if (search.root > 0) waiting.push_back(search.root);
  for (auto& [pid, process] : all) {
    const std::string environ_bytes = ReadSmallFile(search.proc + "/" + std::to_string(pid) + "/environ", kMostEnviron);
    process.rank = RankFromEnviron(environ_bytes);
    process.wrapper = IsWrapper(process, ReadSmallFile(search.proc + "/" + std::to_string(pid) + "/cmdline", 4096));
    if (EnvironHas(environ_bytes, "TACET_RUN_DIR", search.run_folder)) members.insert(pid);
  }
  while (!waiting.empty()) {
    const int64_t pid = waiting.back();
    waiting.pop_back();
    if (!all.contains(pid) || !members.insert(pid).second) {
      if (!all.contains(pid)) continue;
    }
    const auto [first, last] = children.equal_range(pid);
    for (auto it = first; it != last; ++it)
      if (!members.contains(it->second)) waiting.push_back(it->second);
  }
  std::vector<JobMemberProcess> found;
  for (const int64_t pid : members)
    if (pid != ::getpid()) found.push_back(all.at(pid));
  return found;
}

std::vector<JobMemberProcess> PickRanks(const std::vector<JobMemberProcess>& processes) {
  std::map<int64_t, const JobMemberProcess*> by_pid;
  for (const JobMemberProcess& process : processes) by_pid.emplace(process.pid, &process);
  std::set<int64_t> has_children;
  std::map<int64_t, std::set<int>> numbers_below;
  for (const JobMemberProcess& process : processes) {
    has_children.insert(process.parent);
    for (auto up = by_pid.find(process.parent); up != by_pid.end(); up = by_pid.find(up->second->parent))
      if (process.rank >= 0) numbers_below[up->first].insert(process.rank);
  }
  // Below a rank all have its number; below a launcher, which may have one from the scheduler, there are several.
  const auto launches = [&](const JobMemberProcess& process) {
    const auto below = numbers_below.find(process.pid);
    return process.wrapper || (below != numbers_below.end() && below->second.size() > 1);
  };
  // A number that a process shares with a rank above it was inherited.
  const auto inherits = [&](const JobMemberProcess& process) {
    for (auto up = by_pid.find(process.parent); up != by_pid.end(); up = by_pid.find(up->second->parent))
      if (up->second->rank == process.rank && !launches(*up->second)) return true;
    return false;
  };
  std::vector<JobMemberProcess> ranks;
  for (const JobMemberProcess& process : processes)
    if (process.rank >= 0 && !launches(process) && !inherits(process)) ranks.push_back(process);
  if (ranks.empty())
    for (const JobMemberProcess& process : processes)
      if (!process.wrapper && (!has_children.contains(process.pid) || process.takes_stack_signal))
        ranks.push_back(process);
  std::stable_sort(ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return a.rank < b.rank; });
  return ranks;
}

bool IsServiceThread(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kPrefixes = {"NCCL ",    "pt_nccl_", "pt_tcpstore",
                                                                "cuda-Evt", "cuda0000", "tacet-"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

ServiceUse ReadServiceUse(int64_t pid, const std::string& proc) {
  ServiceUse use;
  const std::string tasks = proc + "/" + std::to_string(pid) + "/task";
  for (const int64_t thread : ListPids(tasks)) {
    const std::string folder = tasks + "/" + std::to_string(thread);
    if (thread == pid || !IsServiceThread(ReadSmallFile(folder + "/comm", 64))) continue;
    JobMemberProcess own;
    if (!ParseStatLine(ReadSmallFile(folder + "/stat", 4096), &own)) continue;
    use.cpu_ns += own.cpu_ns;
    use.io_bytes += std::max<int64_t>(0, ReadIoBytes(folder));
  }
  return use;
}

int64_t FindThreadNamed(int64_t pid, std::string_view name, const std::string& proc) {
  const std::string tasks = proc + "/" + std::to_string(pid) + "/task";
  for (const int64_t thread : ListPids(tasks)) {
    const std::string own = ReadSmallFile(tasks + "/" + std::to_string(thread) + "/comm", 64);
    if (std::string_view(own).substr(0, own.find('\n')) == name) return thread;
  }
  return -1;
}

bool Refresh(JobMemberProcess& process, const std::string& proc) {
  JobMemberProcess now;
  if (!ReadProcess(proc, process.pid, &now) || now.start_jiffies != process.start_jiffies) return false;
  now.rank = process.rank;
  now.wrapper = process.wrapper;
  process = std::move(now);
  return true;
}

}  // namespace tacet
