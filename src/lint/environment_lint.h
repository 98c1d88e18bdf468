// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lint/variable_table.h"

namespace tacet {

// Where variables were found.
enum class EnvironmentSource {
  process,    // /proc/PID/environ, or our own: complete, values exact
  dump,       // the output of `env`: the same
  manifest,   // of `tacet run`: what it set and what it found
  log,        // NCCL's "set by environment to": what it read, and only that
  script,     // assignments in a script, a Dockerfile, YAML, Python
  user_conf,  // ~/.nccl.conf or NCCL_CONF_FILE: loses against the environment
  host_conf,  // /etc/nccl.conf: loses against both
};
std::string_view Name(EnvironmentSource source);
inline bool IsComplete(EnvironmentSource source) {
  return source == EnvironmentSource::process || source == EnvironmentSource::dump;
}

struct GivenVariable {
  std::string name, value;
  uint32_t line = 0;         // 0: none
  bool value_known = true;   // false: "$RANK" and other things that only a shell knows
  bool conditional = false;  // inside a block: it may not happen
};

// The variables of one process, or of one file.
struct GivenEnvironment {
  EnvironmentSource source = EnvironmentSource::process;
  std::string file;    // "job.sh"; empty: none
  std::string holder;  // "rank 3", "process 4711"; empty: the file itself
  std::string host;    // empty: not known
  std::vector<GivenVariable> variables;
  ReleaseNumber nccl = 0;  // what this process says; 0: nothing
  size_t job = 0;          // only ranks of one job must agree
  // Of a log: how far NCCL came, and so which variables it has read.
  bool setup_began = false, setup_done = false;
};

enum class LintKind {
  unknown,
  misspelt,
  never_read,
  misread,
  stray_characters,
  removed,
  renamed,
  too_new,
  old_default,
  slow,
  risky,
  debugging,
  no_effect,
  overridden,
  differs,
  shared_file
};
std::string_view Name(LintKind kind);  // "never-read"
enum class LintLevel { warning, note };
std::string_view Name(LintLevel level);

struct LintPlace {
  std::string file, holder;
  uint32_t line = 0;
};

struct LintFinding {
  LintKind kind{};
  LintLevel level = LintLevel::warning;
  std::string name, value;
  std::string headline;                        // one sentence
  std::string standard, effect, since, until;  // of the variable, where it is known
  std::string earlier;                         // defaults of former releases: "18 before 2.23, 14 before 2.14"
  std::string advice;
  std::vector<LintPlace> places;  // the first few
  size_t place_count = 0;
};

struct LintOptions {
  ReleaseNumber nccl = 0;  // 0: each process's own, else not known
  int hosts = 0;           // 1: settings of the network cost nothing; 0: not known
};

struct LintResult {
  std::vector<LintFinding> findings;  // warnings first, then by name
  size_t variables = 0;               // of NCCL, PyTorch and the libraries below them
  ReleaseNumber nccl = 0;             // the release that was assumed; 0: the newest
  ReleaseNumber last_nccl = 0;        // the last where the environments are of several, from `nccl` on
};

// Pure: the same environments give the same findings.
LintResult LintEnvironments(std::span<const GivenEnvironment> environments, const LintOptions& options);

}  // namespace tacet
