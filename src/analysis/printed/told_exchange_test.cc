// SPDX-License-Identifier: Apache-2.0
#include "analysis/printed/told_exchange.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace tacet {
namespace {

// Lines of ranks; those that differ in nothing but numbers have one shape.
class PrintedExchange {
 public:
  void Say(int32_t rank, const std::string& text) {
    OwnLine line;
    line.rank = rank;
    line.text = text;
    for (const char c : text)
      if (c < '0' || c > '9') line.shape = line.shape * 31 + static_cast<unsigned char>(c);
    lines_.push_back(line);
    printed.last[Rank{rank}].push_back(&lines_.back());
  }

  // Rounds before the last one, in which both agree.
  void Rounds(int count, const std::string& usual) {
    for (int turn = 0; turn < count; ++turn) {
      const std::string begin = "turn " + std::to_string(turn) + ": ";
      Say(0, begin + "sending " + usual + " chunks to rank 1");
      Say(1, begin + "expecting " + usual + " chunks from rank 0");
    }
  }

  PrintedLines printed;

 private:
  std::deque<OwnLine> lines_;
};

TEST(ToldExchange, TheOneWhoseNumberChangedIsTheOddOne) {
  PrintedExchange job;
  job.Rounds(4, "5");
  job.Say(0, "turn 4: sending 7 chunks to rank 1");
  job.Say(1, "turn 4: expecting 5 chunks from rank 0");
  job.Say(2, "turn 3: done");
  const ToldExchange found = FindToldExchange(job.printed);
  ASSERT_TRUE(found);
  EXPECT_EQ(found.odd, Rank{0});
  EXPECT_EQ(found.number, 7);
  EXPECT_EQ(found.expected, 5);
  EXPECT_EQ(found.usual, 5);
}

TEST(ToldExchange, WhereBothAgreeNothingIsFound) {
  PrintedExchange job;
  job.Rounds(5, "5");
  EXPECT_FALSE(FindToldExchange(job.printed));
}

// In a job that goes on one of the two is a round further at any moment.
TEST(ToldExchange, ARoundThatOneHasNotBegunIsNoDifference) {
  PrintedExchange job;
  job.Rounds(4, "5");
  job.Say(0, "turn 4: sending 5 chunks to rank 1");
  EXPECT_FALSE(FindToldExchange(job.printed));
}

TEST(ToldExchange, NumbersThatNeverAgreedAreNotCompared) {
  PrintedExchange job;
  for (int turn = 0; turn < 5; ++turn) {
    job.Say(0, "sent " + std::to_string(100 + 7 * turn) + " rows to rank 1");
    job.Say(1, "got " + std::to_string(3 * turn) + " batches from rank 0");
  }
  EXPECT_FALSE(FindToldExchange(job.printed));
}

TEST(ToldExchange, LinesThatDoNotNameEachOtherAreNoExchange) {
  PrintedExchange job;
  job.Rounds(4, "5");
  job.Say(0, "turn 4: sending 7 chunks to rank 2");
  job.Say(1, "turn 4: expecting 5 chunks from rank 0");
  EXPECT_FALSE(FindToldExchange(job.printed));
}

}  // namespace
}  // namespace tacet
