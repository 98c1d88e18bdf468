// SPDX-License-Identifier: Apache-2.0
#include "model/events/event_witness.h"

#include <gtest/gtest.h>

#include <set>

namespace tacet {
namespace {

Witness OfKind(EventKind kind) {
  Event event;
  event.kind = kind;
  return WitnessOf(event);
}

TEST(EventWitness, WhoTellsOfAnEndIsNotWhoEnded) {
  EXPECT_EQ(OfKind(EventKind::exception), Witness::self);
  EXPECT_EQ(OfKind(EventKind::connection_lost), Witness::peer);
  EXPECT_EQ(OfKind(EventKind::process_exited), Witness::launcher);
  EXPECT_EQ(OfKind(EventKind::oom_kill), Witness::kernel);
  EXPECT_EQ(OfKind(EventKind::scheduler_kill), Witness::scheduler);
  EXPECT_EQ(OfKind(EventKind::ras_rank_dead), Witness::tool);
  EXPECT_EQ(OfKind(EventKind::told_hang), Witness::reporter);
  EXPECT_EQ(OfKind(EventKind::told_slow), Witness::reporter);
}

TEST(EventWitness, EveryWitnessHasAName) {
  std::set<std::string_view> names;
  for (const Witness witness : {Witness::self, Witness::peer, Witness::launcher, Witness::kernel, Witness::scheduler,
                                Witness::tool, Witness::reporter})
    names.insert(Name(witness));
  EXPECT_EQ(names.size(), 7u);
  EXPECT_FALSE(names.contains(""));
}

}  // namespace
}  // namespace tacet
