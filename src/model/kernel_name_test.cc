// SPDX-License-Identifier: Apache-2.0
#include "model/kernel_name.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

TEST(KernelName, KnowsNcclUnderAllItsNames) {
  struct Case {
    const char* name;
    OpKind kind;
    DataType type;
  };
  const Case cases[] = {
      {"ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)", OpKind::all_reduce,
       DataType::float32},
      {"ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", OpKind::all_gather,
       DataType::int8},
      {"ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)", OpKind::coalesced,
       DataType::int8},
      {"ncclKernel_Broadcast_RING_LL_Sum_uint8_t(ncclDevComm*, unsigned long, ncclWork*)", OpKind::broadcast,
       DataType::uint8},
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", OpKind::all_reduce,
       DataType::bfloat16},
      {"ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", OpKind::reduce_scatter,
       DataType::float32},
      {"ncclDevKernel_Reduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", OpKind::reduce, DataType::float16},
      {"ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", OpKind::all_gather, DataType::unknown},
      {"ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", OpKind::coalesced, DataType::unknown},
      {"ncclSymDevKernel_AllReduce_AGxLLMC_R_sum_f32(ncclSymDevArgs)", OpKind::all_reduce, DataType::float32},
      {"ncclSymkDevKernel_ReduceScatter_LDMC_sum_bf16(ncclSymkDevWorkArgs4K)", OpKind::reduce_scatter,
       DataType::bfloat16},
      {"ncclSymkDevKernel_AllGather_STMC(ncclSymkDevWorkArgs4K)", OpKind::all_gather, DataType::unknown},
      // RCCL names neither operation nor type.
      {"ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", OpKind::unknown, DataType::unknown},
      {"ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", OpKind::unknown, DataType::unknown},
      {"void ncclDevKernel_Generic_2(ncclDevKernelArgsStorage<4096ul>)", OpKind::unknown, DataType::unknown},
  };
  for (const Case& one : cases) {
    EXPECT_TRUE(IsCollectiveLibraryKernel(one.name)) << one.name;
    EXPECT_EQ(ClassifyKernel(one.name), GpuWork::communication) << one.name;
    EXPECT_EQ(OperationOfKernel(one.name), one.kind) << one.name;
    EXPECT_EQ(DataTypeOfKernel(one.name), one.type) << one.name;
  }
}

TEST(KernelName, KnowsOtherLibrariesThatMoveDataBetweenDevices) {
  for (const char* name :
       {"void deep_ep::internode::dispatch<false, 4>(int4*, float*)", "nvshmemi_proxy_barrier_kernel(int)",
        "void vllm::cross_device_reduce_1stage<__half, 8>(RankData*)", "one_shot_all_reduce_kernel<float, 16>"})
    EXPECT_EQ(ClassifyKernel(name), GpuWork::communication) << name;
}

TEST(KernelName, LookAlikesCompute) {
  for (const char* name :
       {"void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(Params)", "splitKreduce_kernel<float>(int)",
        "void at::native::reduce_kernel<512, 1>(at::native::ReduceOp<float>)", "MyKernel(ncclComm*)",
        "void fused<ncclTag>(float*)", "broadcast_add_kernel(float*)", ""})
    EXPECT_EQ(ClassifyKernel(name), GpuWork::compute) << name;
  EXPECT_EQ(ClassifyKernel("Memcpy HtoD (Pinned -> Device)"), GpuWork::copy);
  EXPECT_EQ(ClassifyKernel("Memset (Device)"), GpuWork::memset);
}

}  // namespace
}  // namespace tacet
