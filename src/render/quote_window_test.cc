// SPDX-License-Identifier: Apache-2.0
#include "render/quote_window.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

const std::string kSignal =
    "[rank3]:[E222 07:00:41.188 ProcessGroupNCCL.cpp:1834] [PG ID 0 PG GUID 0(default_pg) Rank 3] Received a dump "
    "signal due to a collective timeout from rank 1 and we will try our best to dump the debug info. Last enqueued "
    "NCCL work: 8839, last completed NCCL work: 8839. This is most likely caused by incorrect usages of collectives.";

TEST(QuoteWindow, ShowsTheNumbersThatTheFindingSpeaksOf) {
  const std::string shown =
      QuoteWindow(kSignal, "rank 3 has enqueued 8839 where its peers wait in all_reduce #8840", 90);
  EXPECT_TRUE(shown.starts_with("...")) << shown;
  EXPECT_NE(shown.substr(0, 93).find("Last enqueued NCCL work: 8839"), std::string::npos) << shown;
}

TEST(QuoteWindow, BeginsWithTheLineWhereNothingBetterFollows) {
  EXPECT_EQ(QuoteWindow(kSignal, "Received a dump signal on ProcessGroupNCCL.cpp", 120), kSignal);
  EXPECT_EQ(QuoteWindow(kSignal, "", 60), kSignal);
  EXPECT_EQ(QuoteWindow("short 8839", "8839", 60), "short 8839");
}

TEST(QuoteWindow, DoesNotBeginInsideBrackets) {
  const std::string shown = QuoteWindow(kSignal, "rank 3 had enqueued work only up to #8839, signal, collective", 150);
  EXPECT_FALSE(shown.starts_with("...Rank 3]") || shown.starts_with("...3]")) << shown;
}

TEST(QuoteWindow, ShowsTheNumberOfTheOperation) {
  const std::string line =
      "[rank1]:[E1117 05:35:03.822268674 ProcessGroupNCCL.cpp:1914] [PG ID 0 PG GUID 0(default_pg) Rank 1] Received a "
      "dump signal due to a collective timeout from  rank 2 and we will try our best to dump the debug info. Last "
      "enqueued NCCL work: 17, last completed NCCL work: 17.This is most likely caused by incorrect usages";
  const std::string shown = QuoteWindow(line, "rank 1 had work only up to #17 while its peers waited", 150);
  EXPECT_NE(shown.substr(0, 153).find("work: 17"), std::string::npos) << shown;
}

TEST(QuoteWindow, ShowsWhatWentWrong) {
  const std::string line =
      "torch.distributed.DistBackendError: [5] is setting up NCCL communicator and retrieving ncclUniqueId from [0] "
      "via "
      "c10d key-value store by key '1', but store->get('1') got error: Connection reset by peer";
  const std::string shown = QuoteWindow(line, "rank 5 lost the connection to the store of rank 0", 100);
  EXPECT_TRUE(shown.starts_with("...") && shown.ends_with("Connection reset by peer")) << shown;
}

TEST(QuoteWindow, NamesOfTensorsOutweighWords) {
  const std::string line =
      "WARNING: One or more tensors were submitted to be reduced, gathered or broadcasted by subset of ranks and are "
      "waiting for remainder of ranks for more than 60 seconds. Stalled ops: HorovodAllreduce_val_acc_0 [ready ranks: "
      "1], grads_7_0 [ready ranks: 0, 2, 3]";
  const std::string shown =
      QuoteWindow(line, "rank 1 waits in HorovodAllreduce_val_acc_0, ranks 0, 2 in grads_7_0", 90);
  EXPECT_NE(shown.substr(0, 93).find("HorovodAllreduce_val_acc_0 [ready ranks: 1]"), std::string::npos) << shown;
}

TEST(QuoteWindow, ShowsTheCodeAndTheValueThatTheFindingIsAbout) {
  const std::string end =
      "[ERROR] [launch.py:434:sigkill_handler] ['/opt/venv/bin/python', '-u', 'finetune.py', '--local_rank=0', "
      "'--model', 'opt-350m'] exits with return code = -9";
  EXPECT_NE(QuoteWindow(end, "rank 0 was killed by signal 9 (SIGKILL)", 90).substr(0, 93).find("return code = -9"),
            std::string::npos);
  const std::string step =
      "iteration 880/ 12000 | consumed samples: 28160 | learning rate: 1.500E-04 | global batch size: 32 | loss scale: "
      "1.0 | grad norm: nan | number of skipped iterations: 0";
  EXPECT_NE(QuoteWindow(step, "the gradient norm is NaN", 90).substr(0, 93).find("grad norm: nan"), std::string::npos);
}

}  // namespace
}  // namespace tacet
