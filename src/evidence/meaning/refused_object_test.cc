// SPDX-License-Identifier: Apache-2.0
#include "evidence/meaning/refused_object.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(RefusedObject, NamesTheKeyAndBothShapes) {
  EXPECT_EQ(RefusedObject("Global shape mismatch for loaded (torch.Size([128256, 4096])) and expected ((128512, 4096)) "
                          "tensor for key embedding.weight"),
            "embedding.weight is [128256, 4096] in the checkpoint and [128512, 4096] in the model");
  EXPECT_EQ(RefusedObject("Error(s) in loading state_dict for Net:\n\tsize mismatch for fc.bias: copying a param with "
                          "shape torch.Size([10]) from checkpoint, the shape in current model is torch.Size([37])."),
            "fc.bias is [10] in the checkpoint and [37] in the model");
  EXPECT_EQ(RefusedObject("Size mismatch between saved torch.Size([8, 4]) and current: torch.Size([16, 4]) for m.w"),
            "m.w is [8, 4] in the checkpoint and [16, 4] in the model");
}

TEST(RefusedObject, NamesTheArgumentAndTheParameter) {
  EXPECT_EQ(RefusedObject("hidden_size value from checkpoint (4096) is not equal to the input argument value (5120)."),
            "hidden_size is 4096 in the checkpoint and 5120 in the arguments");
  EXPECT_EQ(RefusedObject("Parameter at index 4 with name a.b.weight has been marked as ready twice."), "a.b.weight");
  EXPECT_EQ(RefusedObject("Parameter at index 4 has been marked as ready twice."), "index 4");
}

TEST(RefusedObject, NamesTheRankWhoseGradientNormAloneDiffers) {
  const std::string head = "gradients are inconsistent between workers\ngrad_norm across the workers:\n";
  EXPECT_EQ(RefusedObject(head + "rank   0 = 1.13\nrank   1 = 1.13\nrank   2 = 4.9\n"),
            "the gradient norm is 4.9 on rank 2 and 1.13 on the others");
  EXPECT_EQ(RefusedObject(head + "rank   0 = 1.13\nrank   1 = 4.9\n"), "") << "either may be the odd one";
  EXPECT_EQ(RefusedObject(head + "rank   0 = 1.13\nrank   1 = 2.5\nrank   2 = 4.9\n"), "");
}

TEST(RefusedObject, IsEmptyWhereTheMessageIsCutOrNamesNothing) {
  EXPECT_EQ(RefusedObject("Global shape mismatch for loaded (torch.Size([128256, 4096])) and expec"), "");
  EXPECT_EQ(RefusedObject("Size mismatch between saved and current: for"), "");
  EXPECT_EQ(RefusedObject("Parameter at index "), "");
  EXPECT_EQ(RefusedObject("invalid device ordinal"), "");
}

}  // namespace
}  // namespace tacet
