// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tacet {

// A process of the job on this host, as /proc shows it.
struct JobMemberProcess {
  int64_t pid = -1, parent = -1;
  uint64_t start_jiffies = 0;
  std::string program;         // its short name
  int rank = -1;               // as launcher or scheduler told it; -1 unknown
  char state = '?';            // R, S, D, T, Z as in /proc/PID/stat
  int64_t cpu_ns = 0;          // of all its threads and of children it has waited for
  int64_t io_bytes = -1;       // of all its threads
  int64_t main_io_bytes = -1;  // of its main thread
  bool takes_stack_signal = false;
  bool wrapper = false;  // a shell or a launcher: it has a rank's variables without being one
};

// "RANK=3\0..." of /proc/PID/environ: what launchers and schedulers tell their ranks. Where two disagree PyTorch's own
// counts: it is what the program itself uses.
int RankFromEnviron(std::string_view environ_bytes);
bool EnvironHas(std::string_view environ_bytes, std::string_view name, std::string_view value);

// One line of /proc/PID/stat.
bool ParseStatLine(std::string_view text, JobMemberProcess* process);
// "SigCgt:\t0000000180014a07\n" of /proc/PID/status.
bool CatchesSignal(std::string_view status, int number);

struct ProcessSearch {
  std::string proc = "/proc";
  int64_t root = -1;          // this process and all below it; -1 none
  std::string run_folder;     // processes that have TACET_RUN_DIR set to it, also below srun's daemon; empty: none
  std::vector<int64_t> pids;  // and these
};

// All processes of the job on this host, sorted by pid.
std::vector<JobMemberProcess> FindJobProcesses(const ProcessSearch& search);

// Those of them that are ranks: for each rank number the topmost process that is no shell or launcher; without any
// number the leaves that are no shells. Children of a rank (data loaders) inherit its number and are not ranks.
std::vector<JobMemberProcess> PickRanks(const std::vector<JobMemberProcess>& processes);

// What the threads of NCCL, CUDA and PyTorch's own watch over communication have used in a process: they send signs of
// life and poll for as long as the process lives, whatever the program does. Known by their names; `tacet run` has NCCL
// name its own.
struct ServiceUse {
  int64_t cpu_ns = 0, io_bytes = 0;
};
ServiceUse ReadServiceUse(int64_t pid, const std::string& proc = "/proc");
bool IsServiceThread(std::string_view name);

// The number of a process' thread of this name; -1 where there is none.
int64_t FindThreadNamed(int64_t pid, std::string_view name, const std::string& proc = "/proc");

// Reads CPU time, state and bytes again. False where the process is gone or another one has its number.
bool Refresh(JobMemberProcess& process, const std::string& proc = "/proc");

}  // namespace tacet
