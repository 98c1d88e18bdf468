// SPDX-License-Identifier: Apache-2.0
#include "model/assembly/aborted_owner.h"

#include <gtest/gtest.h>

#include <utility>

namespace tacet {
namespace {

Event End(int32_t rank, int64_t code) {
  Event event;
  event.kind = EventKind::process_exited;
  event.rank = Rank{rank};
  event.Make<ProcessEnd>().code = code;
  return event;
}

Event Nameless(EventKind kind, bool lost = false) {
  Event event;
  event.kind = kind;
  if (lost) event.Set(Meaning::gloo_loss);
  return event;
}

// Ranks 0 and 1 lost a peer, rank 2 aborted, and somebody found no space on the disk.
Incident OneText() {
  Incident incident;
  incident.events = {Nameless(EventKind::disk_full),
                     Nameless(EventKind::exception, true),
                     Nameless(EventKind::exception, true),
                     End(0, 1),
                     End(1, 1),
                     End(2, -6)};
  return incident;
}

Rank OwnerOfTheFirst(Incident&& incident) {
  GiveErrorsToTheAborted(incident);
  return incident.events.front().rank;
}

TEST(AbortedOwner, WhatNobodyElseCanHaveRaisedIsOfTheAbortedRank) {
  EXPECT_EQ(OwnerOfTheFirst(OneText()), Rank{2});
  Incident incident = OneText();
  incident.events.front() = Nameless(EventKind::exception);
  EXPECT_EQ(OwnerOfTheFirst(std::move(incident)), Rank{2});
  incident = OneText();
  incident.events.push_back(End(3, 0));
  EXPECT_EQ(OwnerOfTheFirst(std::move(incident)), Rank{2}) << "who ended well raised nothing";
}

TEST(AbortedOwner, ItStaysOpenWhereAnotherRankMayHaveRaisedIt) {
  Incident incident = OneText();
  incident.events.push_back(End(3, -15));
  EXPECT_FALSE(OwnerOfTheFirst(std::move(incident)).known()) << "the launcher ended one more";
  incident = OneText();
  incident.events.push_back(End(3, 1));
  EXPECT_FALSE(OwnerOfTheFirst(std::move(incident)).known()) << "one that raised left no traceback of a lost peer";
  incident = OneText();
  incident.events.push_back(End(3, -6));
  EXPECT_FALSE(OwnerOfTheFirst(std::move(incident)).known()) << "two aborted";
  incident = OneText();
  incident.events.push_back(Nameless(EventKind::process_killed));
  EXPECT_FALSE(OwnerOfTheFirst(std::move(incident)).known());
  incident = OneText();
  incident.events[1].rank = Rank{1};
  EXPECT_FALSE(OwnerOfTheFirst(std::move(incident)).known()) << "tracebacks have names there";
}

}  // namespace
}  // namespace tacet
