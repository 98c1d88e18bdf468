// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/errors/torch_log_chain.h"

#include <algorithm>
#include <iterator>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr size_t kMinQuoted = 8;  // a message as short as 'id' stands in many others by chance

// Programs ask by trying: these are answers, and what is raised in their stead says what the answer means.
constexpr std::string_view kAnswers[] = {"KeyError",
                                         "IndexError",
                                         "LookupError",
                                         "AttributeError",
                                         "StopIteration",
                                         "StopAsyncIteration",
                                         "Empty",
                                         "Full",
                                         "ImportError",
                                         "ModuleNotFoundError",
                                         "FileNotFoundError",
                                         "FileExistsError",
                                         "EntryNotFoundError",
                                         "LocalEntryNotFoundError",
                                         "NotImplementedError",
                                         "TypeError"};

// A device, the communication, memory, the system, or whoever ended the program.
constexpr std::string_view kOfTheMachine[] = {"OutOfMemoryError", "MemoryError",       "AcceleratorError",
                                              "OSError",          "IOError",           "ConnectionError",
                                              "BrokenPipeError",  "PermissionError",   "ConnectionResetError",
                                              "TimeoutError",     "KeyboardInterrupt", "ConnectionRefusedError",
                                              "DistBackendError", "DistNetworkError",  "DistStoreError"};

std::string_view LastName(std::string_view type) {
  const size_t dot = type.rfind('.');
  return dot == std::string_view::npos ? type : type.substr(dot + 1);
}

template <size_t N>
bool IsOneOf(const std::string_view (&names)[N], std::string_view type) {
  return std::find(std::begin(names), std::end(names), LastName(type)) != std::end(names);
}

std::string_view FirstLine(std::string_view message) { return Trim(message.substr(0, message.find('\n'))); }

bool IsOfTheMachine(const RaisedException& raised) {
  return IsOneOf(kOfTheMachine, raised.type) ||
         ContainsAny(FirstLine(raised.message), {"CUDA", "cuDNN", "CUBLAS", "cublas", "NCCL", "HIP ", "HCCL", "NPU ",
                                                 "XPU ", "Gloo", "gloo", "[Errno ", "Connection ", "out of memory"});
}

// A handler stands in the function at which the first traceback begins: Python shows the frames below it.
bool IsRaisedByTheHandler(const RaisedException& first, const RaisedException& later) {
  return later.by_statement && later.innermost_file == first.outermost_file &&
         later.innermost_function == first.outermost_function;
}

}  // namespace

ChainLink ChainLinkOf(std::string_view text) {
  if (text.starts_with("During handling of the above exception")) return ChainLink::handling;
  if (text.starts_with("The above exception was the direct cause")) return ChainLink::direct_cause;
  return ChainLink::none;
}

bool FirstTellsMore(const RaisedException& first, ChainLink link, const RaisedException& later) {
  const std::string_view words = FirstLine(first.message);
  const bool quoted = words.size() >= kMinQuoted && Contains(later.message, words);
  if (quoted && FirstLine(later.message) != words) return false;  // all of it, and more
  if (IsOneOf(kAnswers, first.type)) return false;
  // "TimeoutError", and then "TimeoutError: RPC call to execute_model timed out.": the same, now with its words.
  if (words.empty() && LastName(first.type) == LastName(later.type) && !FirstLine(later.message).empty()) return false;
  // Raised from it, a failure of the machine, or an accident while the program dealt with it.
  return link == ChainLink::direct_cause || IsOfTheMachine(first) || !IsRaisedByTheHandler(first, later);
}

}  // namespace tacet
