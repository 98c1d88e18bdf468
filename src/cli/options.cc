// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <algorithm>
#include <charconv>

namespace tacet {
namespace {

const OptionSpec* FindSpec(std::string_view name, const std::vector<OptionSpec>& specs) {
  for (const OptionSpec& spec : specs) {
    if (name == spec.name) return &spec;
    if (name.size() == 2 && name[0] == '-' && name[1] == spec.letter && spec.letter != 0) return &spec;
  }
  return nullptr;
}

std::string KnownOptions(const std::vector<OptionSpec>& specs) {
  std::string text;
  for (const OptionSpec& spec : specs) text += (text.empty() ? "" : " ") + std::string(spec.name);
  return text;
}

}  // namespace

Result<Options> Options::Parse(const std::vector<std::string>& arguments, const std::vector<OptionSpec>& specs) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      options.rest_.insert(options.rest_.end(), arguments.begin() + static_cast<long>(i) + 1, arguments.end());
      break;
    }
    if (argument.size() < 2 || argument[0] != '-') {
      options.rest_.push_back(argument);
      continue;
    }
    const size_t equals = argument.starts_with("--") ? argument.find('=') : std::string::npos;
    const std::string name = argument.substr(0, equals);
    const OptionSpec* spec = FindSpec(name, specs);
    if (!spec) return Error{"unknown option '" + name + "'", "options: " + KnownOptions(specs)};
    if (!spec->takes_value) {
      if (equals != std::string::npos) return Error{"'" + name + "' takes no value", ""};
      options.given_.emplace_back(spec->name, "");
      continue;
    }
    if (equals != std::string::npos) {
      options.given_.emplace_back(spec->name, argument.substr(equals + 1));
    } else if (i + 1 < arguments.size()) {
      options.given_.emplace_back(spec->name, arguments[++i]);
    } else {
      return Error{"'" + name + "' needs a value", ""};
    }
  }
  return options;
}

bool Options::Has(std::string_view name) const {
  return std::any_of(given_.begin(), given_.end(), [&](const auto& one) { return one.first == name; });
}

std::optional<std::string> Options::Value(std::string_view name) const {
  std::optional<std::string> value;
  for (const auto& [given, text] : given_)
    if (given == name) value = text;
  return value;
}

std::vector<std::string> Options::Values(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [given, text] : given_)
    if (given == name) values.push_back(text);
  return values;
}

Result<long> Options::Number(std::string_view name, long otherwise, long low, long high) const {
  const auto text = Value(name);
  if (!text) return otherwise;
  long value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < low || value > high)
    return Error{std::string(name) + " takes a number from " + std::to_string(low) + " to " + std::to_string(high) +
                     ", not '" + *text + "'",
                 ""};
  return value;
}

}  // namespace tacet
