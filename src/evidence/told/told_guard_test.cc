// SPDX-License-Identifier: Apache-2.0
#include "evidence/told/told_guard.h"

#include <gtest/gtest.h>

#include <string>

namespace tacet {
namespace {

std::string GuardedIn(std::string_view text) {
  Fragment fragment;
  AddToldGuard(text, fragment);
  if (fragment.events.size() != 1) return "";
  const auto& call = fragment.events[0].As<GuardedCall>();
  return call.call + " if " + call.condition;
}

TEST(ToldGuard, FindsWhatOnlySomeRanksCall) {
  EXPECT_EQ(GuardedIn("if accelerator.is_main_process:\n    preds = accelerator.gather_for_metrics(out)\n"),
            "accelerator.gather_for_metrics if accelerator.is_main_process");
  EXPECT_EQ(GuardedIn("import deepspeed\nif dist.get_rank() == 0:\n    if save:\n        engine.save_checkpoint(d)\n"),
            "engine.save_checkpoint if dist.get_rank() == 0");
  EXPECT_EQ(GuardedIn("if rank == 0:  # once\n\n    dist.barrier()\ntrain()\n"), "dist.barrier if rank == 0");
}

TEST(ToldGuard, WhatAllRanksCallIsNone) {
  for (const std::string_view text :
       {"if rank == 0:\n    print(1)\ndist.barrier()\n", "if rank == 0:\n    torch.save(x, path)\n",
        "if rank != 0:\n    dist.barrier()\nload()\nif rank == 0:\n    dist.barrier()\n",
        "if rank == 0:\n    dist.gather_object(x, out)\nelse:\n    dist.gather_object(x)\n",
        "if is_main_process or use_fsdp:\n    model.save_state(path)\n# FSDP\n", "if epoch == 0:\n    dist.barrier()\n",
        "if rank == 0:\n    # dist.barrier() hung here\n    print(1)\n",
        "  if rank == 0: hangs, and dist.barrier() is never left\n"})
    EXPECT_EQ(GuardedIn(text), "") << text;
}

TEST(ToldGuard, ThatOneRankSavesAWholeModelIsNoFault) {
  EXPECT_EQ(GuardedIn("if is_main_process:\n    trainer.save_state(path)\n"), "");
  EXPECT_EQ(GuardedIn("FSDP\nif is_main_process:\n    trainer.save_state(path)\n"),
            "trainer.save_state if is_main_process");
}

}  // namespace
}  // namespace tacet
