// SPDX-License-Identifier: Apache-2.0
#include "launch/lint_sources.h"

#include <unistd.h>

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/mapped_file.h"
#include "base/text_scan.h"
#include "evidence/find_files.h"
#include "launch/run_folder.h"
#include "lint/settings_scan.h"
#include "model/assembly/assembly.h"

extern "C" char** environ;

namespace tacet {
namespace {

constexpr size_t kMostScriptBytes = size_t{8} << 20;  // no script is longer
constexpr size_t kMostProcesses = 4096;
constexpr const char* kInputName = "<stdin>";

void AddChildren(int64_t pid, std::set<int64_t>& pids) {
  if (!pids.insert(pid).second || pids.size() > kMostProcesses) return;
  const std::string path = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children";
  const std::string text = ReadSmallFile(path);
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view word = TakeWord(rest);
    int64_t child = 0;
    if (!TakeNumber(word, &child)) break;
    AddChildren(child, pids);
  }
}

std::string SpeakerWords(const Process& process) {
  if (process.rank.value >= 0) return "rank " + std::to_string(process.rank.value);
  if (process.pid < 0) return process.host;
  return "process " + std::to_string(process.pid) + (process.host.empty() ? "" : " on " + process.host);
}

// One environment per process that prints its settings, and file: lines are cited with the file in which they stand.
void TakeLogged(const Incident& incident, size_t job, LintedPaths& out) {
  std::map<std::pair<uint32_t, FileId>, GivenEnvironment> by_process;
  std::map<uint32_t, ReleaseNumber> releases;
  std::map<uint32_t, FileId> began;
  std::map<uint32_t, std::set<FileId>> files_of;
  std::set<uint32_t> done;
  for (const Event& event : incident.events) {
    if (event.kind == EventKind::nccl_version)
      releases.try_emplace(event.speaker, ParseReleaseNumber(event.As<Version>().number));
    if (event.kind == EventKind::init_started || event.kind == EventKind::init_completed)
      began.try_emplace(event.speaker, event.source.file);
    if (event.kind == EventKind::init_completed) done.insert(event.speaker);
    if (event.kind != EventKind::environment) continue;
    GivenEnvironment& environment = by_process[{event.speaker, event.source.file}];
    files_of[event.speaker].insert(event.source.file);
    environment.source = EnvironmentSource::log;
    environment.job = job;
    const size_t file = static_cast<size_t>(event.source.file);
    if (environment.file.empty() && file < incident.files.size()) environment.file = incident.files[file].path;
    const auto& setting = event.As<EnvironmentSetting>();
    environment.variables.push_back({setting.name, setting.value, event.source.line});
  }
  // A process that logs its setup and no variable beside processes that log theirs has none: an environment too.
  for (const auto& [speaker, file] : by_process.empty() ? std::map<uint32_t, FileId>() : began) {
    if (speaker >= incident.processes.size() || files_of.contains(speaker)) continue;
    GivenEnvironment& environment = by_process[{speaker, file}];
    environment.source = EnvironmentSource::log;
    environment.job = job;
    if (static_cast<size_t>(file) < incident.files.size())
      environment.file = incident.files[static_cast<size_t>(file)].path;
  }
  for (auto& [key, environment] : by_process) {
    const uint32_t speaker = key.first;
    // What one of its files does not show, another one may.
    const bool whole = files_of[speaker].size() < 2;
    environment.setup_began = whole && began.contains(speaker);
    environment.setup_done = whole && done.contains(speaker);
    if (speaker < incident.processes.size()) {
      environment.holder = SpeakerWords(incident.processes[speaker]);
      environment.host = incident.processes[speaker].host;
    }
    // NCCL prints its version on rank 0 alone.
    if (const auto found = releases.find(speaker); found != releases.end())
      environment.nccl = found->second;
    else if (!releases.empty())
      environment.nccl = releases.begin()->second;
    out.environments.push_back(std::move(environment));
  }
}

void TakeScript(const std::string& shown, std::string_view bytes, LintedPaths& out) {
  std::optional<GivenEnvironment> found;
  if (bytes.size() <= kMostScriptBytes) found = ScanSettings(shown, bytes);
  if (!found) {
    out.not_understood.push_back(shown);
    return;
  }
  out.understood = true;
  out.environments.push_back(std::move(*found));
}

void TakeScripts(const std::vector<std::string>& paths, const std::set<std::string>& known, LintedPaths& out) {
  for (const FoundFile& file : FindFiles(paths)) {
    if (known.contains(file.shown) || !file.problem.empty()) continue;
    const auto inside = known.lower_bound(file.shown);  // an archive whose members were read
    if (inside != known.end() && inside->starts_with(file.shown)) continue;
    if (auto opened = MappedFile::Open(file.path))
      TakeScript(file.shown, opened->bytes(), out);
    else
      out.not_understood.push_back(file.shown);
  }
}

}  // namespace

