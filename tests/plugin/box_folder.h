// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace tacet::fake {

// A new folder under /tmp for the boxes of one test; it goes with everything in it.
class BoxFolder {
 public:
  BoxFolder();
  ~BoxFolder();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tacet::fake
