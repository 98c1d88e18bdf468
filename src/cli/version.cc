// SPDX-License-Identifier: Apache-2.0
#include "cli/version.h"

#include "tacet_commit.h"

namespace tacet {
namespace {

std::string CompilerName() {
#if defined(__clang__)
  return "clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." +
         std::to_string(__clang_patchlevel__);
#else
  return "GCC " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
         std::to_string(__GNUC_PATCHLEVEL__);
#endif
}

constexpr const char* kArchitecture =
#if defined(__x86_64__)
    "x86_64";
#elif defined(__aarch64__)
    "aarch64";
#else
    "other processor";
#endif

}  // namespace

std::string VersionLine() {
  return "tacet " TACET_VERSION " (commit " TACET_COMMIT ", " + CompilerName() + ", " + kArchitecture + ")";
}

}  // namespace tacet
