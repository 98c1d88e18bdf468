// SPDX-License-Identifier: Apache-2.0
#include "launch/capture.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/parallel.h"
#include "launch/command_run.h"
#include "launch/host_state.h"
#include "launch/run_folder.h"

namespace tacet {
namespace fs = std::filesystem;
namespace {

std::string FileFor(const std::string& what, const WatchedRank& rank) {
  std::string name = what + "_";
  if (rank.look.rank >= 0) name += "rank_" + std::to_string(rank.look.rank) + "_";
  return name + "pid_" + std::to_string(rank.process.pid) + ".txt";
}

std::string NameFor(const WatchedRank& rank) {
  return rank.look.rank >= 0 ? "rank " + std::to_string(rank.look.rank) : "process " + std::to_string(rank.process.pid);
}

std::string_view StateName(const RankLook& look) {
  if (look.gone) return look.state == 'Z' ? "zombie" : "gone";
  switch (look.state) {
    case 'T':
    case 't': return "stopped";
    case 'D': return "uninterruptible";
    default: return "running";
  }
}

class CaptureWork {
 public:
  CaptureWork(RankLooker& looker, const CapturePlan& plan) : looker_(looker), plan_(plan) {}

  std::vector<CaptureNote> Do() {
    std::error_code error;
    fs::create_directories(plan_.folder, error);
    if (error) return {{plan_.folder, error.message()}};
    std::thread host([&] { KeepHost(); });
    const std::vector<std::string> asked = AskForFlightRecords();
    looker_.Look(WallNs(), true);
    KeepProcesses();
    KeepNativeStacks();
    std::this_thread::sleep_for(std::chrono::milliseconds(plan_.second_look_ms));
    looker_.Look(WallNs(), true, true);
    KeepPythonStacks();
    CheckFlightRecords(asked);
    KeepBoxes();
    Keep("watch.json", DescribeWatch(looker_.ranks(), plan_.still, HostName(), WallNs()));
    host.join();
    return std::move(notes_);
  }

 private:
  void Note(std::string what, std::string why) {
    const std::lock_guard lock(mutex_);
    notes_.push_back({std::move(what), std::move(why)});
  }

  void Keep(const std::string& name, const std::string& text) {
    if (!WriteWholeFile(plan_.folder + "/" + name, text))
      Note(name, std::string("cannot be written: ") + std::strerror(errno));
  }

  void KeepHost() {
    for (const CapturedText& captured : CaptureHost(plan_.ask_ras, plan_.command_ms)) {
      if (!captured.text.empty()) Keep(captured.name, captured.text);
      if (!captured.problem.empty()) Note(captured.name, captured.problem);
    }
  }

