// SPDX-License-Identifier: Apache-2.0
#include "launch/lab/benchmark_plan.h"

#include <algorithm>
#include <cctype>

#include "base/line_reader.h"
#include "base/text_scan.h"
#include "launch/command_run.h"

namespace tacet {
namespace {

constexpr size_t kMostHosts = 4096;
constexpr int kFirstPort = 5201;
constexpr std::string_view kSubsystems = "INIT,ENV,NET,GRAPH,TUNING";

std::string Joined(const std::vector<std::string>& words, std::string_view mark) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : std::string(mark)) + word;
  return out;
}

// Letters, digits and what is harmless in a file's name.
std::string FileWord(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    out += std::isalnum(u) || c == '.' || c == '-' ? static_cast<char>(std::tolower(u)) : '_';
  }
  return out;
}

using Settings = std::vector<std::pair<std::string, std::string>>;

class Planner {
 public:
  explicit Planner(const BenchmarkWish& wish) : wish_(wish) {}

  std::string Program(const std::string& name) const { return wish_.folder.empty() ? name : wish_.folder + "/" + name; }

  // The launcher's words before a program that runs `ranks` times over `hosts`.
  std::vector<std::string> Launch(const std::vector<BenchmarkHost>& hosts, int ranks, const Settings& settings,
                                  std::vector<std::string> program, bool one_each = false) const {
    std::vector<std::string> words;
    std::vector<std::string> names, slots;
    for (const BenchmarkHost& host : hosts) {
      names.push_back(host.name);
      slots.push_back(host.name + ":" + std::to_string(one_each ? 1 : host.slots));
    }
    std::vector<std::string> mpi = {"mpirun", "-np", std::to_string(ranks)};
    if (!names.empty()) mpi.insert(mpi.end(), {"--host", Joined(slots, ",")});
    for (const auto& [name, value] : settings) mpi.insert(mpi.end(), {"-x", name + "=" + value});
    switch (wish_.launcher) {
      case BenchmarkLauncher::local:
        if (!settings.empty()) words.push_back("env");
        for (const auto& [name, value] : settings) words.push_back(name + "=" + value);
        break;
      case BenchmarkLauncher::mpirun: words = std::move(mpi); break;
      case BenchmarkLauncher::srun: {
        words = {"srun", "--nodes=" + std::to_string(std::max<size_t>(1, hosts.size())),
                 "--ntasks=" + std::to_string(ranks)};
        if (!names.empty()) words.push_back("--nodelist=" + Joined(names, ","));
        // Values may hold commas, which separate variables in --export.
        if (!settings.empty()) words.push_back("env");
        for (const auto& [name, value] : settings) words.push_back(name + "=" + value);
        break;
      }
      case BenchmarkLauncher::ssh: {
        words = {"ssh",
                 "-o",
                 "BatchMode=yes",
                 "-o",
                 "ConnectTimeout=10",
                 "-tt",
                 hosts.empty() ? "localhost" : hosts.front().name};
        std::vector<std::string> inner;
        if (!one_each) inner = std::move(mpi);  // nccl-tests over several hosts need MPI whoever starts it
        inner.insert(inner.end(), program.begin(), program.end());
        words.push_back(ShowCommand(inner));
        return words;
      }
    }
    words.insert(words.end(), program.begin(), program.end());
    return words;
  }

  BenchmarkStep NcclStep(const std::string& operation, const std::vector<BenchmarkHost>& hosts, int ranks,
                         const std::pair<std::string, std::string>& way, const std::string& tag) const {
    Settings settings = {{"NCCL_DEBUG", "INFO"}, {"NCCL_DEBUG_SUBSYS", std::string(kSubsystems)}};
    if (!way.first.empty()) settings.emplace_back("NCCL_ALGO", way.first);
    if (!way.second.empty()) settings.emplace_back("NCCL_PROTO", way.second);
    std::vector<std::string> program = {Program(operation + "_perf"),
                                        "-b",
                                        wish_.first,
                                        "-e",
                                        wish_.last,
                                        "-f",
                                        "2",
                                        "-g",
                                        wish_.launcher == BenchmarkLauncher::local ? std::to_string(ranks) : "1"};
    program.insert(program.end(), wish_.arguments.begin(), wish_.arguments.end());
    BenchmarkStep step;
    const std::string words =
        Trim(way.first + " " + way.second).empty() ? "" : std::string(Trim(way.first + " " + way.second));
    step.file =
        FileWord(operation + "_" + std::to_string(ranks) + "ranks" + tag + (words.empty() ? "" : "_" + words)) + ".txt";
    step.says = operation + ", " + std::to_string(ranks) + (ranks == 1 ? " rank" : " ranks") +
                (words.empty() ? "" : ", " + words);
    step.command = Launch(hosts, ranks, settings, std::move(program));
    return step;
  }

