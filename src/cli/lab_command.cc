// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/spelling.h"
#include "launch/lab/lab_run.h"
#include "render/text_layout.h"

namespace tacet {

extern const Command kLabCommand;

namespace {

std::string ShowCauses(const LabFault& fault) {
  std::string text;
  for (size_t i = 0; i < fault.causes.size(); ++i)
    text.append(i == 0 ? "" : i + 1 == fault.causes.size() ? " or " : ", ").append(fault.causes[i]);
  return text.empty() ? "nothing is reported" : text;
}

std::string_view ShowNeeds(const LabFault& fault) {
  switch (fault.needs) {
    case LabFault::Needs::nothing: return "";
    case LabFault::Needs::nccl: return " [needs NCCL and a GPU]";
    case LabFault::Needs::gloo: return " [gloo]";
    case LabFault::Needs::network_namespaces: return " [needs root: network namespaces]";
    case LabFault::Needs::memory_cgroup: return " [needs root: a memory cgroup]";
  }
  return "";
}

int ListFaults() {
  // People read it: a width that is asked for counts without a terminal, too.
  TextPage page(std::getenv("COLUMNS") ? static_cast<size_t>(TerminalWidth()) : ListWidth(), false);
  page.Paragraph("FAULT            ", "what one rank does, or what happens to the job");
  page.Paragraph(std::string(17, ' ') + "-> ", "the cause that tacet diagnose must report");
  page.Blank();
  for (const LabFault& fault : LabFaults()) {
    std::string name(fault.name);
    name.resize(std::max<size_t>(name.size() + 1, 17), ' ');
    page.Paragraph(name, std::string(fault.what) + std::string(ShowNeeds(fault)));
    page.Paragraph(std::string(17, ' ') + "-> ", ShowCauses(fault));
  }
  return WriteOutput("", page.Take()) ? kHealthy : kUsage;
}

struct LabWork {
  LabOptions options;
  LabPython python;
  std::string folder;
};

Result<LabWork> ReadLabOptions(const Options& options) {
  LabWork work;
  auto ranks = options.Number("--ranks", 4, 2, 64);
  if (!ranks) return ranks.error();
  work.options.ranks = static_cast<int>(*ranks);
  auto seed = options.Number("--seed", 1, 0, 1'000'000);
  if (!seed) return seed.error();
  work.options.seed = static_cast<uint64_t>(*seed);
  auto hang_after = options.Number("--hang-after", 8, 4, 600);
  if (!hang_after) return hang_after.error();
  work.options.hang_after_s = static_cast<int>(*hang_after);
  work.options.backend = options.Value("--backend").value_or("auto");
  auto python = FindLabPython(options.Value("--python").value_or(""));
  if (!python) return python.error();
  work.python = *python;
  auto backend = ChooseLabBackend(work.options.backend, work.python);
  if (!backend) return backend.error();
  work.options.backend = *backend;
  std::error_code error;
  work.folder = std::filesystem::absolute(options.Value("--output").value_or("tacet-lab"), error).string();
  if (error) return Error{"cannot use the folder of --output: " + error.message(), ""};
  return work;
}

// Everything of a trial lies in one folder: "tacet-lab/killed-1".
Result<LabOutcome> Try(const LabWork& work, const LabFault& fault, uint64_t seed, bool show) {
  LabOptions options = work.options;
  options.seed = seed;
  options.folder = work.folder + "/" + std::string(fault.name) + "-" + std::to_string(seed);
  if (show)
    options.show = [](std::string_view text) {
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    };
  return RunLabFault(fault, options, work.python);
}

std::string ShowSeconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f s", seconds);
  return seconds < 0 ? "-" : text;
}

// "right   stuck-sleep      seed 1  rank 2  12 s  rank-stuck-on-host"
std::string ShowOutcome(const LabFault& fault, uint64_t seed, const LabOutcome& outcome) {
  std::string name(fault.name);
  name.resize(std::max<size_t>(name.size() + 1, 17), ' ');
  if (!outcome.skipped.empty()) return "skipped " + name + outcome.skipped + "\n";
  std::string line = (outcome.wrong.empty() ? "right   " : "WRONG   ") + name + "seed " + std::to_string(seed);
  if (fault.who == LabFault::Who::chosen) line += "  rank " + std::to_string(outcome.rank);
  if (outcome.verdict_after_s >= 0) line += "  after " + ShowSeconds(outcome.verdict_after_s);
  line += "  " + (outcome.wrong.empty()
                      ? (outcome.verdict.cause.empty() ? std::string("nothing reported") : outcome.verdict.cause)
                      : outcome.wrong);
  return line + "\n";
}

Error NoSuchFault(const std::string& name) {
  std::vector<std::string_view> known;
  for (const LabFault& fault : LabFaults()) known.push_back(fault.name);
  return {"there is no fault '" + name + "'", DidYouMean(name, known) + "'tacet lab list' lists all faults"};
}

int RunOne(const LabWork& work, const std::string& name) {
  const LabFault* fault = FindLabFault(name);
  if (!fault) return Complain(NoSuchFault(name));
  std::printf("tacet lab: %s: %s; %d ranks, %s, PyTorch %s\n", name.c_str(), std::string(fault->what).c_str(),
              work.options.ranks, work.options.backend.c_str(), work.python.torch_version.c_str());
  std::fflush(stdout);
  auto outcome = Try(work, *fault, work.options.seed, true);
  if (!outcome) return Complain(outcome.error());
  std::printf("\n%s", ShowOutcome(*fault, work.options.seed, *outcome).c_str());
  if (!outcome->skipped.empty()) return kHealthy;
  if (outcome->verdict.given) std::printf("verdict:  %s\n", outcome->verdict.headline.c_str());
  std::printf("evidence: %s\n", outcome->run_folder.c_str());
  if (outcome->verdict.given) std::printf("page:     %s/report.html\n", outcome->run_folder.c_str());
  return outcome->wrong.empty() ? kHealthy : kFindings;
}

Result<std::vector<const LabFault*>> PickFaults(const Options& options) {
  std::vector<const LabFault*> picked;
  for (std::string names : options.Values("--faults"))
    for (size_t comma = 0; !names.empty(); names.erase(0, comma == std::string::npos ? comma : comma + 1)) {
      comma = names.find(',');
      const LabFault* fault = FindLabFault(names.substr(0, comma));
      if (!fault) return NoSuchFault(names.substr(0, comma));
      picked.push_back(fault);
    }
  if (picked.empty())
    for (const LabFault& fault : LabFaults()) picked.push_back(&fault);
  return picked;
}

int Score(const LabWork& work, const Options& options) {
  auto faults = PickFaults(options);
  if (!faults) return Complain(faults.error());
  auto seeds = options.Number("--seeds", 3, 1, 1000);
  if (!seeds) return Complain(seeds.error());
  size_t right = 0, tried = 0, skipped = 0;
  double slowest = -1;
  std::string wrong;
  for (const LabFault* fault : *faults)
    for (long i = 0; i < *seeds; ++i) {
      const uint64_t seed = work.options.seed + static_cast<uint64_t>(i);
      auto outcome = Try(work, *fault, seed, false);
      if (!outcome) return Complain(outcome.error());
      const std::string line = ShowOutcome(*fault, seed, *outcome);
      std::fputs(line.c_str(), stdout);
      std::fflush(stdout);
      if (!outcome->skipped.empty()) {
        ++skipped;
        break;
      }
      ++tried;
      right += outcome->wrong.empty();
      slowest = std::max(slowest, outcome->verdict_after_s);
      if (!outcome->wrong.empty()) wrong += "  " + outcome->run_folder + "\n    " + outcome->verdict.headline + "\n";
    }
  std::printf("\n%zu of %zu right", right, tried);
  if (skipped > 0) std::printf(", %zu faults skipped", skipped);
  std::printf("; %d ranks, %s, PyTorch %s; slowest verdict %s after the fault\n", work.options.ranks,
              work.options.backend.c_str(), work.python.torch_version.c_str(), ShowSeconds(slowest).c_str());
  if (!wrong.empty()) std::printf("Not right:\n%s", wrong.c_str());
  return right == tried ? kHealthy : kFindings;
}

int RunLab(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = arguments;
  std::replace(words.begin(), words.end(), std::string("--out"), std::string("--output"));  // its name in 0.1
  auto options = Options::Parse(words, kLabCommand.help);
  if (!options) return Complain(options.error());
  const std::vector<std::string>& rest = options->rest();
  const std::string what = rest.empty() ? "" : rest[0];
  if (what == "list" && rest.size() == 1) return ListFaults();
  const bool run = what == "run" && rest.size() == 2, score = what == "score" && rest.size() == 1;
  if (!run && !score) return Complain({"lab takes list, run FAULT, or score", "tacet lab run stuck-sleep"});
  // Before PyTorch is looked for, which takes seconds.
  if (run && !FindLabFault(rest[1])) return Complain(NoSuchFault(rest[1]));
  auto work = ReadLabOptions(*options);
  if (!work) return Complain(work.error());
  return run ? RunOne(*work, rest[1]) : Score(*work, *options);
}

}  // namespace

