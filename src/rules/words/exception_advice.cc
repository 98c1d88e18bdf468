// SPDX-License-Identifier: Apache-2.0
#include "rules/words/exception_advice.h"

#include <algorithm>
#include <iterator>

#include "rules/words/activity_words.h"

namespace tacet {
namespace {

enum class TypeGroup { connection, path, content, timeout };

struct TypeRow {
  std::string_view name;  // without its module
  TypeGroup group;
};

constexpr TypeRow kTypes[] = {{"ConnectionError", TypeGroup::connection},
                              {"ConnectionResetError", TypeGroup::connection},
                              {"ConnectionRefusedError", TypeGroup::connection},
                              {"ConnectionAbortedError", TypeGroup::connection},
                              {"BrokenPipeError", TypeGroup::connection},
                              {"ConnectTimeout", TypeGroup::connection},
                              {"ReadTimeout", TypeGroup::connection},
                              {"HTTPError", TypeGroup::connection},
                              {"HfHubHTTPError", TypeGroup::connection},
                              {"IncompleteRead", TypeGroup::connection},
                              {"gaierror", TypeGroup::connection},
                              {"TimeoutError", TypeGroup::timeout},
                              {"FileNotFoundError", TypeGroup::path},
                              {"PermissionError", TypeGroup::path},
                              {"NotADirectoryError", TypeGroup::path},
                              {"IsADirectoryError", TypeGroup::path},
                              {"JSONDecodeError", TypeGroup::content},
                              {"UnpicklingError", TypeGroup::content},
                              {"BadZipFile", TypeGroup::content},
                              {"BadGzipFile", TypeGroup::content},
                              {"EOFError", TypeGroup::content},
                              {"UnicodeDecodeError", TypeGroup::content},
                              {"SafetensorError", TypeGroup::content},
                              {"ArrowInvalid", TypeGroup::content}};

}  // namespace

std::string_view TimeoutAdvice() {
  return "What the program waited for did not answer in time: is it up, overloaded, or reachable only over a slow "
         "network? If it is only slow, retry, or raise the limit.";
}

bool IsNativeType(std::string_view type) {
  return type.find("::") != std::string_view::npos && type.find(' ') == std::string_view::npos;
}

std::string AdviceForType(std::string_view type, bool relative) {
  type.remove_prefix(type.rfind('.') == std::string_view::npos ? 0 : type.rfind('.') + 1);
  const auto* row =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeRow& one) { return one.name == type; });
  if (row == std::end(kTypes)) return "";
  switch (row->group) {
    case TypeGroup::connection:
      return "Check the server that the cited line talks to: is it up, did it restart, does it limit connections? "
             "Retry such calls a few times before giving up.";
    case TypeGroup::timeout: return std::string(TimeoutAdvice());
    case TypeGroup::path:
      if (relative)
        return "The path is relative: start the job in the directory that it is relative to (the working directory of "
               "all ranks), or give an absolute path.";
      if (row->name == "PermissionError")
        return "Check that the user of the job may use this path on that host (owner and mode of it and of its "
               "folders, "
               "a read-only mount).";
      return "Check that the path exists on that host, as the process sees it: mounts of the container, links, the "
             "spelling.";
    case TypeGroup::content:
      return "Look at the file that the cited line reads: it is damaged, incomplete or in another format. If several "
             "ranks write or download it, let one do it, under a temporary name, and rename it when it is complete.";
  }
  return "";
}

void TellEndedThread(bool many, Finding& finding) {
  finding.status = Status::hang;
  finding.confidence = Confidence::likely;
  if (finding.headline.ends_with('.')) finding.headline.pop_back();
  finding.headline +=
      many ? "; that ended only one thread of each, the processes continued without it, and the job hangs"
           : "; that ended only this thread, the process continued without it, and the job hangs";
  finding.fix.push_back(
      "An uncaught exception in a thread does not end the process: pass it on to the main thread (a future, a queue), "
      "or end the process in threading.excepthook, so that the job fails at once instead of hanging.");
}

std::vector<std::string> ReceivedContentSteps() {
  return {
      "The bytes came from other ranks through a collective, not from a file: check that all ranks make the same calls "
      "on this group in the same order (a collective of other calls in between gives such bytes).",
      "Call torch.cuda.set_device(local_rank) before collectives of objects: with NCCL each rank needs a GPU of its "
      "own "
      "for them."};
}

bool IsUnreadableContent(std::string_view type) {
  type.remove_prefix(type.rfind('.') == std::string_view::npos ? 0 : type.rfind('.') + 1);
  return std::any_of(std::begin(kTypes), std::end(kTypes),
                     [&](const TypeRow& one) { return one.name == type && one.group == TypeGroup::content; });
}

std::string PlaceToFix(const Event& raised) {
  const std::string place = RaisedPlaceWords(raised);
  if (!place.empty() && raised.As<Raised>().refusal == "changed-in-place")
    return place +
           " runs the backward pass, where the error shows; the tensor was changed in the forward pass before it.";
  if (!place.empty() && raised.As<Raised>().type == "AssertionError")
    return "The check in " + place + " only detected the problem: look for its cause in what this rank did before.";
  if (!place.empty()) return "Fix the error in " + place + ", the last frame in the program's own code.";
  if (IsNativeType(raised.As<Raised>().type))
    return "Look at the C++ code that throws it: the core dump shows where (coredumpctl gdb PID, or gdb PROGRAM CORE, "
           "then bt; ulimit -c unlimited lets the next one be written). PYTHONFAULTHANDLER=1 adds the Python line.";
  if (raised.Means(Meaning::reported))
    return "Look up the message in the documentation or the source of the program that prints it.";
  return "Fix the error where it was raised: if there is a traceback, its last frame in your own code names the file "
         "and the line.";
}

}  // namespace tacet
