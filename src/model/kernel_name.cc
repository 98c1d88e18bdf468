// SPDX-License-Identifier: Apache-2.0
#include "model/kernel_name.h"

#include <algorithm>

namespace tacet {
namespace {

bool Has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// Up to the template or parameter list: "ncclDevKernel_AllReduce_Sum_bf16_RING_LL". Names of compute kernels mention
// anything in their parameters, so only this part is looked at.
std::string_view Stem(std::string_view name) { return name.substr(0, std::min(name.find('('), name.find('<'))); }

}  // namespace

bool IsCollectiveLibraryKernel(std::string_view name) {
  const std::string_view stem = Stem(name);
  return Has(stem, "nccl") || Has(stem, "NCCL") || Has(stem, "rccl") || Has(stem, "Nccl");
}

GpuWork ClassifyKernel(std::string_view name) {
  if (name.starts_with("Memcpy") || name.starts_with("CopyHostToDevice") || name.starts_with("CopyDeviceTo"))
    return GpuWork::copy;
  if (name.starts_with("Memset")) return GpuWork::memset;
  if (IsCollectiveLibraryKernel(name)) return GpuWork::communication;
  const std::string_view head = name.substr(0, 160);
  for (const std::string_view part :
       {"nvshmem", "deep_ep::", "mscclpp", "msccl", "cross_device_reduce", "one_shot_all_reduce", "two_shot_all_reduce",
        "multimem_all_reduce", "multimem_one_shot", "hccl"})
    if (Has(head, part)) return GpuWork::communication;
  return GpuWork::compute;
}

OpKind OperationOfKernel(std::string_view name) {
  const std::string_view stem = Stem(name);
  if (Has(stem, "SendRecv")) return OpKind::coalesced;
  if (Has(stem, "AllReduce") || Has(stem, "all_reduce") || Has(stem, "cross_device_reduce")) return OpKind::all_reduce;
  if (Has(stem, "AllGather")) return OpKind::all_gather;
  if (Has(stem, "ReduceScatter")) return OpKind::reduce_scatter;
  if (Has(stem, "AlltoAll") || Has(stem, "AllToAll")) return OpKind::all_to_all;
  if (Has(stem, "Broadcast")) return OpKind::broadcast;
  if (Has(stem, "Reduce_") || stem.ends_with("Reduce")) return OpKind::reduce;
  return OpKind::unknown;
}

DataType DataTypeOfKernel(std::string_view name) {
  std::string_view stem = Stem(name);
  // The type is one of the parts between underscores; old names have it last ("_Sum_int8_t"), new ones before the
  // algorithm.
  if (stem.ends_with("int8_t")) return Has(stem, "uint8_t") ? DataType::uint8 : DataType::int8;
  while (!stem.empty()) {
    const size_t at = stem.find('_');
    const DataType type = ParseDataType(stem.substr(0, at));
    if (type != DataType::unknown) return type;
    if (at == std::string_view::npos) break;
    stem.remove_prefix(at + 1);
  }
  return DataType::unknown;
}

}  // namespace tacet