  // PyTorch reads the pipe of each rank once a second and writes its record; who waits in a collective does, too.
  std::vector<std::string> AskForFlightRecords() {
    std::vector<std::string> asked;
    if (plan_.pipe_prefix.empty()) return asked;
    for (const WatchedRank& rank : looker_.ranks()) {
      if (rank.look.rank < 0) continue;
      const std::string number = std::to_string(rank.look.rank);
      const int pipe = ::open((plan_.pipe_prefix + number + ".pipe").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
      if (pipe < 0) continue;  // no NCCL group in that rank, or an older PyTorch
      if (::write(pipe, "tacet\n", 6) == 6) asked.push_back(number);
      ::close(pipe);
    }
    return asked;
  }

  void CheckFlightRecords(const std::vector<std::string>& asked) {
    for (const std::string& number : asked) {
      std::error_code error;
      if (!fs::exists(plan_.flight_prefix + number, error))
        Note("flight record of rank " + number, "requested through its pipe, and not written so far");
    }
  }

  void KeepProcesses() {
    for (const WatchedRank& rank : looker_.ranks())
      if (!rank.look.gone) Keep(FileFor("proc", rank), DescribeProcess(rank.process.pid));
  }

  void KeepPythonStacks() {
    for (const WatchedRank& rank : looker_.ranks()) {
      if (rank.look.gone) continue;
      const std::string file = looker_.StackFileOf(rank);
      std::string text = file.empty() ? "" : ReadSmallFile(file, 16 << 20);
      // The file of the hook is the current one for the next look; its text has its place here.
      if (!text.empty() && ::truncate(file.c_str(), 0) != 0) Note(file, std::strerror(errno));
      if (text.empty()) text = PythonStackByPySpy(rank.process.pid);
      if (!text.empty())
        Keep(FileFor("stack", rank), text);
      else if (rank.look.state == 'T')
        Note("Python stack of " + NameFor(rank), "the process is stopped");
      else
        Note("Python stack of " + NameFor(rank),
             rank.process.takes_stack_signal
                 ? "no answer to the signal: the process is blocked inside the kernel, or handles the signal itself"
                 : "it has no handler (not started by tacet run, not Python, or started with -I or -S), and py-spy is "
                   "not installed or not permitted");
    }
  }

  // gdb reads the symbols of hundreds of libraries, some seconds of one core for each process. Whoever does not wait
  // comes first: on a busy machine the time may not be enough for all.
  void KeepNativeStacks() {
    if (!plan_.native) return;
    if (FindProgram("gdb").empty()) return Note("native stacks", "gdb is not installed");
    std::vector<const WatchedRank*> ranks;
    for (const WatchedRank& rank : looker_.ranks())
      if (!rank.look.gone) ranks.push_back(&rank);
    std::stable_partition(ranks.begin(), ranks.end(), [](const WatchedRank* rank) {
      return rank->look.doing != RankLook::Doing::waits && rank->look.doing != RankLook::Doing::library;
    });
    const unsigned at_once = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
    const int64_t until_ns = MonotonicNs() + plan_.native_ms * 1'000'000;
    ParallelFor(ranks.size(), at_once, [&](size_t i) { KeepNativeStack(*ranks[i], until_ns); });
  }

  void KeepNativeStack(const WatchedRank& rank, int64_t until_ns) {
    const int64_t left_ms = (until_ns - MonotonicNs()) / 1'000'000;
    if (left_ms < 1000) return Note("native stack of " + NameFor(rank), "gdb took too long for earlier ranks");
    const CommandOutcome gdb = RunCommand(
        {"gdb", "-p", std::to_string(rank.process.pid), "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex",
         "set pagination off", "-ex", "thread apply all bt 60", "-ex", "thread apply all py-bt"},
        {.time_ms = left_ms, .most_bytes = 8 << 20});
    if (gdb.out.find("#0") != std::string::npos)
      Keep(FileFor("gdb", rank), gdb.out);
    else
      Note("native stack of " + NameFor(rank), gdb.problem.empty() ? "gdb found no stack" : "gdb " + gdb.problem);
  }

  void KeepBoxes() {
    std::error_code error;
    if (plan_.box_folder.empty() || !fs::exists(plan_.box_folder, error)) return;
    fs::copy(plan_.box_folder, plan_.folder + "/boxes",
             fs::copy_options::recursive | fs::copy_options::overwrite_existing, error);
    if (error) Note("black boxes", error.message());
  }

  RankLooker& looker_;
  const CapturePlan& plan_;
  std::mutex mutex_;
  std::vector<CaptureNote> notes_;
};

}  // namespace

std::string DescribeWatch(const std::vector<WatchedRank>& ranks, const std::optional<StillVerdict>& still,
                          const std::string& host, int64_t wall_ns) {
  JsonWriter json;
  json.BeginObject().Key("schema").String("tacet.watch.v1").Key("host").String(host);
  json.Key("looked_wall_ns").Int(wall_ns);
  if (still) json.Key("still_ms").Int(still->still_ns / 1'000'000).Key("limit_ms").Int(still->limit_ns / 1'000'000);
  int world_size = -1;
  for (const WatchedRank& rank : ranks) world_size = std::max(world_size, rank.world_size);
  if (world_size > 0) json.Key("world_size").Int(world_size);
  json.Key("processes").BeginArray();
  for (const WatchedRank& rank : ranks) {
    json.BeginObject().Key("rank").Int(rank.look.rank).Key("pid").Int(rank.process.pid);
    json.Key("start_jiffies").Int(static_cast<int64_t>(rank.process.start_jiffies));
    json.Key("program").String(rank.process.program).Key("state").String(StateName(rank.look));
    json.Key("running_until_wall_ns").Int(rank.running_until_wall_ns);
    json.Key("cpu_ms").Int(rank.look.cpu_ns / 1'000'000).Key("box").Bool(rank.has_box);
    json.Key("where").String(rank.look.where).EndObject();
  }
  return json.EndArray().EndObject().Take() + "\n";
}

std::vector<CaptureNote> Capture(RankLooker& looker, const CapturePlan& plan) { return CaptureWork(looker, plan).Do(); }

}  // namespace tacet
