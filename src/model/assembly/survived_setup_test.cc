// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/survived_setup.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string_view>

namespace tacet {
namespace {

Event SetupEvent(EventKind kind, uint32_t line, uint32_t speaker = 0) {
  Event event;
  event.kind = kind;
  event.speaker = speaker;
  event.source.line = line;
  return event;
}

Event FailedSetup(std::string_view id, uint32_t line, uint32_t speaker = 0) {
  Event event = SetupEvent(EventKind::nccl_warning, line, speaker);
  event.Make<Warning>().id = id;
  event.Make<Warning>().role = NcclWarningRole::cause;
  return event;
}

TEST(SurvivedSetup, WhatFailedBeforeANetworkWasChosenEndedNobody) {
  Incident incident;
  incident.events = {FailedSetup("net-device-setup-failed", 3), FailedSetup("net-gdr-off", 2),
                     SetupEvent(EventKind::network, 8)};
  LowerSurvivedSetups(incident);
  EXPECT_EQ(incident.events[0].As<Warning>().role, NcclWarningRole::notice);
  EXPECT_EQ(incident.events[1].As<Warning>().role, NcclWarningRole::notice);
}

TEST(SurvivedSetup, WhatFailsBehindItOrInAnotherProcessStays) {
  Incident incident;
  incident.events = {FailedSetup("net-plugin-failed", 9), FailedSetup("net-device-setup-failed", 3, 1),
                     FailedSetup("ib-completion-error", 2), SetupEvent(EventKind::network, 8)};
  LowerSurvivedSetups(incident);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(incident.events[i].As<Warning>().role, NcclWarningRole::cause) << incident.events[i].As<Warning>().id;
}

}  // namespace
}  // namespace tacet
