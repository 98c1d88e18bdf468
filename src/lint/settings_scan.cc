// SPDX-License-Identifier: Apache-2.0
#include "lint/settings_scan.h"

#include <string>

#include "base/json_reader.h"
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "lint/assignment_scan.h"

namespace tacet {
namespace {

constexpr size_t kMostVariables = 100'000;  // an environment has hundreds

bool IsNameLetter(char c) { return c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || IsDigit(c); }

// NAME of "NAME=value" at the beginning of a line; empty: none.
std::string_view LeadingName(std::string_view line) {
  size_t n = 0;
  while (n < line.size() && IsNameLetter(line[n])) ++n;
  return n > 0 && n < line.size() && line[n] == '=' && !IsDigit(line[0]) ? line.substr(0, n) : "";
}

std::string_view BaseName(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

// NCCL takes a line apart at its first '=' and trims nothing; '#' is a comment only at the very beginning.
// NCCL_DEBUG=INFO
// NCCL_SOCKET_IFNAME=eth0
GivenEnvironment ReadConf(std::string_view name, std::string_view text) {
  GivenEnvironment conf;
  conf.source = name.starts_with(".") ? EnvironmentSource::user_conf : EnvironmentSource::host_conf;
  LineReader lines(text);
  for (std::string_view line; lines.Next(&line) && conf.variables.size() < kMostVariables;) {
    const size_t equals = line.find('=');
    if (line.starts_with("#") || equals == std::string_view::npos) continue;
    std::string value(line.substr(equals + 1));
    // The reader took the carriage return off; releases before 2.30 keep it.
    if (text.substr(lines.offset()).substr(line.size()).starts_with("\r")) value += '\r';
    conf.variables.push_back({std::string(line.substr(0, equals)), std::move(value), lines.number()});
  }
  return conf;
}

// The output of `env`: lines begin with a name and '=', and one of the variables that every process has is there. What
// follows a value with line breaks belongs to it.
bool IsDump(std::string_view text) {
  size_t pairs = 0, others = 0;
  bool of_a_process = false;
  LineReader lines(text);
  for (std::string_view line; lines.Next(&line);) {
    if (line.empty()) continue;
    const std::string_view name = LeadingName(line);
    ++(name.empty() ? others : pairs);
    of_a_process |= name == "PATH" || name == "HOME" || name == "PWD" || name == "SHLVL";
    if (line.starts_with("#!")) return false;
  }
  return of_a_process && pairs > others;
}

GivenEnvironment ReadDump(std::string_view text) {
  GivenEnvironment dump;
  dump.source = EnvironmentSource::dump;
  LineReader lines(text);
  for (std::string_view line; lines.Next(&line) && dump.variables.size() < kMostVariables;)
    if (const std::string_view name = LeadingName(line); !name.empty())
      dump.variables.push_back({std::string(name), std::string(line.substr(name.size() + 1)), lines.number()});
  return dump;
}

// {"schema":"tacet.manifest.v1", ... "environment":{"set":{...},"kept":{...},"inherited":{...}}, ...}
std::optional<GivenEnvironment> ReadManifest(std::string_view text) {
  JsonValue root;
  bool cut = false;
  if (!text.starts_with("{\"schema\":\"tacet.manifest.v1\"") || !ParseJson(text, &root, &cut)) return std::nullopt;
  GivenEnvironment manifest;
  manifest.source = EnvironmentSource::manifest;
  if (const JsonValue* hosts = root.Find("hosts"); hosts != nullptr && !hosts->items.empty())
    manifest.host = hosts->items[0].text;
  if (const JsonValue* environment = root.Find("environment"))
    for (const JsonMember& part : environment->members)
      for (const JsonMember& variable : part.value.members)
        manifest.variables.push_back({variable.name, variable.value.text, 1});
  return manifest;
}

}  // namespace

GivenEnvironment ReadEnvironBlock(std::string_view block) {
  GivenEnvironment environment;
  environment.source = EnvironmentSource::process;
  while (!block.empty() && environment.variables.size() < kMostVariables) {
    const std::string_view entry = TakeUntil(block, '\0');
    if (!block.empty()) block.remove_prefix(1);
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    environment.variables.push_back({std::string(entry.substr(0, equals)), std::string(entry.substr(equals + 1))});
  }
  return environment;
}

std::string RankWordsOf(const GivenEnvironment& environment) {
  for (const std::string_view name : {"RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"})
    for (const GivenVariable& variable : environment.variables)
      if (variable.name == name && !variable.value.empty() && variable.value.size() < 10 &&
          variable.value.find_first_not_of("0123456789") == std::string::npos)
        return "rank " + variable.value;
  return "";
}

std::optional<GivenEnvironment> ScanSettings(std::string_view file_name, std::string_view text) {
  if (auto manifest = ReadManifest(text)) return manifest;
  const std::string_view name = BaseName(file_name);
  std::optional<GivenEnvironment> found;
  if (name.ends_with("nccl.conf")) {
    found = ReadConf(name, text);
  } else if (text.substr(0, 4096).find('\0') != std::string_view::npos) {
    found = ReadEnvironBlock(text);  // a copy of /proc/PID/environ; anything else with NULs has no such pairs
    std::erase_if(found->variables,
                  [](const GivenVariable& variable) { return LeadingName(variable.name + "=").empty(); });
    bool of_a_process = false;
    for (const GivenVariable& variable : found->variables)
      of_a_process |= variable.name == "PATH" || variable.name == "HOME";
    if (!of_a_process) return std::nullopt;
  } else if (IsDump(text)) {
    found = ReadDump(text);
  } else {
    found = GivenEnvironment{};
    found->source = EnvironmentSource::script;
    bool any = false;
    found->variables = ScanAssignments(text, kMostVariables, &any);
    if (!any) return std::nullopt;
  }
  found->file = file_name;
  if (found->holder.empty()) found->holder = RankWordsOf(*found);
  return found;
}

}  // namespace tacet
