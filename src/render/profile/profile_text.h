// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "report/profile/profile_report.h"

namespace tacet {

struct ProfileTextOptions {
  bool colour = false;
  int width = 100;
  bool verbose = false;  // all ranks, all lines
};

std::string RenderProfileText(const ProfileReport& profile, const ProfileTextOptions& options);

// The definitions of all numbers, for --explain.
std::string RenderDefinitions(int width);

}  // namespace tacet
