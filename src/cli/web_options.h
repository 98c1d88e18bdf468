// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "http/web_access.h"

namespace tacet {

// What agent and server have in common: who may ask them.
inline std::vector<std::string> SplitNames(std::string_view text) {
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    text.remove_prefix(name.size() == text.size() ? name.size() : name.size() + 1);
    if (!name.empty()) names.emplace_back(name);
  }
  return names;
}

inline WebAccessOptions ReadWebAccessOptions(const Options& options) {
  WebAccessOptions access;
  access.config_file = options.Value("--web-config").value_or("");
  access.insecure = options.Has("--insecure");
  if (const auto names = options.Value("--operators")) access.operators = SplitNames(*names);
  for (const std::string& names : options.Values("--host-name"))
    for (std::string& name : SplitNames(names)) access.host_names.push_back(std::move(name));
  return access;
}

}  // namespace tacet
