// SPDX-License-Identifier: Apache-2.0
#include "launch/rank_looker.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "analysis/process/stack_reading.h"
#include "base/text_scan.h"
#include "evidence/load.h"
#include "launch/command_run.h"
#include "launch/python_hook.h"
#include "launch/run_folder.h"
#include "model/assembly/assembly.h"

namespace tacet {
namespace fs = std::filesystem;
namespace {

constexpr size_t kMostStackBytes = 4 << 20;

uint64_t MixHash(uint64_t hash, uint64_t value) { return (hash ^ value) * 0x9e3779b97f4a7c15u + (hash >> 29); }

int64_t SizeOf(const std::string& path) {
  struct stat what {};
  return ::stat(path.c_str(), &what) == 0 ? static_cast<int64_t>(what.st_size) : -1;
}

int WorldSizeOf(const std::string& environ_bytes) {
  for (const std::string_view name : {"WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"})
    for (std::string_view rest = environ_bytes; !rest.empty();) {
      std::string_view entry = TakeUntil(rest, '\0');
      if (!rest.empty()) rest.remove_prefix(1);
      int size = -1;
      if (TakeLiteral(entry, name) && TakeLiteral(entry, "=") && TakeNumber(entry, &size)) return size;
    }
  return -1;
}

// While a group is made, ranks wait for others that may still be starting.
bool IsSetUp(std::string_view function) {
  static constexpr std::array<std::string_view, 8> kNames = {"init_process_group",
                                                             "rendezvous",
                                                             "new_group",
                                                             "_store_based_barrier",
                                                             "init_distributed",
                                                             "_env_rendezvous_handler",
                                                             "_new_process_group_helper",
                                                             "_verify_param_shape_across_processes"};
  return std::find(kNames.begin(), kNames.end(), function) != kNames.end();
}

void LeaveOutServices(JobMemberProcess& process, const std::string& proc) {
  const ServiceUse use = ReadServiceUse(process.pid, proc);
  process.cpu_ns = std::max<int64_t>(0, process.cpu_ns - use.cpu_ns);
  if (process.io_bytes >= 0) process.io_bytes = std::max<int64_t>(0, process.io_bytes - use.io_bytes);
}

void DescribeStack(const Incident& incident, const StackReading& reading, RankLook& look) {
  look.where = reading.where;
  look.place = MixHash(1, static_cast<uint64_t>(reading.place));
  using Place = StackReading::Place;
  const bool waits = reading.place == Place::communication || reading.place == Place::device_wait;
  look.doing = waits                ? RankLook::Doing::waits
               : reading.in_library ? RankLook::Doing::library
                                    : RankLook::Doing::user_code;
  if (reading.thread == nullptr) return;
  for (const Frame& frame : incident.stacks.Get(reading.thread->stack)) {
    const std::string_view function = incident.strings.Get(frame.function);
    look.setting_up |= waits && IsSetUp(function);
    look.place = MixHash(look.place, std::hash<std::string_view>()(function));
    look.place = MixHash(look.place, std::hash<std::string_view>()(incident.strings.Get(frame.file)));
  }
}

}  // namespace

RankLooker::RankLooker(LookerOptions options)
    : options_(std::move(options)),
      boxes_({.root = options_.box_folder.empty() ? "/nonexistent" : options_.box_folder, .proc = "/proc"}) {}

std::vector<RankLook> RankLooker::looks() const {
  std::vector<RankLook> looks;
  for (const WatchedRank& rank : ranks_) looks.push_back(rank.look);
  return looks;
}

std::string RankLooker::StackFileOf(const WatchedRank& rank) const {
  const auto found = stack_files_.find(rank.process.pid);
  return found == stack_files_.end() ? "" : found->second;
}

const std::vector<WatchedRank>& RankLooker::Look(int64_t wall_ns, bool with_stacks, bool keep_older) {
  FindRanks(wall_ns);
  if (!options_.box_folder.empty()) ReadBoxes(wall_ns);
  if (with_stacks) {
    AskForStacks(keep_older);
    ReadStackFiles();
  }
  return ranks_;
}

// Who was a rank and is no longer there is kept as gone, unless another process has taken its number: a restart.
void RankLooker::FindRanks(int64_t wall_ns) {
  std::vector<WatchedRank> now;
  std::set<int> numbers;
  std::set<int64_t> pids;
  for (JobMemberProcess& process : PickRanks(FindJobProcesses(options_.search))) {
    WatchedRank& rank = now.emplace_back();
    const auto before = std::find_if(ranks_.begin(), ranks_.end(), [&](const WatchedRank& one) {
      return one.process.pid == process.pid && one.process.start_jiffies == process.start_jiffies;
    });
    if (before != ranks_.end()) rank = *before;
    if (rank.world_size < 0)
      rank.world_size =
          WorldSizeOf(ReadSmallFile(options_.search.proc + "/" + std::to_string(process.pid) + "/environ", 1 << 20));
    rank.process = std::move(process);
    LeaveOutServices(rank.process, options_.search.proc);
    rank.look.rank = rank.process.rank;
    rank.look.pid = rank.process.pid;
    rank.look.state = rank.process.state;
    rank.look.gone = rank.process.state == 'Z' || rank.process.state == 'X';
    rank.look.cpu_ns = rank.process.cpu_ns;
    if (rank.main_io_after_look >= 0) rank.look.main_io_bytes += rank.process.main_io_bytes - rank.main_io_after_look;
    rank.main_io_after_look = rank.process.main_io_bytes;
    if (rank.io_after_look >= 0 && rank.process.io_bytes >= 0)
      rank.look.io_bytes += rank.process.io_bytes - rank.io_after_look;
    rank.io_after_look = rank.process.io_bytes;
    if (rank.process.state == 'R' || rank.process.state == 'S' || rank.running_until_wall_ns < 0)
      rank.running_until_wall_ns = wall_ns;
    if (rank.process.rank >= 0) numbers.insert(rank.process.rank);
    pids.insert(rank.process.pid);
  }
  for (const WatchedRank& before : ranks_) {
    if (pids.contains(before.process.pid) || before.process.rank < 0 || numbers.contains(before.process.rank)) continue;
    WatchedRank& rank = now.emplace_back(before);
    rank.look.gone = true;
    rank.look.state = 'X';
  }
  std::stable_sort(now.begin(), now.end(), [](const auto& a, const auto& b) { return a.look.rank < b.look.rank; });
  ranks_ = std::move(now);
}

void RankLooker::ReadBoxes(int64_t wall_ns) {
  const HostState state = boxes_.Look(wall_ns, [](const FinishedOperation&) {});
  for (const BoxState& box : state.boxes)
    for (WatchedRank& rank : ranks_) {
      if (box.pid != rank.process.pid || !box.trouble.empty()) continue;
      rank.has_box = true;
      rank.look.progress = 0;
      rank.look.in_flight = false;
      for (const CommState& comm : box.comms) rank.look.progress = MixHash(rank.look.progress, comm.finished);
      for (const OperationState& op : box.operations) {
        rank.look.in_flight |= op.tells_end;
        rank.look.progress = MixHash(rank.look.progress, op.progress);
      }
      if (rank.look.rank < 0) rank.look.rank = rank.process.rank = box.rank;
    }
}

// The signal goes to processes that handle it only: others it would end.
void RankLooker::AskForStacks(bool keep_older) {
  if (options_.stacks_folder.empty()) return;
  stack_files_.clear();
  std::error_code error;
  for (fs::directory_iterator it(options_.stacks_folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (const auto pid = IntAfter(name, "pid_")) stack_files_[*pid] = it->path().string();
  }
  Asked asked;
  for (WatchedRank& rank : ranks_) {
    rank.look.doing = RankLook::Doing::unknown;
    rank.look.setting_up = false;
    rank.look.place = 0;
    rank.look.where.clear();
    const std::string file = StackFileOf(rank);
    if (file.empty() || rank.look.gone) continue;
    if (!keep_older && ::truncate(file.c_str(), 0) != 0) continue;
    JobMemberProcess now = rank.process;
    if (!Refresh(now, options_.search.proc) || !now.takes_stack_signal || now.state == 'T' || now.state == 'Z')
      continue;
    asked[file] = {SizeOf(file), static_cast<pid_t>(now.pid)};
    const int64_t taker = FindThreadNamed(now.pid, "tacet-stacks", options_.search.proc);
    if (taker > 0) ::syscall(SYS_tgkill, asked[file].pid, static_cast<pid_t>(taker), StackSignal());
  }
  // A process whose interpreter is held by code of another language does not answer by itself. Its handler does, but it
  // changes errno in whatever thread it interrupts, and NCCL's loops read that behind every call: it comes second.
  asked = WaitForAnswers(std::move(asked));
  for (const auto& [file, one] : asked) ::kill(one.pid, StackSignal());
  WaitForAnswers(std::move(asked));
  for (WatchedRank& rank : ranks_) {
    JobMemberProcess now = rank.process;
    if (rank.look.gone || !Refresh(now, options_.search.proc)) continue;
    LeaveOutServices(now, options_.search.proc);
    rank.io_after_look = now.io_bytes;
    rank.main_io_after_look = now.main_io_bytes;
  }
}

// Until each file has grown and stays as it is. Returns those that did not in time.
RankLooker::Asked RankLooker::WaitForAnswers(Asked asked) const {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(options_.answer_ms);
  std::map<std::string, int64_t> last;
  while (!asked.empty() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::erase_if(asked, [&](const auto& entry) {
      const int64_t size = SizeOf(entry.first);
      const bool done = size > entry.second.size && last.contains(entry.first) && last[entry.first] == size;
      last[entry.first] = size;
      return done;
    });
  }
  return asked;
}

void RankLooker::ReadStackFiles() {
  std::vector<Fragment> fragments;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    const std::string file = StackFileOf(ranks_[i]);
    const std::string text = file.empty() ? "" : ReadSmallFile(file, kMostStackBytes);
    // Numbered by place in the list: a rank's number may be unknown, and here only the stack counts.
    if (!text.empty()) fragments.push_back(ReadFragment("stack_rank_" + std::to_string(i) + ".txt", text, {}));
  }
  if (fragments.empty()) return;
  for (const Incident& incident : Assemble(std::move(fragments)))
    for (const StackReading& reading : ReadStacks(incident)) {
      const auto index = static_cast<size_t>(reading.rank.value);
      if (index < ranks_.size()) DescribeStack(incident, reading, ranks_[index].look);
    }
}

std::string PythonStackByPySpy(int64_t pid) {
  if (FindProgram("py-spy").empty()) return "";
  return RunCommand({"py-spy", "dump", "--pid", std::to_string(pid)}, {.time_ms = 10'000}).out;
}

}  // namespace tacet
