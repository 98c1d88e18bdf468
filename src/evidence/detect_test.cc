// SPDX-License-Identifier: Apache-2.0
#include "evidence/detect.h"

#include <gtest/gtest.h>

#include <string>

#include "evidence/load.h"

namespace tacet {
namespace {

std::string Lines(size_t count, const std::string& message = "Channel 00/1 : 3[3] -> 9[1] [send] via NET/IB/3/GDRDMA") {
  std::string text;
  for (size_t i = 0; i < count; ++i) text += "gpu017:4121:4388 [3] NCCL INFO " + message + "\n";
  return text;
}

TEST(OwnerOfAll, IsNcclWhereEveryLineHasItsPrefix) {
  for (const std::string& text : {Lines(3), "NCCL version 2.27.7+cuda12.9\n" + Lines(3), Lines(3).substr(0, 200)}) {
    const Format* owner = OwnerOfAll(text);
    ASSERT_TRUE(owner) << text;
    EXPECT_EQ(owner->name, "nccl_log");
  }
}

TEST(OwnerOfAll, IsNobodyWhereAnythingElseStandsAmongTheLines) {
  const std::string own = Lines(2);
  for (const std::string other :
       {"Traceback (most recent call last):\n", "\n", "[rank3]: RuntimeError: NCCL error\n",
        "gpu017:4121:4388 [3] misc/socket.cc:72 NCCL WARN socketProgress: Connection closed by remote peer\n",
        "[1,3]<stdout>:gpu017:4121:4388 [3] NCCL INFO Connected all rings\n", "gpu017:4121:43 NCCL INFO cut\n"}) {
    EXPECT_EQ(OwnerOfAll(own + other + own), nullptr) << other;
    EXPECT_EQ(OwnerOfAll(own + other), nullptr) << other;
  }
  EXPECT_EQ(OwnerOfAll(own + "Trace"), nullptr);
  EXPECT_EQ(OwnerOfAll(""), nullptr);
  EXPECT_EQ(OwnerOfAll("NCCL version 2.27.7+cuda12.9\n"), nullptr);
}

// What nobody else is asked about is also what everybody else would have left alone.
TEST(Detect, GivesTheSameReadersWhereNobodyElseIsAsked) {
  const std::string own = Lines(700);
  const Detection alone = Detect(own, "log");
  const Detection asked = Detect("\n" + own, "log");
  EXPECT_TRUE(alone.certain);
  EXPECT_FALSE(asked.certain);
  EXPECT_EQ(alone.readers, asked.readers);
}

TEST(ReadFragment, FindsAnErrorAtTheEndOfALongLogOfNccl) {
  const std::string text = Lines(9000) +
                           "[rank3]: Traceback (most recent call last):\n"
                           "[rank3]:   File \"/home/u/train.py\", line 88, in <module>\n"
                           "[rank3]:     main()\n"
                           "[rank3]: ValueError: no such bucket\n";
  const Fragment fragment = ReadFragment("out.log", text, {});
  EXPECT_EQ(fragment.format, "nccl_log+torch_log");
  bool found = false;
  for (const Event& event : fragment.events) found = found || event.kind == EventKind::exception;
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace tacet
