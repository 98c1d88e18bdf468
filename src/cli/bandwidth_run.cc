// SPDX-License-Identifier: Apache-2.0
#include "cli/bandwidth_run.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include "base/text_scan.h"
#include "launch/command_run.h"
#include "launch/lab/benchmark_steps.h"

namespace tacet {
namespace {

// The programs of nccl-tests, without "_perf".
constexpr std::string_view kNcclOperations[] = {"all_gather", "all_reduce", "alltoall",      "alltoallv",
                                                "broadcast",  "gather",     "hypercube",     "reduce",
                                                "scatter",    "sendrecv",   "reduce_scatter"};

std::string NcclOperationList() {
  std::string list;
  for (const std::string_view one : kNcclOperations) list += (list.empty() ? "one of " : ", ") + std::string(one);
  return list;
}

std::vector<std::string> Listed(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::string_view one = Trim(TakeUntil(text, ','));
    if (!one.empty()) out.emplace_back(one);
    if (!text.empty()) text.remove_prefix(1);
  }
  return out;
}

Result<bool> TakeHosts(const Options& options, BenchmarkWish& wish) {
  std::string text;
  if (const auto path = options.Value("--hostfile")) {
    std::ifstream file(*path);
    if (!file) return Error{"the hostfile '" + *path + "' cannot be read", ""};
    text.assign(std::istreambuf_iterator<char>(file), {});
  }
  for (const std::string& host : Listed(options.Value("--hosts").value_or(""))) text += "\n" + host;
  auto hosts = ParseHosts(text);
  if (!hosts) return hosts.error();
  wish.hosts = std::move(*hosts);
  return true;
}

// "8:1G"
Result<bool> TakeSizes(const Options& options, BenchmarkWish& wish) {
  const auto given = options.Value("--sizes");
  if (!given) return true;
  const size_t colon = given->find(':');
  wish.first = given->substr(0, colon);
  wish.last = colon == std::string::npos ? wish.first : given->substr(colon + 1);
  for (const std::string& one : {wish.first, wish.last})
    if (one.empty() || !IsDigit(one[0]) || one.find_first_not_of("0123456789KMGkmg") != std::string::npos)
      return Error{"--sizes takes a range such as 1M:8G, not '" + *given + "'", ""};
  return true;
}

Result<bool> TakeNumbers(const Options& options, BenchmarkWish& wish) {
  for (const std::string& one : Listed(options.Value("--ranks").value_or(""))) {
    int ranks = 0;
    std::string_view rest = one;
    if (!TakeNumber(rest, &ranks) || !rest.empty() || ranks < 1 || ranks > 1'000'000)
      return Error{"--ranks takes numbers, not '" + one + "'", ""};
    wish.ranks.push_back(ranks);
  }
  const std::string rounds = options.Value("--rounds").value_or("");
  if (rounds == "all") wish.rounds = 1 << 20;
  if (rounds.empty() || rounds == "all") return true;
  auto number = options.Number("--rounds", 2, 1, 1 << 20);
  if (!number) return number.error();
  wish.rounds = static_cast<int>(*number);
  return true;
}

Result<bool> TakeTool(const Options& options, BenchmarkWish& wish) {
  const std::string tool = *options.Value("--run"), launcher = options.Value("--launcher").value_or("local");
  if (tool == "nccl-tests" || tool == "rccl-tests")
    wish.tool = BenchmarkTool::nccl_tests;
  else if (tool == "perftest")
    wish.tool = BenchmarkTool::perftest;
  else if (tool == "iperf3")
    wish.tool = BenchmarkTool::iperf3;
  else
    return Error{"--run takes nccl-tests, perftest or iperf3, not '" + tool + "'", ""};
  for (const auto& [name, value] :
       {std::pair{"local", BenchmarkLauncher::local}, std::pair{"mpirun", BenchmarkLauncher::mpirun},
        std::pair{"srun", BenchmarkLauncher::srun}, std::pair{"ssh", BenchmarkLauncher::ssh}})
    if (launcher == name) {
      wish.launcher = value;
      const char* usual = wish.tool == BenchmarkTool::nccl_tests ? "all_reduce"
                          : wish.tool == BenchmarkTool::perftest ? "ib_write_bw"
                                                                 : "iperf3";
      wish.operations = wish.tool == BenchmarkTool::iperf3 ? std::vector<std::string>{usual}
                                                           : Listed(options.Value("--op").value_or(usual));
      return true;
    }
  return Error{"--launcher takes local, mpirun, srun or ssh, not '" + launcher + "'", ""};
}

Result<BenchmarkWish> ReadWish(const Options& options) {
  BenchmarkWish wish;
  for (auto* take : {TakeTool, TakeHosts, TakeSizes, TakeNumbers})
    if (auto taken = take(options, wish); !taken) return taken.error();
  for (const std::string& operation : wish.operations)
    if (operation.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") != std::string::npos)
      return Error{"'" + operation + "' is not an operation", "for example all_reduce, all_gather, sendrecv"};
  if (wish.tool == BenchmarkTool::nccl_tests)
    for (const std::string& operation : wish.operations)
      if (std::find(std::begin(kNcclOperations), std::end(kNcclOperations), operation) == std::end(kNcclOperations))
        return Error{"nccl-tests has no operation '" + operation + "'", NcclOperationList()};
  for (const std::string& way : Listed(options.Value("--ways").value_or(""))) {
    const size_t colon = way.find(':');
    wish.ways.emplace_back(way.substr(0, colon), colon == std::string::npos ? "" : way.substr(colon + 1));
  }
  wish.pairs = options.Has("--pairs");
  wish.folder = options.Value("--bin").value_or("");
  wish.arguments = options.rest();
  return wish;
}

bool CanRun(const std::string& program) {
  struct stat about;
  if (program.find('/') != std::string::npos) return stat(program.c_str(), &about) == 0 && (about.st_mode & 0111) != 0;
  return !FindProgram(program).empty();
}

// What is not there, before anything is started. On other hosts nobody can look beforehand.
Result<bool> LookForPrograms(const BenchmarkWish& wish) {
  const char* launchers[] = {"", "mpirun", "srun", "ssh"};
  const std::string launcher = launchers[static_cast<int>(wish.launcher)];
  if (!launcher.empty() && FindProgram(launcher).empty())
    return Error{"nothing can be run: " + launcher + " is not in PATH",
                 "choose another with --launcher local, mpirun, srun or ssh"};
  if (wish.launcher != BenchmarkLauncher::local && wish.launcher != BenchmarkLauncher::mpirun) return true;
  for (const std::string& operation : wish.operations) {
    const std::string name = wish.tool == BenchmarkTool::nccl_tests ? operation + "_perf" : operation;
    if (CanRun(wish.folder.empty() ? name : wish.folder + "/" + name)) continue;
    const char* hint =
        wish.tool == BenchmarkTool::nccl_tests
            ? "build github.com/NVIDIA/nccl-tests (make MPI=1) and name its folder: --bin nccl-tests/build"
        : wish.tool == BenchmarkTool::perftest ? "install the package perftest, or name its folder with --bin"
                                               : "install the package iperf3, or name its folder with --bin";
    return Error{"nothing can be run: " + name + " is not in " + (wish.folder.empty() ? "PATH" : wish.folder), hint};
  }
  return true;
}

std::string UsualFolder() {
  char text[64];
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::strftime(text, sizeof text, "tacet-bandwidth-%Y%m%dT%H%M%SZ", &parts);
  return text;
}

}  // namespace

Result<std::string> MeasureNow(const Options& options) {
  auto wish = ReadWish(options);
  if (!wish) return wish.error();
  auto limit = options.Number("--time-limit", 600, 1, 86400);
  if (!limit) return limit.error();
  auto rounds = PlanBenchmarks(*wish);
  if (!rounds) return rounds.error();
  if (options.Has("--dry-run")) {
    for (size_t i = 0; i < rounds->size(); ++i)
      for (const BenchmarkStep& step : (*rounds)[i]) {
        if (wish->pairs) std::printf("# round %zu: %s\n", i + 1, step.says.c_str());
        if (!step.server.empty()) std::printf("%s &\n", ShowCommand(step.server).c_str());
        std::printf("%s > %s\n", ShowCommand(step.command).c_str(), step.file.c_str());
      }
    return std::string();
  }
  if (auto there = LookForPrograms(*wish); !there) return there.error();
  const std::string folder = options.Value("--save").value_or(UsualFolder());
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return Error{"the folder '" + folder + "' cannot be created", "choose another with --save"};
  const auto outcomes =
      RunBenchmarks(*rounds, folder, *limit * 1000, [](size_t done, size_t total, const BenchmarkStep& step) {
        std::fprintf(stderr, "tacet: [%zu/%zu] %s\n", done, total, step.says.c_str());
      });
  size_t failed = 0;
  for (const BenchmarkOutcome& one : outcomes) {
    if (one.problem.empty()) continue;
    ++failed;
    std::fprintf(stderr, "tacet: %s: %s\n", one.file.c_str(), one.problem.c_str());
  }
  if (failed == outcomes.size())
    return Error{"every program failed; what they said is in " + folder,
                 "try one by hand: --dry-run shows the commands"};
  std::fprintf(stderr, "tacet: saved in %s\n", folder.c_str());
  return folder;
}

}  // namespace tacet
