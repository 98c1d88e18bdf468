// SPDX-License-Identifier: Apache-2.0
#include "model/refusals.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tacet {
namespace {

TEST(Refusals, EachHasOneIdASentenceAndAStep) {
  std::set<std::string> ids;
  for (const Refusal& one : AllRefusals()) {
    EXPECT_TRUE(ids.insert(std::string(one.id)).second) << one.id;
    EXPECT_FALSE(one.sentence.empty() || one.sentence.ends_with('.')) << one.id;
    EXPECT_TRUE(one.steps[0].ends_with('.')) << one.id;
    EXPECT_EQ(FindRefusal(one.id), &one);
  }
  EXPECT_EQ(FindRefusal("no such"), nullptr);
}

TEST(Refusals, AreKnownByTheWordsOfThePrograms) {
  const auto id = [](std::string_view message) {
    const Refusal* found = ClassifyRefusal(message);
    return found ? std::string(found->id) : std::string();
  };
  EXPECT_EQ(id("Distributed package doesn't have NCCL built in"), "no-nccl-build");
  EXPECT_EQ(id("use_libuv was requested but PyTorch was build without libuv support"), "no-libuv");
  EXPECT_EQ(id("[TensorRT-LLM][ERROR] Assertion failed: mpiSize == tp * pp"), "engine-sizes");
  EXPECT_EQ(id("world size (6) is not divisible by tensor parallel size (4)"), "parallel-sizes");
  EXPECT_EQ(id("AssertionError Invalid parallel dims: dp_shard(4) * tp(4) != WORLD_SIZE(8)"), "parallel-sizes");
  EXPECT_EQ(id("RuntimeError synStatus=20 [Device already acquired] Device acquire failed."), "device-held");
  EXPECT_EQ(id("TPU initialization failed: open(/dev/accel0): Device or resource busy"), "device-held");
  EXPECT_EQ(id("FileExistsError [Errno 17] File exists: '/000003_locals'"), "streaming-leftover");
  EXPECT_EQ(id("_pickle.UnpicklingError Weights only load failed. This file can still be loaded"), "weights-only");
  EXPECT_EQ(id("Error(s) in loading state_dict for Llama:\n\tsize mismatch for a.weight: copying a param with shape "
               "torch.Size([8, 4]) from checkpoint, the shape in current model is torch.Size([0])."),
            "partitioned-model");
  EXPECT_EQ(id("CUDA error: invalid device ordinal"), "device-ordinal");
  EXPECT_EQ(id("PytorchStreamReader failed reading zip archive: failed finding central directory"), "damaged-file");
  EXPECT_EQ(id("OSError: [Errno 116] Stale file handle: '/nfs/a.arrow'"), "stale-file");
  EXPECT_EQ(id("RuntimeError: Expected to mark a variable ready only once. This error is"), "marked-twice");
  EXPECT_EQ(id("Global shape mismatch for loaded (torch.Size([8, 4])) and expected ((16, 4)) tensor for key a.weight"),
            "checkpoint-shapes");
  EXPECT_EQ(id("Error(s) in loading state_dict for Net:\n\tMissing key(s): a.weight"), "checkpoint-unlike-model");
  EXPECT_EQ(id("RuntimeError oneCCL: atl_ofi.cpp:80 init: EXCEPTION: no ofi providers found"), "no-fabric-provider");
  EXPECT_EQ(id("RuntimeError CUDA error: initialization error\nraised in DataLoader worker process 0"), "forked-cuda");
  EXPECT_EQ(id("an error of its command line unrecognized arguments: --lr"), "command-line");
  EXPECT_EQ(id("ValueError Some specified arguments are not used by the HfArgumentParser: ['--lrr']"), "command-line");
  EXPECT_EQ(id("an error of its command line unrecognized arguments: --local-rank=0"), "unknown-argument");
  // Words that share half with one of them. CUDA that does not start in the program itself may be the driver's fault.
  EXPECT_EQ(id("RuntimeError CUDA error: initialization error"), "");
  EXPECT_EQ(id("PytorchStreamReader failed locating file constants.pkl: file not found"), "");
  EXPECT_EQ(id("FileExistsError [Errno 17] File exists: '/out/run7'"), "");
  EXPECT_EQ(id("OSError [Errno 16] Device or resource busy: '/mnt/.nfs0001'"), "");
  EXPECT_EQ(id("hidden size 1000 is not divisible by 16 heads"), "");
  EXPECT_EQ(id("the NCCL communicator is not built"), "");
}

}  // namespace
}  // namespace tacet
