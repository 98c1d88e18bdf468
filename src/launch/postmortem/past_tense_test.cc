// SPDX-License-Identifier: Apache-2.0
#include "launch/postmortem/past_tense.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(PastTense, TellsOfAHangAsOver) {
  EXPECT_EQ(InPastTense("Rank 2 is stuck on the host in load (train.py:124) and has not issued all_reduce #33 on pg; "
                        "ranks 0, 1 and 3 wait for it"),
            "Rank 2 was stuck on the host in load (train.py:124) and had not issued all_reduce #33 on pg; ranks 0, 1 "
            "and 3 waited for it");
  EXPECT_EQ(InPastTense("Ranks 0-3 wait for each other in send: each has posted its own call"),
            "Ranks 0-3 waited for each other in send: each had posted its own call");
  EXPECT_EQ(InPastTense("Rank 3's process is gone: its connections closed; rank 1 waits in all_reduce #26"),
            "Rank 3's process was gone: its connections closed; rank 1 waited in all_reduce #26");
}

TEST(PastTense, TellsOfTheOthersAtTheEndOfASentence) {
  EXPECT_EQ(InPastTense("DDP raises an error there and the others wait"),
            "DDP raised an error there and the others waited");
  EXPECT_EQ(InPastTense("Rank 1 makes the others wait"), "Rank 1 makes the others wait");
}

TEST(PastTense, LeavesNamesQuotesAndTheEvidenceAlone) {
  for (const std::string_view same :
       {"The job hung: rank 0 timed out in all_reduce #33; the evidence does not show which rank is responsible",
        "Rank 2 issued all_gather as #20 on pg, where ranks 0, 1 and 3 issued all_reduce",
        "Rank 1 raised RuntimeError ('the queue is full and has no room'); the reason is not in these files",
        "Rank 1 stopped in wait (queue.py:31)"})
    EXPECT_EQ(InPastTense(same), same);
}

}  // namespace
}  // namespace tacet
