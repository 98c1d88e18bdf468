// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace tacet {

// A folder tests/golden/NAME with input/ and expected.json.
struct GoldenCase {
  std::string name;
  std::filesystem::path input;
  std::string status;
  std::string cause;       // empty: none
  std::vector<int> ranks;  // guilty
  std::optional<int64_t> seq;
  std::vector<std::string> headline;   // words the headline must hold
  std::vector<std::string> remarks;    // codes of diagnostics that must be there
  std::vector<std::string> not_found;  // causes no finding may name
  size_t jobs = 1;
  int exit_code = 0;
};

inline void PrintTo(const GoldenCase& golden, std::ostream* out) { *out << golden.name; }

// All cases of tests/golden, sorted by name. Throws on a case that cannot be read or has a key nobody knows.
std::vector<GoldenCase> AllGoldenCases();

}  // namespace tacet