GivenEnvironment ReadOwnEnvironment() {
  GivenEnvironment environment;
  environment.source = EnvironmentSource::process;
  environment.host = HostName();
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      environment.variables.push_back({std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
  }
  return environment;
}

std::vector<GivenEnvironment> ReadNcclConfs(const GivenEnvironment& environment) {
  std::string own, home;
  for (const GivenVariable& variable : environment.variables) {
    if (variable.name == "NCCL_CONF_FILE") own = variable.value;
    if (variable.name == "HOME") home = variable.value;
  }
  std::vector<std::pair<std::string, EnvironmentSource>> files;
  if (!own.empty())
    files.emplace_back(own, EnvironmentSource::user_conf);
  else if (!home.empty())
    files.emplace_back(home + "/.nccl.conf", EnvironmentSource::user_conf);
  files.emplace_back("/etc/nccl.conf", EnvironmentSource::host_conf);
  std::vector<GivenEnvironment> confs;
  for (const auto& [path, source] : files) {
    const std::string text = ReadSmallFile(path);
    if (text.empty()) continue;
    auto conf = ScanSettings("nccl.conf", text);
    if (!conf) continue;
    conf->source = source;
    conf->file = path;
    conf->host = environment.host;
    confs.push_back(std::move(*conf));
  }
  return confs;
}

Result<std::vector<GivenEnvironment>> ReadProcessEnvironments(const std::vector<int64_t>& pids) {
  std::set<int64_t> all;
  for (const int64_t pid : pids) AddChildren(pid, all);
  std::vector<GivenEnvironment> environments;
  for (const int64_t pid : all) {
    const std::string block = ReadSmallFile("/proc/" + std::to_string(pid) + "/environ");
    if (block.empty()) continue;
    GivenEnvironment environment = ReadEnvironBlock(block);
    environment.holder = RankWordsOf(environment);
    environment.holder += (environment.holder.empty() ? "process " : ", process ") + std::to_string(pid);
    environment.host = HostName();
    environments.push_back(std::move(environment));
  }
  if (environments.empty())
    return Error{"the environment of these processes cannot be read",
                 "they must be running and belong to this user; 'ps -ef' lists them"};
  return environments;
}

Result<LintedPaths> ReadLintPaths(const std::vector<std::string>& paths, const LoadOptions& options) {
  std::vector<std::string> files = paths;
  const bool reads_input = std::erase(files, "-") > 0;
  std::string input;
  if (reads_input) {
    auto read = ReadStandardInput(options.max_file_bytes);
    if (!read) return read.error();
    input = std::move(*read);
  }
  Result<Loaded> loaded = Loaded{};
  if (!files.empty()) loaded = LoadEvidence(files, options);
  if (!loaded && !loaded.error().message.ends_with(kNoSuchPath)) return loaded.error();
  if (!loaded)
    return Error{loaded.error().message,
                 "name a job script, a Dockerfile, the output of env, a folder of logs, or '-' "
                 "for standard input"};
  if (reads_input) loaded->fragments.push_back(ReadFragment(kInputName, input, options));
  LintedPaths out;
  out.missing = loaded->missing;
  out.nothing_read = loaded->unreadable > 0 && loaded->unreadable == loaded->fragments.size();
  std::set<std::string> known;
  std::vector<Fragment> fragments;
  for (Fragment& fragment : loaded->fragments) {
    // The settings in a run's manifest are read below, as those of a script.
    if (fragment.format.empty() || fragment.bytes.understood == 0 || fragment.tops_a_run) continue;
    known.insert(fragment.path);
    out.understood = true;
    fragments.push_back(std::move(fragment));
  }
  size_t job = 0;
  for (const Incident& incident : Assemble(std::move(fragments))) TakeLogged(incident, ++job, out);
  TakeScripts(files, known, out);
  if (reads_input && !known.contains(kInputName)) TakeScript(kInputName, input, out);
  return out;
}

int CountHosts(const std::vector<GivenEnvironment>& environments) {
  std::set<std::string> hosts;
  for (const GivenEnvironment& environment : environments) {
    if (environment.source != EnvironmentSource::log) return 0;  // a script does not tell where it runs
    if (environment.host.empty()) return 0;
    hosts.insert(environment.host);
  }
  return static_cast<int>(hosts.size());
}

}  // namespace tacet
