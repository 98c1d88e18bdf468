// SPDX-License-Identifier: Apache-2.0
#include "base/launcher_prefix.h"
#include "base/line_reader.h"
#include "evidence/format.h"
#include "evidence/nccl_tests/nccl_tests_import.h"
#include "evidence/nccl_tests/nccl_tests_parse.h"

namespace tacet {
namespace {

Recognition Recognise(std::string_view prefix, std::string_view) {
  if (IsNcclTestsJson(prefix)) return Recognition::yes;
  LineReader lines(prefix);
  for (std::string_view line; lines.Next(&line);) {
    if (line.size() > 1000) continue;
    const auto has = [&](std::string_view word) { return line.find(word) != std::string_view::npos; };
    if (!has("#") && !has("FAILED") && !has("minBytes") && !has("bus bandwidth") && !has("busbw") &&
        !has(" failure common.cu") && !has("Out of bounds"))
      continue;
    const std::string plain = HasTerminalCodes(line) ? DropTerminalCodes(line) : std::string();
    if (IsNcclTestsLine(plain.empty() ? line : std::string_view(plain))) return Recognition::yes;
  }
  return HasNcclTestsRows(prefix) ? Recognition::yes : Recognition::no;
}

}  // namespace

extern const Format kNcclTestsFormat;
const Format kNcclTestsFormat = {
    .name = "nccl_tests",
    .description = "output of nccl-tests and rccl-tests (all_reduce_perf, ...): the tables, or the file that -J writes",
    .recognise = Recognise,
    .read = ReadNcclTests,
    .shares_lines = true,
};

}  // namespace tacet
