// SPDX-License-Identifier: Apache-2.0
#include "predict/nccl_release.h"

#include "base/text_scan.h"

namespace tacet {

std::string NcclRelease::Text() const {
  const std::string maker = rccl ? "RCCL " : "NCCL ";
  if (!known()) return maker + "of an unknown release";
  return maker + "2." + std::to_string(minor) + "." + std::to_string(patch);
}

NcclRelease ParseNcclRelease(std::string_view text) {
  NcclRelease release;
  release.rccl = TakeLiteral(text, "RCCL ");
  TakeLiteral(text, "NCCL ");
  TakeLiteral(text, "v");
  int number = 0;
  if (std::string_view digits = text; TakeNumber(digits, &number) && number >= 20000 && number < 40000) {
    release.minor = number / 100 % 100;
    release.patch = number % 100;
    return release;
  }
  if (!TakeLiteral(text, "2.") || !TakeNumber(text, &release.minor) || release.minor < 0 || release.minor > 999) {
    release.minor = -1;
    return release;
  }
  if (TakeLiteral(text, ".") && !TakeNumber(text, &release.patch)) release.patch = 0;
  if (const auto cuda = After(text, "cuda")) {
    std::string_view rest = *cuda;
    int major = 0, minor = 0;
    if (TakeNumber(rest, &major) && TakeLiteral(rest, ".")) TakeNumber(rest, &minor);
    if (major > 0 && major < 100 && minor >= 0 && minor < 100) release.cuda = major * 100 + minor;
  }
  return release;
}

bool HasCostModel(const NcclRelease& release) {
  return !release.rccl && release.minor >= kFirstModelled && release.minor <= kLastModelled;
}

}  // namespace tacet
