// SPDX-License-Identifier: Apache-2.0
// What the dynamic loader says of a library that is not the one a program was built against.
#include <string_view>

#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_failures.h"

namespace tacet {

// /opt/conda/bin/python: symbol lookup error: /opt/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister
// torch/lib/libtorch_cuda.so: undefined symbol: ncclCommRegister, of which nothing else was kept. Python's ImportError
// is read with its traceback.
LineUse ReadMissingSymbol(const LogLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  const std::string_view library = text.substr(0, text.find(": undefined symbol: "));
  if (library.size() == text.size()) return LineUse::not_understood;
  // The program itself may lack it: "all_reduce_perf: symbol lookup error: all_reduce_perf: undefined symbol: nccl..."
  const size_t loader = library.find("symbol lookup error: ");
  if (loader == std::string_view::npos && !Contains(library, ".so")) return LineUse::not_understood;
  if (loader == std::string_view::npos && library.find(' ') != std::string_view::npos) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::exception, line, "symbol");
  if (!is_new) return LineUse::understood;
  // Only what the line says itself is quoted.
  record->subject = loader == std::string_view::npos ? "an error of the loader" : "symbol lookup error";
  record->text = Capped(loader == std::string_view::npos ? text : text.substr(loader + 21), 600);
  return LineUse::understood;
}

}  // namespace tacet