  // A server on the second host, a client on the first.
  BenchmarkStep PairStep(const std::string& operation, const BenchmarkHost& client, const BenchmarkHost& server,
                         int round, int port) const {
    BenchmarkStep step;
    const bool iperf = wish_.tool == BenchmarkTool::iperf3;
    std::vector<std::string> serve = {Program(operation)}, call = {Program(operation)};
    if (iperf) {
      serve.insert(serve.end(), {"-s", "-1", "-p", std::to_string(port)});
      call.insert(call.end(), {"-c", server.name, "-p", std::to_string(port)});
      if (wish_.arguments.empty()) call.insert(call.end(), {"-t", "5", "-P", "4"});
    } else {
      serve.insert(serve.end(), {"-p", std::to_string(port)});
      call.insert(call.end(), {"-p", std::to_string(port)});
      if (operation.ends_with("_bw")) serve.push_back("--report_gbits"), call.push_back("--report_gbits");
      serve.push_back("-a"), call.push_back("-a");
      serve.insert(serve.end(), wish_.arguments.begin(), wish_.arguments.end());
    }
    call.insert(call.end(), wish_.arguments.begin(), wish_.arguments.end());
    if (!iperf) call.push_back(server.name);
    step.server = Launch({server}, 1, {}, std::move(serve), true);
    step.command = Launch({client}, 1, {}, std::move(call), true);
    step.head = "# pair " + client.name + " " + server.name;
    step.says = operation + " from " + client.name + " to " + server.name;
    step.file = FileWord(operation + "_round" + std::to_string(round) + "_" + client.name + "_" + server.name) + ".txt";
    return step;
  }

 private:
  const BenchmarkWish& wish_;
};

void AddPairs(const BenchmarkWish& wish, const Planner& planner, std::vector<BenchmarkRound>& rounds) {
  const auto pairs = PairRounds(wish.hosts.size());
  const int most = wish.rounds > 0 ? wish.rounds : RoundsToIsolate(wish.hosts.size());
  for (const std::string& operation : wish.operations)
    for (size_t round = 0; round < pairs.size() && round < static_cast<size_t>(most); ++round) {
      BenchmarkRound& steps = rounds.emplace_back();
      int port = kFirstPort;
      for (const auto& [a, b] : pairs[round]) {
        const BenchmarkHost &one = wish.hosts[a], &other = wish.hosts[b];
        if (wish.tool == BenchmarkTool::nccl_tests) {
          steps.push_back(planner.NcclStep(operation, {one, other}, one.slots + other.slots, {},
                                           "_round" + std::to_string(round + 1) + "_" + one.name + "_" + other.name));
          steps.back().says += " on " + one.name + " and " + other.name;
        } else {
          steps.push_back(planner.PairStep(operation, one, other, static_cast<int>(round) + 1, port++));
        }
      }
    }
}

// The first hosts that hold so many ranks.
std::vector<BenchmarkHost> HostsFor(const std::vector<BenchmarkHost>& hosts, int ranks) {
  std::vector<BenchmarkHost> taken;
  for (const BenchmarkHost& host : hosts) {
    if (ranks <= 0) break;
    taken.push_back({host.name, std::min(host.slots, ranks)});
    ranks -= taken.back().slots;
  }
  return taken;
}

}  // namespace

