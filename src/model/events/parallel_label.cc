// SPDX-License-Identifier: Apache-2.0
#include "model/events/parallel_label.h"

#include "base/text_scan.h"

namespace tacet {

int32_t RankOfParallelLabel(std::string_view label) {
  int32_t tensor = -1;
  bool first = true;
  while (!label.empty()) {
    const std::string_view kind = label.substr(0, 2);
    if (kind != "TP" && kind != "DP" && kind != "PP" && kind != "EP") return -1;
    label.remove_prefix(2);
    int32_t number = -1;
    if (label.empty() || !IsDigit(label[0]) || !TakeNumber(label, &number)) return -1;
    if (kind == "TP")
      tensor = number;
    else if (kind != "EP")
      first = first && number == 0;
    if (label.empty()) break;
    if (!TakeLiteral(label, " ") && !TakeLiteral(label, "_")) return -1;
  }
  return first ? tensor : -1;
}

}  // namespace tacet
