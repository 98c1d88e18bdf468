// SPDX-License-Identifier: Apache-2.0
#include "cli/options.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include "cli/option_table.h"
#include "cli/spelling.h"

namespace tacet {
namespace {

const OptionRow* FindRow(std::string_view name, const std::vector<OptionRow>& rows) {
  for (const OptionRow& row : rows)
    if (name == row.name) return &row;
  return nullptr;
}

const OptionRow* FindLetter(char letter, const std::vector<OptionRow>& rows) {
  for (const OptionRow& row : rows)
    if (letter == row.letter && letter != 0) return &row;
  return nullptr;
}

Error UnknownOption(std::string_view name, const std::vector<OptionRow>& rows) {
  std::string all;
  std::vector<std::string_view> names;
  for (const OptionRow& row : rows) {
    all += (all.empty() ? "" : " ") + row.name;
    names.push_back(row.name);
  }
  if (rows.empty()) return {"unknown option '" + std::string(name) + "'", "this command takes no options"};
  return {"unknown option '" + std::string(name) + "'", DidYouMean(name, names) + "options: " + all};
}

}  // namespace

// `at` stands on `argument`; a value may be the one behind it.
std::optional<Error> Options::TakeLong(const std::vector<std::string>& arguments, size_t& at,
                                       const std::vector<OptionRow>& rows) {
  const std::string& argument = arguments[at];
  const size_t equals = argument.find('=');
  const std::string name = argument.substr(0, equals);
  const OptionRow* row = FindRow(name, rows);
  if (row == nullptr) return UnknownOption(name, rows);
  if (row->value.empty()) {
    if (equals != std::string::npos) return Error{"'" + name + "' takes no value", ""};
    given_.emplace_back(row->name, "");
    return std::nullopt;
  }
  if (equals != std::string::npos) {
    given_.emplace_back(row->name, argument.substr(equals + 1));
  } else if (at + 1 < arguments.size() && arguments[at + 1] != "--") {
    given_.emplace_back(row->name, arguments[++at]);
  } else {
    return Error{"'" + name + "' needs a value", row->value + ": " + row->text};
  }
  return std::nullopt;
}

// "-v", "-vv", "-j 1", "-j1", "-vj1".
std::optional<Error> Options::TakeLetters(const std::vector<std::string>& arguments, size_t& at,
                                          const std::vector<OptionRow>& rows) {
  const std::string& argument = arguments[at];
  for (size_t i = 1; i < argument.size(); ++i) {
    const OptionRow* row = FindLetter(argument[i], rows);
    // "-format": all of it is wrong, not the 'o' in it.
    if (row == nullptr) return UnknownOption(i == 1 ? argument : std::string("-") + argument[i], rows);
    if (row->value.empty()) {
      given_.emplace_back(row->name, "");
      continue;
    }
    if (i + 1 < argument.size()) {
      given_.emplace_back(row->name, argument.substr(i + 1));
    } else if (at + 1 < arguments.size() && arguments[at + 1] != "--") {
      given_.emplace_back(row->name, arguments[++at]);
    } else {
      return Error{"'-" + std::string(1, argument[i]) + "' needs a value", row->value + ": " + row->text};
    }
    break;
  }
  return std::nullopt;
}

Result<Options> Options::Parse(const std::vector<std::string>& arguments, std::string_view help) {
  const std::vector<OptionRow> rows = ReadOptionRows(help);
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
    const auto wrong =
        argument[1] == '-' ? options.TakeLong(arguments, i, rows) : options.TakeLetters(arguments, i, rows);
    if (wrong) return *wrong;
  }
  // Which of the two was meant, where both are given, is told by their order.
  for (auto& [name, value] : options.given_)
    if (name == "--json") {
      name = "--format";
      value = "json";
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
