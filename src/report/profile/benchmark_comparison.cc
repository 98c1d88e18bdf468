// SPDX-License-Identifier: Apache-2.0
#include "report/profile/benchmark_comparison.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

#include "analysis/timing/statistics.h"
#include "report/profile/benchmark_lines.h"

namespace tacet {
namespace {

// Two launches of the same benchmark on the same machines differ by several percent as a whole (placement, clocks,
// neighbours on the network), and one run on a side cannot tell that from a change.
constexpr double kLaunchShift = 0.10;
// Fewer sizes than this have no spread to speak of.
constexpr size_t kFewestSizes = 3;

enum class Samples { runs, iterations, single };

struct ClassKey {
  std::string operation;
  DataType type;
  ReduceOp reduction;
  int32_t root;
  SizeRange range;
  std::string variant;
  auto operator<=>(const ClassKey&) const = default;
};

// The sizes of a class that both sides have. Times are geometric means over in and out of place, which are measured one
// after the other and are no two witnesses.
struct SizePair {
  BenchmarkKey key;
  std::vector<std::vector<double>> a, b;  // layouts -> runs
};
using ClassTable = std::map<ClassKey, std::map<int64_t, SizePair>>;

Samples FindSamples(const BenchmarkTable& a, const BenchmarkTable& b) {
  bool runs = false, iterations = false;
  for (const auto& [key, samples] : a) {
    const auto other = b.find(key);
    if (other == b.end()) continue;
    runs |= samples.runs.size() > 1 && other->second.runs.size() > 1;
    iterations |= samples.iterations.size() > 1 && other->second.iterations.size() > 1;
  }
  return runs ? Samples::runs : iterations ? Samples::iterations : Samples::single;
}

ClassTable CollectClasses(const BenchmarkTable& a, const BenchmarkTable& b) {
  ClassTable out;
  for (const auto& [key, samples] : a) {
    const auto other = b.find(key);
    if (other == b.end()) continue;
    SizePair& pair =
        out[{key.operation, key.type, key.reduction, key.root, RangeOf(key.bytes), key.variant}][key.bytes];
    pair.key = key;
    pair.a.push_back(samples.runs);
    pair.b.push_back(other->second.runs);
  }
  return out;
}

double MeanLog(const std::vector<double>& times) {
  double sum = 0;
  for (const double time : times) sum += std::log(time);
  return sum / static_cast<double>(times.size());
}

// For each run the geometric mean over sizes and layouts; only as many runs as all of them have.
std::vector<double> ClassTimes(const std::map<int64_t, SizePair>& sizes, bool of_a) {
  size_t runs = SIZE_MAX;
  for (const auto& [bytes, pair] : sizes)
    for (const auto& times : of_a ? pair.a : pair.b) runs = std::min(runs, times.size());
  std::vector<double> out;
  for (size_t run = 0; run < runs; ++run) {
    double sum = 0, count = 0;
    for (const auto& [bytes, pair] : sizes) {
      for (const auto& times : of_a ? pair.a : pair.b) {
        sum += std::log(times[run]);
        ++count;
      }
    }
    out.push_back(std::exp(sum / count));
  }
  return out;
}

ComparisonLine CompareByRatios(std::string name, const std::map<int64_t, SizePair>& sizes,
                               const ComparisonOptions& options) {
  std::vector<double> ratios, before, after;
  for (const auto& [bytes, pair] : sizes) {
    double a = 0, b = 0;
    for (size_t layout = 0; layout < pair.a.size(); ++layout) {
      a += MeanLog(pair.a[layout]) / static_cast<double>(pair.a.size());
      b += MeanLog(pair.b[layout]) / static_cast<double>(pair.b.size());
    }
    before.push_back(a);
    after.push_back(b);
    ratios.push_back(b - a);
  }
  ComparisonLine line;
  line.name = std::move(name);
  line.count_a = line.count_b = ratios.size();
  line.mean_a = std::exp(Mean(before));
  line.mean_b = std::exp(Mean(after));
  const PairedTest test = TestPairs(ratios, 1 - options.alpha);
  line.change = std::expm1(test.mean);
  line.low = std::expm1(test.low);
  line.high = std::expm1(test.high);
  line.p = test.p;
  line.kind = ratios.size() < kFewestSizes ? ChangeKind::untested : ChangeKind::none;
  return line;
}

std::string Plural(size_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

void AddFaults(const BenchmarkSide& side, bool of_b, ProfileComparison& out) {
  for (const BenchmarkRun& run : side.runs) {
    const std::string who = (of_b ? "B: " : "A: ") + (run.operation.empty() ? "the benchmark" : run.operation);
    size_t wrong = 0;
    for (const BenchmarkLine& line : run.lines) wrong += line.out_of_place.wrong > 0 || line.in_place.wrong > 0;
    std::vector<std::string>& words = of_b ? out.faults : out.remarks;
    if (wrong > 0 || run.failed_checks > 0)
      words.push_back(
          who + " computes wrong results" +
          (wrong > 0 ? " (" + std::to_string(wrong) + " of " + Plural(run.lines.size(), "line") + ")" : ""));
    if (!run.failure.empty())
      words.push_back(who + " stopped with an error: " + run.failure);
    else if (!run.concluded)
      out.remarks.push_back(who + " did not finish, or its output is cut");
  }
}

std::string Setting(const BenchmarkSide& side, std::string (*of)(const BenchmarkRun&)) {
  std::set<std::string> values;
  for (const BenchmarkRun& run : side.runs)
    if (const std::string value = of(run); !value.empty()) values.insert(value);
  std::string out;
  size_t named = 0;
  for (const std::string& value : values) out += (named++ == 0 ? "" : named == values.size() ? " and " : ", ") + value;
  return out;
}

std::string RanksOf(const BenchmarkRun& run) { return run.ranks > 0 ? std::to_string(run.ranks) : std::string(); }
std::string DeviceOf(const BenchmarkRun& run) { return run.devices.empty() ? std::string() : run.devices[0].name; }

void AddSettings(const BenchmarkSide& a, const BenchmarkSide& b, ProfileComparison& out) {
  struct Aspect {
    const char* name;
    std::string (*of)(const BenchmarkRun&);
  };
  const Aspect aspects[] = {{"the numbers of ranks differ", RanksOf},
                            {"the NCCL releases differ", [](const BenchmarkRun& run) { return run.library; }},
                            {"the devices differ", DeviceOf},
                            {"the clocks differ", [](const BenchmarkRun& run) {
                               return std::string(run.host_times ? "times of the host" : "times of the GPU");
                             }}};
  for (const Aspect& aspect : aspects) {
    const std::string in_a = Setting(a, aspect.of), in_b = Setting(b, aspect.of);
    if (in_a != in_b && !in_a.empty() && !in_b.empty())
      out.remarks.push_back(std::string(aspect.name) + ": " + in_a + " in A; " + in_b + " in B");
  }
}

// What a faster B may be owed to: "; but the numbers of ranks (4; 8) and the devices (H200; A100) differ".
std::string MachineWords(const BenchmarkSide& a, const BenchmarkSide& b) {
  std::string out;
  const auto add = [&](const char* name, std::string (*of)(const BenchmarkRun&)) {
    const std::string in_a = Setting(a, of), in_b = Setting(b, of);
    if (in_a == in_b || in_a.empty() || in_b.empty()) return;
    out += (out.empty() ? "; but " : " and ") + std::string(name) + " (" + in_a + "; " + in_b + ")";
  };
  add("the numbers of ranks", RanksOf);
  add("the devices", DeviceOf);
  return out.empty() ? "" : out + " differ";
}

void AddMethod(Samples samples, size_t runs_a, size_t runs_b, ProfileComparison& out) {
  const std::string counts = Plural(runs_a, "run") + " of A, " + Plural(runs_b, "run") + " of B";
  if (samples == Samples::runs)
    out.remarks.push_back(counts + ": the runs are the samples of Welch's test for each size and each size class");
  if (samples == Samples::iterations)
    out.remarks.push_back(counts +
                          ": the iterations of one launch are the samples, so a shift between launches counts as a "
                          "change; repeat the runs to be sure");
  if (samples == Samples::single)
    out.remarks.push_back(counts +
                          ": the noise of a single size is unknown. Only size classes are judged (a t-test on the "
                          "logarithms of the time ratios), and only differences of " +
                          std::to_string(static_cast<int>(std::lround(out.options.min_change * 100))) +
                          " % or more count, because two launches can differ as a whole; record three or more runs on "
                          "each side");
}

// "B is slower: all_reduce above 4 MiB, 6 sizes (+15.5 %)"; size classes say more than single sizes.
std::string ChangeWords(const ProfileComparison& out, ChangeKind kind) {
  const ComparisonLine* worst = nullptr;
  size_t others = 0;
  for (const bool summary : {true, false}) {
    for (const ComparisonLine& line : out.lines) {
      if (line.kind != kind || line.summary != summary) continue;
      ++others;
      if (!worst || (worst->summary == summary && std::fabs(line.change) > std::fabs(worst->change))) worst = &line;
    }
  }
  if (!worst) return "";
  char percent[32];
  std::snprintf(percent, sizeof percent, " (%+.1f %%)", worst->change * 100);
  return std::string(Name(kind)) + ": " + worst->name + percent +
         (others > 1 ? " and " + Plural(others - 1, "other line") : "");
}

// "; largest single difference: all_reduce 1 GiB, +154 %, not tested": of values without a test a reader still wants to
// know the worst.
std::string LargestDifference(const ProfileComparison& out) {
  const ComparisonLine* largest = nullptr;
  for (const ComparisonLine& line : out.lines)
    if (line.kind == ChangeKind::untested && std::isfinite(line.change) && line.count_a > 0 && line.count_b > 0 &&
        std::fabs(line.change) >= out.options.min_change &&
        (!largest || std::fabs(std::log1p(line.change)) > std::fabs(std::log1p(largest->change))))
      largest = &line;
  if (!largest) return "";
  char percent[32];
  std::snprintf(percent, sizeof percent, ", %+.0f %%, not tested", largest->change * 100);
  return "; largest single difference: " + largest->name + percent;
}

std::string Headline(const ProfileComparison& out) {
  if (!out.faults.empty()) return out.faults.front();
  if (out.tested == 0) return "too few values";
  const std::string slower = ChangeWords(out, ChangeKind::slower), faster = ChangeWords(out, ChangeKind::faster);
  if (slower.empty() && faster.empty()) return std::string(Name(ChangeKind::none)) + LargestDifference(out);
  return "B is " + slower + (slower.empty() || faster.empty() ? "" : "; ") + faster;
}

size_t MostRuns(const BenchmarkTable& table) {
  size_t most = 0;
  for (const auto& [key, samples] : table) most = std::max(most, samples.runs.size());
  return most;
}

void AddLines(const BenchmarkTable& a, const BenchmarkTable& b, const BenchmarkNaming& naming, Samples samples,
              ProfileComparison& out) {
  std::vector<ComparisonLine> single;
  const auto series = [&](const BenchmarkKey& key, const BenchmarkSamples& of) {
    return ProfileSeries{NameLine(key, naming), samples == Samples::iterations ? of.iterations : of.runs, 0};
  };
  for (const auto& [key, of] : a) {
    const auto other = b.find(key);
    if (other == b.end()) {
      single.push_back(LineOfOneSide(series(key, of), true));
      continue;
    }
    ComparisonLine line = CompareSeries(series(key, of), series(key, other->second), out.options);
    if (!of.bus_gbs.empty()) line.bus_gbs_a = Mean(of.bus_gbs);
    if (!other->second.bus_gbs.empty()) line.bus_gbs_b = Mean(other->second.bus_gbs);
    out.lines.push_back(std::move(line));
  }
  for (const auto& [key, of] : b)
    if (!a.contains(key)) single.push_back(LineOfOneSide(series(key, of), false));
  out.lines.insert(out.lines.end(), single.begin(), single.end());
}

}  // namespace

Result<ProfileComparison> CompareBenchmarks(const BenchmarkSide& a, const BenchmarkSide& b,
                                            const ComparisonOptions& options) {
  ProfileComparison out;
  out.name_a = a.name;
  out.name_b = b.name;
  out.options = options;
  const BenchmarkVariants of_a = FindVariants(a.runs), of_b = FindVariants(b.runs);
  const BenchmarkVariants variants{of_a.ranks || of_b.ranks, of_a.ways || of_b.ways};
  const BenchmarkTable in_a = CollectLines(a.runs, variants), in_b = CollectLines(b.runs, variants);
  const BenchmarkNaming naming = FindNaming(in_a, in_b);
  const Samples samples = FindSamples(in_a, in_b);
  if (samples == Samples::single) out.options.min_change = std::max(options.min_change, kLaunchShift);
  for (const auto& [key, sizes] : CollectClasses(in_a, in_b)) {
    const std::string name = NameClass(sizes.begin()->second.key, naming, sizes.size());
    if (samples == Samples::iterations) continue;
    out.lines.push_back(samples == Samples::single ? CompareByRatios(name, sizes, out.options)
                                                   : CompareSeries({name, ClassTimes(sizes, true), 0},
                                                                   {name, ClassTimes(sizes, false), 0}, out.options));
    out.lines.back().summary = true;
  }
  AddLines(in_a, in_b, naming, samples, out);
  const bool common = std::any_of(out.lines.begin(), out.lines.end(), [](const ComparisonLine& line) {
    return line.kind != ChangeKind::only_a && line.kind != ChangeKind::only_b;
  });
  JudgeLines(out);
  AddFaults(a, false, out);
  AddFaults(b, true, out);
  AddSettings(a, b, out);
  AddMethod(samples, MostRuns(in_a), MostRuns(in_b), out);
  out.headline = Headline(out);
  if (out.faults.empty() && out.slower + out.faster > 0) out.headline += MachineWords(a, b);
  if (!common && out.faults.empty())
    return Error{"the two sides have no operation and size in common",
                 "run both with the same program, sizes and type (-b, -e, -f, -d)"};
  return out;
}

}  // namespace tacet
