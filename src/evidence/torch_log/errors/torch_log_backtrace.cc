// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/errors/torch_log_backtrace.h"

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr int kLinesToFrames = 6;  // "Signal code:", "Failing at address:", the heading of the frames
constexpr int64_t kMostFrames = 200;

struct NativeFrame {
  std::string_view library, function;
};

// "libnccl.so(+0x120057) [0x7f..]" or "0x0000000000042520 __sigaction()  ???:0", behind the frame's number.
bool ParseNativePlace(std::string_view text, NativeFrame* out) {
  if (text.starts_with("0x")) {
    TakeUntil(text, ' ');
    text = Trim(text);
    const size_t end = text.find("()");
    if (end == std::string_view::npos || end == 0) return false;
    out->function = text.substr(0, end);
    return true;
  }
  const size_t open = text.find('(');
  if (!text.starts_with('/') && !Contains(text.substr(0, open), ".so")) return false;
  if (open == std::string_view::npos) return false;
  std::string_view path = text.substr(0, open), inside = text.substr(open + 1);
  if (path.find(' ') != std::string_view::npos) return false;
  if (const size_t slash = path.rfind('/'); slash != std::string_view::npos) path.remove_prefix(slash + 1);
  out->library = path;
  out->function = inside.substr(0, inside.find_first_of("+)"));
  return Contains(inside.substr(0, inside.find(')')), "+0x");
}

bool ParseNativeFrame(std::string_view text, NativeFrame* out) {
  text = Trim(text);
  if (text.starts_with('[')) {
    // "[node7:4121] [ 1] /usr/lib/..."
    const size_t close = text.find("] [");
    if (close == std::string_view::npos) return false;
    text.remove_prefix(close + 3);
    SkipBlanks(text);
    int64_t number = -1;
    if (!TakeNumber(text, &number) || number < 0 || number > kMostFrames || !TakeLiteral(text, "]")) return false;
  } else {
    int64_t number = -1;
    if (!TakeNumber(text, &number) || number < 0 || number > kMostFrames || !text.starts_with(' ')) return false;
  }
  return ParseNativePlace(Trim(text), out);
}

// The frames of the handler itself, and those by which the kernel enters it.
bool IsHandlerFrame(const NativeFrame& frame) {
  for (const std::string_view library : {"libucs.", "libc.", "libc-", "libpthread", "libopen-pal", "libopen-rte"})
    if (frame.library.starts_with(library)) return true;
  for (const std::string_view function : {"__sigaction", "__restore_rt", "killpg", "funlockfile", "ucs_"})
    if (frame.library.empty() && frame.function.starts_with(function)) return true;
  return false;
}

}  // namespace

void BacktraceReader::Begin(TorchLogRecord* record) {
  record_ = record;
  lines_left_ = kLinesToFrames;
}

bool BacktraceReader::Read(std::string_view text) {
  if (record_ == nullptr) return false;
  if (Trim(text).starts_with("==== backtrace (tid")) return true;
  NativeFrame frame;
  if (!ParseNativeFrame(text, &frame)) {
    if (--lines_left_ <= 0) record_ = nullptr;
    return false;
  }
  lines_left_ = 2;
  if (!IsHandlerFrame(frame) && record_->file.empty() && record_->function.empty()) {
    record_->file = Capped(frame.library, 100);
    // A stripped library shows its nearest exported symbol for every frame: whose it is, is all that it tells.
    const bool nccl = frame.function.starts_with("nccl") || frame.function.starts_with("pnccl");
    record_->function = nccl ? "NCCL" : Capped(frame.function, 200);
  }
  return true;
}

}  // namespace tacet
