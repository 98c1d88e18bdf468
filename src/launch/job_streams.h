// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace tacet {

// One way for output from the child to us: a pipe, or a pseudo-terminal where our own stream is a terminal.
struct ChildStream {
  int ours = -1, childs = -1;
  bool terminal = false;
  std::vector<int> stands_for;  // 1, 2 or both
};

// One for both streams where both of ours are the same file, so that their lines keep their order.
std::vector<ChildStream> OpenChildStreams();
void CloseChildStreams(std::vector<ChildStream>& streams);

}  // namespace tacet