const Command kLabCommand = {"lab", "Cause a known fault in a real PyTorch job and check the verdict",
                             R"(tacet lab list
tacet lab run FAULT [options]
tacet lab score [--faults A,B,...] [--seeds N] [options]

Starts a small training job with your own PyTorch (1.13 or newer) through 'tacet run', makes one rank fail in
a known way, and compares the verdict with the planted fault. Without a GPU the ranks use gloo; on one GPU
each rank gets its own NCCL_HOSTID, so that NCCL treats it as a node. The seed chooses rank and step.
'run' shows the job and its verdict; 'score' tries all faults and prints a table.

      --ranks N         processes (default 4)
      --backend WHAT    auto (default), nccl or gloo
      --seed S          the first seed (default 1)
      --seeds N         seeds per fault for 'score' (default 3)
      --faults A,B      only these, for 'score'
      --hang-after S    as --hang-after of 'tacet run' (default here: 8 s)
      --python PROGRAM  a Python with PyTorch (default: python3 in PATH, then /usr/bin/python3)
  -o, --output FOLDER   where all files go (default: tacet-lab)

Exit code:
  0  every verdict was right
  1  at least one was not
  2  wrong usage or no PyTorch
  3  internal error

Examples:
  tacet lab run stuck-lock
  tacet lab score --faults killed,frozen,raises --seeds 1
)",
                             RunLab};

}  // namespace tacet
