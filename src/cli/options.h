// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tacet {

// One option of a subcommand: "--format NAME" or, without value name, a switch.
struct OptionSpec {
  std::string_view name;  // "--format"
  char letter = 0;        // 'o' for -o; 0 for none
  bool takes_value = false;
};

// Arguments split into options and the rest. Options may stand anywhere; "--" ends them; "-" is a plain argument.
class Options {
 public:
  static Result<Options> Parse(const std::vector<std::string>& arguments, const std::vector<OptionSpec>& specs);
  bool Has(std::string_view name) const;
  std::optional<std::string> Value(std::string_view name) const;  // the last one given
  std::vector<std::string> Values(std::string_view name) const;   // all of them
  // A number within bounds; `otherwise` where the option is not given.
  Result<long> Number(std::string_view name, long otherwise, long low, long high) const;
  const std::vector<std::string>& rest() const { return rest_; }

 private:
  std::vector<std::pair<std::string, std::string>> given_;
  std::vector<std::string> rest_;
};

}  // namespace tacet
