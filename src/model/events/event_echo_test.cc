// SPDX-License-Identifier: Apache-2.0
#include "model/events/event_echo.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

void Add(Incident& incident, int32_t rank, uint32_t file, std::string type, std::string text) {
  Event& event = incident.events.emplace_back();
  event.kind = EventKind::exception;
  event.rank = Rank{rank};
  event.Make<Raised>().type = std::move(type);
  event.text = std::move(text);
  event.source.file = FileId{file};
}

TEST(EventEcho, AnErrorThatARanksOwnFileTellsIsNotToldAgainWithoutARank) {
  Incident incident;
  Add(incident, -1, 0, "ValueError", "loss is not finite");
  Add(incident, -1, 0, "MemoryError", "");
  Add(incident, 2, 1, "ValueError", "loss is not finite");
  Add(incident, 1, 2, "MemoryError", "");
  DropEchoes(incident);
  ASSERT_EQ(incident.events.size(), 2u);
  EXPECT_EQ(incident.events[0].rank, Rank{2});
  EXPECT_EQ(incident.events[1].rank, Rank{1});
}

TEST(EventEcho, OtherWordsAndFurtherCopiesStay) {
  Incident incident;
  Add(incident, -1, 0, "ValueError", "loss is not finite");
  Add(incident, -1, 0, "ValueError", "loss is not finite");  // of a rank that has no file
  Add(incident, -1, 0, "KeyError", "'warmup'");
  Add(incident, 2, 1, "ValueError", "loss is not finite");
  DropEchoes(incident);
  EXPECT_EQ(incident.events.size(), 3u);
}

TEST(EventEcho, TwoLinesOfOneFileAreTwo) {
  Incident incident;
  Add(incident, -1, 0, "ValueError", "loss is not finite");
  Add(incident, 2, 0, "ValueError", "loss is not finite");
  DropEchoes(incident);
  EXPECT_EQ(incident.events.size(), 2u);
}

}  // namespace
}  // namespace tacet
