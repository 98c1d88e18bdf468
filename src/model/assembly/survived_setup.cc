// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/survived_setup.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>
#include <utility>

namespace tacet {
namespace {

constexpr std::string_view kOfPluginSetup[] = {"net-device-setup-failed", "net-plugin-failed", "net-gdr-off"};

bool IsOfPluginSetup(const Event& event) {
  return event.kind == EventKind::nccl_warning && std::find(std::begin(kOfPluginSetup), std::end(kOfPluginSetup),
                                                            event.As<Warning>().id) != std::end(kOfPluginSetup);
}

}  // namespace

void LowerSurvivedSetups(Incident& incident) {
  using Speaker = std::pair<FileId, uint32_t>;
  std::map<Speaker, uint32_t> chosen;  // the line of the first choice of a network
  for (const Event& event : incident.events)
    if (event.kind == EventKind::network && event.speaker != kNobody) {
      const auto [known, is_new] = chosen.emplace(Speaker{event.source.file, event.speaker}, event.source.line);
      if (!is_new) known->second = std::min(known->second, event.source.line);
    }
  if (chosen.empty()) return;
  for (Event& event : incident.events) {
    if (!IsOfPluginSetup(event)) continue;
    const auto choice = chosen.find({event.source.file, event.speaker});
    if (choice != chosen.end() && event.source.line < choice->second)
      event.Make<Warning>().role = NcclWarningRole::notice;
  }
}

}  // namespace tacet
