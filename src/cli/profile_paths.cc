// SPDX-License-Identifier: Apache-2.0
#include "cli/profile_paths.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/parse_double.h"
#include "cli/console.h"
#include "model/assembly/assembly.h"

namespace tacet {
namespace {

double Suffix(std::string_view text) {
  if (text.empty()) return 1;
  if (text.size() != 1) return 0;
  switch (text[0]) {
    case 'k':
    case 'K': return 1e3;
    case 'm':
    case 'M': return 1e6;
    case 'b':
    case 'B':
    case 'g':
    case 'G': return 1e9;
    case 't':
    case 'T': return 1e12;
    default: return 0;
  }
}

}  // namespace

Result<double> ParseQuantity(std::string_view text) {
  double value = 0;
  const auto [end, error] = ParseDouble(text.data(), text.data() + text.size(), value);
  std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  const double factor = Suffix(rest);
  if (error != std::errc() || factor == 0 || !std::isfinite(value) || value <= 0)
    return Error{"'" + std::string(text) + "' is not a number above zero", "for example 4096, 7e9, 7B or 64k"};
  return value * factor;
}

bool HasTimes(const Incident& job) {
  if (!job.timelines.empty() || !job.pipeline_traces.empty() || !job.measurements.empty()) return true;
  for (const CallStream& stream : job.streams)
    if (stream.source == CallSource::flight_recorder) return true;
  return false;
}

Result<std::vector<Incident>> LoadAllJobs(const std::vector<std::string>& paths, LoadOptions load) {
  ProgressLine progress("reading");
  load.progress = [&](size_t done, size_t total) { progress.Update(done, total); };
  auto loaded = LoadEvidence(paths, load);
  constexpr std::string_view kName = "name folders with the traces of all ranks, or outputs of benchmarks";
  if (!loaded && loaded.error().message.ends_with(kNoSuchPath))
    return Error{loaded.error().message, std::string(kName)};
  if (!loaded) return loaded.error();
  if (!loaded->missing.empty())
    return Error{"'" + loaded->missing.front() + "': no such file or folder", std::string(kName)};
  if (loaded->unreadable > 0 && loaded->unreadable == loaded->fragments.size())
    return Error{"nothing could be read " + InPaths(paths), std::string(kNothingRead)};
  return Assemble(std::move(loaded->fragments));
}

Result<std::vector<Incident>> LoadJobs(const std::vector<std::string>& paths, LoadOptions load) {
  auto jobs = LoadAllJobs(paths, std::move(load));
  if (!jobs) return jobs;
  const bool benchmarks =
      std::any_of(jobs->begin(), jobs->end(), [](const Incident& job) { return !job.benchmark_runs.empty(); });
  std::erase_if(*jobs, [](const Incident& job) { return !HasTimes(job); });
  if (jobs->empty() && benchmarks)
    return Error{"this is the output of a benchmark, not of a job with steps",
                 "'tacet compare A B' compares two of them, 'tacet bandwidth' judges one"};
  if (jobs->empty())
    return Error{"no timing data was found " + InPaths(paths),
                 "torch.profiler traces of all ranks over a few steps work best; 'tacet formats' lists what is read"};
  return jobs;
}

}  // namespace tacet
