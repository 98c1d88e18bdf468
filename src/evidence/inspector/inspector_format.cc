// SPDX-License-Identifier: Apache-2.0
#include "base/line_reader.h"
#include "base/text_scan.h"
#include "evidence/format.h"
#include "evidence/inspector/inspector_import.h"
#include "evidence/inspector/inspector_parse.h"

namespace tacet {
namespace {

// {"header":{"id":"0x...","rank":0,"n_ranks":4,...},"metadata":{"inspector_output_format_version":"v4.0",...
// Forks leave metadata out; their records still name a communicator's rank and a "coll_perf".
Recognition Recognise(std::string_view prefix, std::string_view) {
  LineReader lines(prefix.substr(0, 16 * 1024));
  int looked = 0;
  for (std::string_view line; looked < 4 && lines.Next(&line);) {
    const size_t begin = line.find('{');
    if (begin == std::string_view::npos || begin > 200) continue;
    ++looked;
    line.remove_prefix(begin);
    if (!line.starts_with("{\"header\":")) continue;
    if (Contains(line, "\"inspector_output_format_version\"")) return Recognition::yes;
    if (Contains(line, "\"n_ranks\"") && (Contains(line, "\"coll_perf\"") || Contains(line, "\"p2p_perf\"")))
      return Recognition::yes;
    if (Contains(line, "\"n_ranks\"")) return Recognition::maybe;
  }
  return Recognition::no;
}

}  // namespace

extern const Format kInspectorFormat;
const Format kInspectorFormat = {
    .name = "inspector",
    .description = "NCCL Inspector JSON lines (2.28+): NCCL_PROFILER_PLUGIN=inspector with NCCL_INSPECTOR_ENABLE=1",
    .recognise = Recognise,
    .read = ImportInspector,
};

}  // namespace tacet
