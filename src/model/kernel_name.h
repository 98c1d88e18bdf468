// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "model/operation.h"
#include "model/timeline.h"

namespace tacet {

// What a kernel's name tells. Communication is NCCL and RCCL under all their names, and the libraries that move data
// between GPUs with kernels of their own (NVSHMEM, DeepEP, MSCCL++, custom all-reduces).
//   ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)    NCCL up to 2.18
//   ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)    NCCL from 2.19
//   ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f32(...)                                  NCCL from 2.27
//   ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)                         RCCL: the operation is not named
GpuWork ClassifyKernel(std::string_view name);
bool IsCollectiveLibraryKernel(
    std::string_view name);  // NCCL or RCCL: one such kernel is one operation of a communicator

// The operation in a NCCL kernel's name; a SendRecv kernel is a batch whose members are not known. The name never tells
// the real algorithm or protocol.
OpKind OperationOfKernel(std::string_view name);
DataType DataTypeOfKernel(std::string_view name);

}  // namespace tacet