std::vector<std::vector<std::pair<size_t, size_t>>> PairRounds(size_t hosts) {
  std::vector<std::vector<std::pair<size_t, size_t>>> rounds;
  if (hosts < 2) return rounds;
  const size_t even = hosts + hosts % 2;  // of an odd number one plays nobody in each round
  for (size_t round = 0; round + 1 < even; ++round) {
    auto& pairs = rounds.emplace_back();
    for (size_t i = 0; i < even / 2; ++i) {
      const size_t a = i == 0 ? even - 1 : (round + i) % (even - 1);
      const size_t b = (round + even - 1 - i) % (even - 1);
      if (a < hosts && b < hosts) pairs.emplace_back(std::min(a, b), std::max(a, b));
    }
  }
  return rounds;
}

int RoundsToIsolate(size_t hosts) { return hosts % 2 == 0 ? 2 : 3; }

Result<std::vector<BenchmarkHost>> ParseHosts(std::string_view text) {
  std::vector<BenchmarkHost> hosts;
  LineReader lines(text);
  for (std::string_view line; lines.Next(&line);) {
    line = Trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    BenchmarkHost host;
    std::string_view name = TakeWord(line);
    int slots = 1;
    if (const size_t colon = name.rfind(':'); colon != std::string_view::npos) {
      std::string_view number = name.substr(colon + 1);
      if (TakeNumber(number, &slots) && number.empty()) name = name.substr(0, colon);
    }
    for (std::string_view word = TakeWord(line); !word.empty(); word = TakeWord(line))
      if (TakeLiteral(word, "slots=") || TakeLiteral(word, "max_slots=")) TakeNumber(word, &slots);
    // A name that begins like an option would be one, for ssh and others.
    if (name.empty() || name[0] == '-' || slots < 1 || slots > 1024 || name.size() > 253)
      return Error{"line " + std::to_string(lines.number()) + " of the host file is not a host: '" +
                       std::string(name.substr(0, 60)) + "'",
                   "write one host per line: gpu1 slots=8"};
    host.name = name;
    host.slots = slots;
    if (hosts.size() >= kMostHosts) return Error{"more than " + std::to_string(kMostHosts) + " hosts", ""};
    hosts.push_back(std::move(host));
  }
  return hosts;
}

Result<std::vector<BenchmarkRound>> PlanBenchmarks(const BenchmarkWish& wish) {
  const Planner planner(wish);
  std::vector<BenchmarkRound> rounds;
  const bool two_sided = wish.tool != BenchmarkTool::nccl_tests;
  if (wish.pairs || two_sided) {
    BenchmarkWish full = wish;
    if (full.hosts.empty() && wish.launcher == BenchmarkLauncher::local && two_sided)
      full.hosts = {{"localhost", 1}, {"127.0.0.1", 1}};
    if (!wish.ways.empty())
      return Error{"--ways cannot be combined with --pairs", "measure the pairs and the ways in two runs"};
    if (full.hosts.size() < 2)
      return Error{"pairs need at least two hosts", "name them with --hostfile FILE or --hosts gpu1,gpu2"};
    AddPairs(full, Planner(full), rounds);
    return rounds;
  }
  int all = 0;
  for (const BenchmarkHost& host : wish.hosts) all += host.slots;
  if (all == 0 && wish.launcher != BenchmarkLauncher::local && wish.ranks.empty())
    return Error{"the number of ranks is unknown", "give hosts with --hostfile FILE (gpu1 slots=8), or --ranks 16"};
  std::vector<int> ranks = wish.ranks;
  if (ranks.empty()) ranks = {std::max(all, 1)};
  for (const int one : ranks)
    if (all > 0 && one > all)
      return Error{
          "--ranks " + std::to_string(one) + " is more than the " + std::to_string(all) + " slots of all hosts", ""};
  std::vector<std::pair<std::string, std::string>> ways = {{"", ""}};
  ways.insert(ways.end(), wish.ways.begin(), wish.ways.end());
  for (const std::string& operation : wish.operations)
    for (const int one : ranks)
      for (const auto& way : ways)
        rounds.push_back({planner.NcclStep(operation, HostsFor(wish.hosts, one), one, way, "")});
  return rounds;
}

}  // namespace tacet
