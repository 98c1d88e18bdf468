// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "evidence/black_box/black_box_parse.h"
#include "model/fragment.h"
#include "tests/plugin/box_folder.h"

// For the tests: jobs that write boxes into a folder, and what the tool reads out of them afterwards.
namespace tacet::fake {

struct ReadBox {
  std::string path;
  BlackBox box;
  Fragment fragment;
  const CallStream& stream() const { return fragment.streams.at(0); }
  int rank() const { return box.header.rank; }
};
// All boxes under a folder, by rank, then path.
std::vector<ReadBox> ReadBoxes(const std::string& folder);
ReadBox ReadOneBox(const std::string& path);

using Environment = std::map<std::string, std::string>;

// Runs plugin_host with these arguments and TACET_BOX_DIR set; gives what it printed.
std::string RunHost(const std::string& arguments, const BoxFolder& folder, const Environment& environment = {});

// Runs `work` in a forked child with TACET_BOX_DIR set; gives its wait status. The child leaves by exit(), so that the
// plugin sees an orderly end.
int RunInChild(const BoxFolder& folder, const std::function<void()>& work, const Environment& environment = {});

std::string PluginPath();

}  // namespace tacet::fake
