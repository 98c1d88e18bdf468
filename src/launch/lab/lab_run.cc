// SPDX-License-Identifier: Apache-2.0
#include "launch/lab/lab_run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "base/json_reader.h"
#include "base/json_writer.h"
#include "base/text_scan.h"
#include "launch/command_run.h"
#include "launch/run_folder.h"

namespace tacet {
namespace fs = std::filesystem;
namespace {

constexpr int kSteps = 100;
constexpr int64_t kMostMs = 400'000;  // for one job, its start, its end and the verdict
constexpr int kNotPermitted = 77;     // two_nodes.sh
constexpr int64_t kCgroupBytes = int64_t{400} << 20;

// SplitMix64: neighbouring seeds choose ranks and steps that have nothing to do with each other.
uint64_t SpreadSeed(uint64_t seed) {
  uint64_t value = seed * 0x9e3779b97f4a7c15u;
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

// A cgroup with a memory limit, which the chosen rank joins. Removed at the end.
class MemoryGroup {
 public:
  // Why there is none; empty where there is one.
  std::string Make() {
    const std::string name = "/tacet-lab-" + std::to_string(::getpid());
    for (const auto& [root, limit] : {std::pair<std::string, std::string>{"/sys/fs/cgroup", "/memory.max"},
                                      {"/sys/fs/cgroup/memory", "/memory.limit_in_bytes"}}) {
      if (::mkdir((root + name).c_str(), 0755) != 0) continue;
      folder_ = root + name;
      if (::access((folder_ + limit).c_str(), W_OK) == 0 &&
          WriteWholeFile(folder_ + limit, std::to_string(kCgroupBytes))) {
        WriteWholeFile(folder_ + "/memory.swap.max", "0");
        return "";
      }
      ::rmdir(folder_.c_str());
      folder_.clear();
    }
    return "a cgroup with a memory limit cannot be created here (root and the memory controller are needed)";
  }
  ~MemoryGroup() {
    if (!folder_.empty()) ::rmdir(folder_.c_str());
  }
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

double ModifiedSeconds(const std::string& path) {
  struct stat what {};
  if (::stat(path.c_str(), &what) != 0) return -1;
  return static_cast<double>(what.st_mtim.tv_sec) + static_cast<double>(what.st_mtim.tv_nsec) / 1e9;
}

// Debian 12 has PyTorch 1.13 with Python 3.11, in which torchrun cannot parse its own defaults for these options. A map
// that names no rank of the job means the same.
std::vector<std::string> ExtraTorchrunOptions(const LabPython& python) {
  if (python.torch_major >= 2 || python.python_minor < 11) return {};
  return {"--redirects", "9:1", "--tee", "9:1"};
}

class LabRun {
 public:
  LabRun(const LabFault& fault, const LabOptions& options, const LabPython& python)
      : fault_(fault), options_(options), python_(python) {}

  Result<LabOutcome> Do() {
    auto backend = ChooseLabBackend(options_.backend, python_);
    if (!backend) return backend.error();
    backend_ = *backend;
    if (fault_.needs == LabFault::Needs::nccl && backend_ != "nccl") return Skipped("needs NCCL and a GPU");
    if (fault_.needs == LabFault::Needs::gloo && backend_ != "gloo") return Skipped("needs gloo");
    if (options_.ranks < 2) return Error{"the lab needs at least 2 ranks", ""};
    if (fault_.needs == LabFault::Needs::memory_cgroup)
      if (std::string why = group_.Make(); !why.empty()) return Skipped(why);
    Choose();
    if (auto made = MakeFiles(); !made) return made.error();
    const CommandOutcome done = Start();
    if (done.exit_code == kNotPermitted) return Skipped("not permitted here: " + RefusalIn(done.out));
    if (!done.started || done.exit_code == 127) return Error{"cannot start tacet run: " + done.problem, ""};
    Judge(done);
    return std::move(outcome_);
  }

 private:
  LabOutcome Skipped(std::string why) {
    outcome_.skipped = std::move(why);
    return outcome_;
  }

  void Choose() {
    const int span = std::max(options_.ranks - fault_.first_rank - fault_.spared, 1);
    // Seeds that follow each other choose different ranks.
    const uint64_t first = SpreadSeed(std::hash<std::string_view>()(fault_.name) % 1000);
    outcome_.rank = fault_.first_rank + static_cast<int>((first % 1000 + options_.seed) % static_cast<uint64_t>(span));
    step_ = 8 + static_cast<int>(SpreadSeed(options_.seed + 1000) % 20);
    outcome_.run_folder = options_.folder + "/run";
  }

  Result<int> MakeFiles() {
    std::error_code error;
    fs::remove_all(outcome_.run_folder, error);
    fs::remove(options_.folder + "/mark", error);
    fs::remove(options_.folder + "/place", error);
    fs::create_directories(options_.folder, error);
    if (error) return Error{"cannot write below '" + options_.folder + "': " + error.message(), ""};
    std::string place = options_.folder + "/place";
    if (!group_.folder().empty()) place = group_.folder();
    if (fault_.name == "stuck-saving" && ::mkfifo(place.c_str(), 0600) != 0)
      return Error{"cannot create a pipe in '" + options_.folder + "': " + std::strerror(errno), ""};
    JsonWriter plan;
    plan.BeginObject().Key("fault").String(fault_.name).Key("rank").Int(outcome_.rank).Key("step").Int(step_);
    plan.Key("steps").Int(kSteps).Key("seed").Int(static_cast<int64_t>(options_.seed % 1'000'000));
    plan.Key("backend").String(backend_).Key("timeout_s").Int(fault_.timeout_s).Key("pause_s").Int(fault_.pause_s);
    plan.Key("mark").String(options_.folder + "/mark").Key("place").String(place);
    if (!WriteWholeFile(options_.folder + "/plan.json", plan.EndObject().Take() + "\n") ||
        !WriteWholeFile(options_.folder + "/train.py", LabTrainingProgram()) ||
        !WriteWholeFile(options_.folder + "/two_nodes.sh", LabTwoNodesScript()))
      return Error{"cannot write below '" + options_.folder + "': " + std::strerror(errno), ""};
    return 0;
  }

  std::vector<std::string> JobCommand() const {
    const std::string port = std::to_string(
        20000 +
        (SpreadSeed(static_cast<uint64_t>(::getpid()) + options_.seed * 77) + static_cast<uint64_t>(step_)) % 10000);
    const std::string job = options_.folder + "/train.py";
    std::vector<std::string> command;
    if (fault_.needs == LabFault::Needs::network_namespaces)
      command = {"sh",
                 options_.folder + "/two_nodes.sh",
                 std::string(fault_.name),
                 options_.folder + "/mark",
                 python_.program,
                 std::to_string((options_.ranks + 1) / 2),
                 port,
                 job};
    else
      command = {python_.program, "-m", "torch.distributed.run", "--nproc_per_node", std::to_string(options_.ranks),
                 "--master_port", port};
    for (std::string& option : ExtraTorchrunOptions(python_)) command.push_back(std::move(option));
    if (fault_.needs != LabFault::Needs::network_namespaces) command.push_back(job);
    return command;
  }

  CommandOutcome Start() const {
    std::vector<std::string> command = {"sh",
                                        "-c",
                                        "exec \"$@\" 2>&1",
                                        "sh",
                                        "env",
                                        "TACET_LAB_PLAN=" + options_.folder + "/plan.json",
                                        "OMP_NUM_THREADS=1",
                                        OwnProgram(),
                                        "run",
                                        "--dir",
                                        outcome_.run_folder,
                                        "--name",
                                        "train",
                                        "--hang-after",
                                        std::to_string(options_.hang_after_s),
                                        "--on-hang",
                                        "kill"};
    if (fault_.full) command.push_back("--full");
    command.push_back("--");
    for (std::string& word : JobCommand()) command.push_back(std::move(word));
    std::string console;
    CommandOutcome done = RunCommand(command, {.time_ms = kMostMs, .most_bytes = 64 << 20}, [&](std::string_view text) {
      console += text;
      if (options_.show) options_.show(text);
    });
    done.out = std::move(console);
    WriteWholeFile(options_.folder + "/console.log", done.out);
    return done;
  }

  static std::string RefusalIn(std::string_view console) {
    const auto words = After(console, "two_nodes.sh: ");
    return words ? std::string(words->substr(0, words->find('\n'))) : "network namespaces";
  }

  void Judge(const CommandOutcome& done) {
    LabVerdict& verdict = outcome_.verdict;
    const std::string path = outcome_.run_folder + "/verdict.json";
    JsonValue report;
    bool cut = false;
    if (ParseJson(ReadSmallFile(path, 64 << 20), &report, &cut)) ReadVerdict(report, verdict);
    outcome_.wrong = WhatIsWrong(fault_, outcome_.rank, verdict);
    if (done.timed_out) outcome_.wrong = "the job did not finish within " + std::to_string(kMostMs / 1000) + " s";
    if (fault_.who == LabFault::Who::nobody && outcome_.wrong.empty() && done.exit_code != 0)
      outcome_.wrong = "the healthy job ended with exit code " + std::to_string(done.exit_code);
    const double struck = ModifiedSeconds(options_.folder + "/mark"), told = ModifiedSeconds(path);
    if (verdict.given && struck > 0 && told >= struck) outcome_.verdict_after_s = told - struck;
  }

  static void ReadVerdict(const JsonValue& report, LabVerdict& out) {
    const JsonValue* verdict = report.Find("verdict");
    if (!verdict) return;
    const auto text = [&](const JsonValue& from, std::string_view key) {
      const JsonValue* value = from.Find(key);
      return value && value->kind == JsonValue::Kind::string ? std::string(value->Text()) : std::string();
    };
    out.given = true;
    out.status = text(*verdict, "status");
    out.cause = text(*verdict, "cause");
    out.headline = text(*verdict, "headline");
    out.where = out.headline;
    if (const JsonValue* ranks = verdict->Find("ranks"))
      for (const JsonValue& rank : ranks->items) out.ranks.push_back(static_cast<int>(rank.Int(-1)));
    const JsonValue* findings = report.Find("findings");
    if (!findings || findings->items.empty()) return;
    out.where += "\n" + text(findings->items[0], "headline");
    if (const JsonValue* evidence = findings->items[0].Find("evidence"))
      for (const JsonValue& one : evidence->items) out.where += "\n" + text(one, "says") + "\n" + text(one, "excerpt");
  }

  const LabFault& fault_;
  const LabOptions& options_;
  const LabPython& python_;
  std::string backend_;
  int step_ = 0;
  MemoryGroup group_;
  LabOutcome outcome_;
};

std::optional<LabPython> AskPython(const std::string& program) {
  const CommandOutcome answer = RunCommand({program, "-c",
                                            "import sys, torch, torch.distributed as d\n"
                                            "print('tacet-lab', torch.__version__, sys.version_info[1], "
                                            "torch.cuda.device_count(), int(d.is_nccl_available()))"},
                                           {.time_ms = 60'000, .most_bytes = 1 << 16});
  const auto found = After(answer.out, "tacet-lab ");
  if (!found) return std::nullopt;
  LabPython python;
  std::string_view rest = *found;
  python.program = program;
  python.torch_version = std::string(TakeWord(rest));
  std::string_view version = python.torch_version;
  int nccl = 0;
  if (!TakeNumber(version, &python.torch_major)) return std::nullopt;
  for (int* number : {&python.python_minor, &python.gpus, &nccl}) {
    SkipBlanks(rest);
    if (!TakeNumber(rest, number)) return std::nullopt;
  }
  python.nccl = nccl != 0;
  return python;
}

}  // namespace

Result<LabPython> FindLabPython(const std::string& wish) {
  std::vector<std::string> candidates = {"python3", "/usr/bin/python3", "python"};
  if (!wish.empty()) candidates = {wish};
  for (const std::string& program : candidates)
    if (auto python = AskPython(program)) return *python;
  return Error{"no Python with PyTorch found" + (wish.empty() ? "" : " at '" + wish + "'"),
               "name it with --python; on Debian and Ubuntu: apt-get install python3-torch"};
}

Result<std::string> ChooseLabBackend(const std::string& wish, const LabPython& python) {
  const bool nccl = python.gpus > 0 && python.nccl;
  if (wish == "auto") return std::string(nccl ? "nccl" : "gloo");
  if (wish == "gloo") return wish;
  if (wish != "nccl") return Error{"--backend takes auto, nccl or gloo, not '" + wish + "'", ""};
  if (!nccl)
    return Error{"NCCL needs a GPU and a PyTorch that has it; " + python.program + " sees " +
                     std::to_string(python.gpus) + " GPUs",
                 "--backend gloo works without"};
  return wish;
}

Result<LabOutcome> RunLabFault(const LabFault& fault, const LabOptions& options, const LabPython& python) {
  return LabRun(fault, options, python).Do();
}

}  // namespace tacet
