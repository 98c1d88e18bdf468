// SPDX-License-Identifier: Apache-2.0
#include "evidence/format.h"
#include "evidence/kernel_log/kernel_log_import.h"
#include "evidence/kernel_log/kernel_log_parse.h"

namespace tacet {
namespace {

Recognition Recognise(std::string_view prefix, std::string_view) {
  const KernelSigns signs = CountKernelSigns(prefix);
  if (signs.lines == 0) return Recognition::no;
  const bool sure = signs.kernel > 0 || signs.records > 0;
  const uint32_t stamped = signs.kernel + signs.loose + signs.other;
  if (sure && stamped * 2 >= signs.lines) return Recognition::yes;
  // dmesg -t, or lines that somebody cut out.
  if (signs.records * 2 >= signs.lines) return Recognition::yes;
  if (signs.records > 0 || signs.other * 5 >= signs.lines * 4) return Recognition::maybe;
  return Recognition::no;
}

void Read(const FileView& file, Fragment& out) {
  const KernelLog log = ParseKernelLog(file.bytes);
  out.bytes = {file.bytes.size(), log.understood, log.ignored, log.not_understood};
  ImportKernelLog(log, out);
}

}  // namespace

extern const Format kKernelLogFormat;
const Format kKernelLogFormat = {
    "kernel_log",          "kernel messages: dmesg -T, journalctl -k, /var/log/kern.log, /dev/kmsg", Recognise, Read,
    /*shares_lines=*/true,
};

}  // namespace tacet
