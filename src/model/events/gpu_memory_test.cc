// SPDX-License-Identifier: Apache-2.0
#include "model/events/gpu_memory.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(GpuMemory, TellsTheOtherProcessThatHoldsMostOfIt) {
  const GpuMemoryUse use = ReadGpuMemoryUse(
      "CUDA out of memory. Tried to allocate 3.91 GiB. GPU 3 has a total capacity of 79.15 GiB of which 1.22 GiB is "
      "free. Process 51833 has 41.08 GiB memory in use. Including non-PyTorch memory, this process has 36.84 GiB "
      "memory "
      "in use. Of the allocated memory 34.90 GiB is allocated by PyTorch, and 1.01 GiB is reserved by PyTorch but "
      "unallocated.");
  EXPECT_EQ(use.device, 3);
  EXPECT_NEAR(use.tried, 3.91, 1e-9);
  EXPECT_NEAR(use.total, 79.15, 1e-9);
  EXPECT_NEAR(use.free, 1.22, 1e-9);
  EXPECT_NEAR(use.own, 36.84, 1e-9);
  EXPECT_NEAR(use.unallocated, 1.01, 1e-9);
  ASSERT_EQ(use.others.size(), 1U);
  EXPECT_EQ(use.others[0].pid, 51833);
  EXPECT_TRUE(use.OthersFillIt());
  EXPECT_FALSE(use.IsFragmented());
}

TEST(GpuMemory, TakesTheOnlyProcessOfAContainerForTheProcessItself) {
  const GpuMemoryUse use = ReadGpuMemoryUse(
      "CUDA out of memory. Tried to allocate 9.28 GiB. GPU 0 has a total capacity of 79.10 GiB of which 4.31 GiB is "
      "free. Process 2211834 has 74.78 GiB memory in use. Of the allocated memory 70.02 GiB is allocated by PyTorch, "
      "and 2.11 GiB is reserved by PyTorch but unallocated.");
  EXPECT_TRUE(use.others.empty());
  EXPECT_NEAR(use.own, 74.78, 1e-9);
  EXPECT_FALSE(use.OthersFillIt());
}

TEST(GpuMemory, FindsItselfAmongSeveralProcessesOfAContainer) {
  const GpuMemoryUse use = ReadGpuMemoryUse(
      "CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 100.00 MiB "
      "is "
      "free. Process 311 has 17.00 GiB memory in use. Process 412 has 6.40 GiB memory in use. Of the allocated memory "
      "5.90 GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.");
  ASSERT_EQ(use.others.size(), 1U);
  EXPECT_EQ(use.others[0].pid, 311);
  EXPECT_TRUE(use.OthersFillIt());
}

TEST(GpuMemory, ReadsTheFormBefore21AndSeesFragmentation) {
  const GpuMemoryUse use = ReadGpuMemoryUse(
      "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 1; 7.79 GiB total capacity; 5.94 GiB already allocated; "
      "18.31 MiB free; 6.10 GiB reserved in total by PyTorch)");
  EXPECT_EQ(use.device, 1);
  EXPECT_NEAR(use.total, 7.79, 1e-9);
  EXPECT_NEAR(use.unallocated, 0.16, 1e-6);
  EXPECT_TRUE(use.IsFragmented());
  EXPECT_TRUE(use.old_form);
  EXPECT_FALSE(use.OthersFillIt());
}

TEST(GpuMemory, AFewMegabytesOfAFullGpuAreNoFragmentation) {
  const GpuMemoryUse use = ReadGpuMemoryUse(
      "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 2 has a total capacity of 14.62 GiB of which 5.25 MiB is "
      "free. Including non-PyTorch memory, this process has 14.61 GiB memory in use. Of the allocated memory 14.40 GiB "
      "is allocated by PyTorch, and 25.06 MiB is reserved by PyTorch but unallocated.");
  EXPECT_FALSE(use.IsFragmented());
}

TEST(GpuMemory, SeesTheLimitOfTheProcessWhereTheGpuHasRoom) {
  const GpuMemoryUse use = ReadGpuMemoryUse(
      "CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 139.80 GiB of which 116.44 GiB "
      "is free. Process 9123 has 12.00 GiB memory in use. Process 9154 has 2.60 GiB memory in use. 2.80 GiB allowed; "
      "Of "
      "the allocated memory 2.56 GiB is allocated by PyTorch, and 1.76 MiB is reserved by PyTorch but unallocated.");
  EXPECT_NEAR(use.allowed, 2.80, 1e-9);
  EXPECT_TRUE(use.HitsOwnLimit());
  EXPECT_FALSE(use.OthersFillIt());
  EXPECT_FALSE(use.old_form);
}

TEST(GpuMemory, LeavesOtherWordsAlone) {
  const GpuMemoryUse use = ReadGpuMemoryUse("CUDA error: out of memory");
  EXPECT_EQ(use.device, -1);
  EXPECT_LT(use.total, 0);
  EXPECT_FALSE(use.OthersFillIt());
  EXPECT_FALSE(use.IsFragmented());
}

TEST(GpuMemory, ReadsWhatOtherFrameworksWereRefused) {
  EXPECT_NEAR(ReadGpuMemoryUse("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.").tried, 8,
              1e-9);
  const GpuMemoryUse use = ReadGpuMemoryUse(
      "Out of memory error on GPU 1. Cannot allocate 2.500000GB memory on GPU 1, 30.100000GB memory has been "
      "allocated and available memory is only 512.000000MB.");
  EXPECT_EQ(use.device, 1);
  EXPECT_NEAR(use.tried, 2.5, 1e-9);
  EXPECT_NEAR(use.free, 0.5, 1e-9);
  EXPECT_FALSE(use.HitsOwnLimit());
  EXPECT_FALSE(use.OthersFillIt());
}

TEST(GpuMemory, TheDriverTellsNoAmount) {
  EXPECT_TRUE(ReadGpuMemoryUse("RuntimeError: CUDA error: out of memory").of_driver);
  EXPECT_FALSE(ReadGpuMemoryUse("CUDA out of memory. Tried to allocate 2.00 GiB.").of_driver);
  EXPECT_FALSE(ReadGpuMemoryUse("torch.OutOfMemoryError: CUDA out of memory.").of_driver);
}

}  // namespace
}  // namespace tacet
