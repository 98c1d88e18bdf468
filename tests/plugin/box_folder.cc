// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/box_folder.h"

#include <cstdlib>
#include <filesystem>

namespace tacet::fake {

BoxFolder::BoxFolder() {
  char name[] = "/tmp/tacet-box-XXXXXX";
  if (mkdtemp(name) == nullptr) std::abort();
  path_ = name;
}

BoxFolder::~BoxFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace tacet::fake
