// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tacet {

struct OptionRow;

// Arguments split into options and the rest. Options may stand anywhere; "--" ends them; "-" is a plain argument.
// Short ones may be joined with each other and with a value: -vj1. --json is short for --format json.
class Options {
 public:
  // The command's help says which options there are: cli/option_table.h.
  static Result<Options> Parse(const std::vector<std::string>& arguments, std::string_view help);
  bool Has(std::string_view name) const;
  std::optional<std::string> Value(std::string_view name) const;  // the last one given
  std::vector<std::string> Values(std::string_view name) const;   // all of them
  // A number within bounds; `otherwise` where the option is not given.
  Result<long> Number(std::string_view name, long otherwise, long low, long high) const;
  const std::vector<std::string>& rest() const { return rest_; }

 private:
  std::optional<Error> TakeLong(const std::vector<std::string>& arguments, size_t& at,
                                const std::vector<OptionRow>& rows);
  std::optional<Error> TakeLetters(const std::vector<std::string>& arguments, size_t& at,
                                   const std::vector<OptionRow>& rows);
  std::vector<std::pair<std::string, std::string>> given_;
  std::vector<std::string> rest_;
};

}  // namespace tacet
