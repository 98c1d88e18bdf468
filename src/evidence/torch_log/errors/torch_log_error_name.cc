// SPDX-License-Identifier: Apache-2.0
// Which names are those of errors.
#include <algorithm>
#include <array>

#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_traceback.h"

namespace tacet {
namespace {

// Errors of Python's own library, of Triton's and of Arrow's that do not say so in their names.
constexpr std::array<std::string_view, 7> kUnlikeErrors{"TimeoutExpired",   "BrokenProcessPool",
                                                        "BrokenThreadPool", "OutOfResources",
                                                        "ArrowInvalid",     "ElasticityIncompatibleWorldSize",
                                                        "gaierror"};
// Modules of which every class is an error: torch._dynamo.exc.Unsupported, requests.exceptions.ConnectTimeout.
constexpr std::array<std::string_view, 7> kModulesOfErrors{"error",      "errors",  "exc",        "exception",
                                                           "exceptions", "_errors", "_exceptions"};

}  // namespace

bool IsErrorName(std::string_view type) {
  for (const std::string_view end : {"Error", "Exception", "Interrupt"})
    if (type.ends_with(end) && type.size() > end.size()) return true;
  const size_t dot = type.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? type : type.substr(dot + 1);
  if (std::find(kUnlikeErrors.begin(), kUnlikeErrors.end(), last) != kUnlikeErrors.end()) return true;
  if (dot == std::string_view::npos || last.empty() || last[0] < 'A' || last[0] > 'Z' || last.ends_with("Warning"))
    return false;
  for (std::string_view modules = type.substr(0, dot); !modules.empty();) {
    const std::string_view one = modules.substr(0, modules.find('.'));
    if (std::find(kModulesOfErrors.begin(), kModulesOfErrors.end(), one) != kModulesOfErrors.end()) return true;
    modules.remove_prefix(std::min(one.size() + 1, modules.size()));
  }
  return false;
}

bool IsBuildTool(std::string_view command) {
  constexpr std::array<std::string_view, 10> kTools{"ninja", "nvcc", "hipcc", "gcc",   "g++",
                                                    "cc",    "c++",  "clang", "cmake", "ptxas"};
  command = command.substr(std::min(command.find_first_not_of("'[\" "), command.size()));
  std::string_view program = command.substr(0, command.find_first_of("' ,\""));
  program = program.substr(program.rfind('/') + 1);
  return std::find(kTools.begin(), kTools.end(), program) != kTools.end();
}

}  // namespace tacet
