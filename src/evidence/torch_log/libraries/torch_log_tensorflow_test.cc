// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_tensorflow.h"

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

constexpr std::string_view kEnds =
    "2026-01-19 10:11:42.301177: W tensorflow/core/common_runtime/base_collective_executor.cc:216] "
    "BaseCollectiveExecutor::StartAbort Out of range: End of sequence\n\t [[{{node IteratorGetNext_1}}]]\n";

TEST(TorchLogTensorflow, TheEndOfADataSetIsUsual) {
  EXPECT_TRUE(EventsOf(ReadText(kEnds, "tf.log"), EventKind::exception).empty());
  EXPECT_TRUE(
      EventsOf(ReadText("2026-02-01 08:00:00.100000: I tensorflow/core/framework/local_rendezvous.cc:404] Local "
                        "rendezvous is aborting with status: OUT_OF_RANGE: End of sequence\n",
                        "tf.log"),
               EventKind::exception)
          .empty());
}

TEST(TorchLogTensorflow, OneThatCancelsOthersEndsTheJob) {
  const Event event = OneEvent(
      ReadText(std::string(kEnds) + "2026-01-19 10:11:42.301402: W tensorflow/core/common_runtime/"
                                    "base_collective_executor.cc:216] BaseCollectiveExecutor::StartAbort Cancelled: "
                                    "[_Derived_]Cancelled\n",
               "tf.log"),
      EventKind::exception);
  EXPECT_EQ(event.As<Raised>().type, "the end of its data");
  EXPECT_EQ(event.text, "End of sequence");
  EXPECT_EQ(event.As<Raised>().place.file, "");
}

}  // namespace
}  // namespace tacet
