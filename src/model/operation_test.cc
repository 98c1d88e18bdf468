// SPDX-License-Identifier: Apache-2.0

#include "model/operation.h"

#include <gtest/gtest.h>

#include <string>

namespace tacet {
namespace {

struct Expected {
  const char* name;
  OpKind kind;
};

void Check(std::initializer_list<Expected> table) {
  for (const auto& [name, kind] : table) EXPECT_EQ(Name(ParseOpKind(name)), Name(kind)) << "'" << name << "'";
}

TEST(ParseOpKind, KnowsTheFlightRecordersNames) {
  Check({{"nccl:all_reduce", OpKind::all_reduce},
         {"nccl:all_reduce_sparse", OpKind::all_reduce},
         {"nccl:allreduce_coalesced", OpKind::all_reduce},
         {"nccl:broadcast", OpKind::broadcast},
         {"nccl:_broadcast_oop", OpKind::broadcast},
         {"nccl:reduce", OpKind::reduce},
         {"nccl:_reduce_oop", OpKind::reduce},
         {"nccl:all_gather", OpKind::all_gather},
         {"nccl:_all_gather_base", OpKind::all_gather},
         {"nccl:all_gather_into_tensor_coalesced", OpKind::all_gather},
         {"nccl:reduce_scatter", OpKind::reduce_scatter},
         {"nccl:_reduce_scatter_base", OpKind::reduce_scatter},
         {"nccl:reduce_scatter_tensor_coalesced", OpKind::reduce_scatter},
         {"nccl:all_reduce_barrier", OpKind::barrier},
         {"nccl:all_to_all", OpKind::all_to_all},
         {"nccl:send 0->1", OpKind::send},
         {"nccl:recv 1<-0", OpKind::recv},
         {"nccl:gather", OpKind::gather},
         {"nccl:scatter", OpKind::scatter},
         {"nccl:coalesced", OpKind::coalesced}});
}

TEST(ParseOpKind, TellsTheEntryThatClosesACoalescedGroupFromItsMembers) {
  Check({{"nccl:ALLGATHER_coalesced", OpKind::coalesced},
         {"nccl:REDUCE_SCATTER_coalesced", OpKind::coalesced},
         {"nccl:_ALLGATHER_BASE_coalesced", OpKind::coalesced},
         {"nccl:allreduce_coalesced", OpKind::all_reduce},
         {"ALLREDUCE_COALESCED", OpKind::all_reduce}});
}

TEST(ParseOpKind, AssumesNoFixedPrefix) {
  for (const std::string prefix : {"nccl:", "gloo:", "xccl:", "ncclx:", "nccl2:", "hccl:", "c10d::", ""})
    EXPECT_EQ(ParseOpKind(prefix + "all_reduce"), OpKind::all_reduce) << prefix;
}

TEST(ParseOpKind, KnowsTheWatchdogsNames) {
  Check({{"BROADCAST", OpKind::broadcast},
         {"ALLREDUCE", OpKind::all_reduce},
         {"ALLREDUCE_COALESCED", OpKind::all_reduce},
         {"REDUCE", OpKind::reduce},
         {"ALLGATHER", OpKind::all_gather},
         {"_ALLGATHER_BASE", OpKind::all_gather},
         {"ALLGATHER_COALESCED", OpKind::all_gather},
         {"GATHER", OpKind::gather},
         {"SCATTER", OpKind::scatter},
         {"REDUCE_SCATTER", OpKind::reduce_scatter},
         {"ALLTOALL_BASE", OpKind::all_to_all},
         {"ALLTOALL", OpKind::all_to_all},
         {"SEND", OpKind::send},
         {"RECV", OpKind::recv},
         {"RECVANYSOURCE", OpKind::recv},
         {"BARRIER", OpKind::barrier},
         {"_REDUCE_SCATTER_BASE", OpKind::reduce_scatter},
         {"COALESCED", OpKind::coalesced},
         {"_ALLREDUCE_SPARSE", OpKind::all_reduce},
         {"UNKNOWN", OpKind::unknown}});
}

TEST(ParseOpKind, KnowsTheProfilersNames) {
  Check({{"allreduce", OpKind::all_reduce},
         {"allreduce_coalesced", OpKind::all_reduce},
         {"_allgather_base", OpKind::all_gather},
         {"allgather", OpKind::all_gather},
         {"allgather_into_tensor_coalesced", OpKind::all_gather},
         {"_reduce_scatter_base", OpKind::reduce_scatter},
         {"reduce_scatter", OpKind::reduce_scatter},
         {"reduce_scatter_tensor_coalesced", OpKind::reduce_scatter},
         {"all_to_all", OpKind::all_to_all},
         {"all_to_allv", OpKind::all_to_all},
         {"broadcast", OpKind::broadcast},
         {"reduce", OpKind::reduce},
         {"gather", OpKind::gather},
         {"scatter", OpKind::scatter},
         {"send", OpKind::send},
         {"recv", OpKind::recv},
         {"barrier", OpKind::barrier},
         {"wait", OpKind::unknown}});
}

TEST(ParseOpKind, KnowsNcclsOwnNames) {
  Check({{"AllGather", OpKind::all_gather},
         {"AllGatherV", OpKind::all_gather},
         {"AllReduce", OpKind::all_reduce},
         {"AlltoAll", OpKind::all_to_all},
         {"AllToAll", OpKind::all_to_all},
         {"Broadcast", OpKind::broadcast},
         {"Gather", OpKind::gather},
         {"Recv", OpKind::recv},
         {"Reduce", OpKind::reduce},
         {"ReduceScatter", OpKind::reduce_scatter},
         {"Scatter", OpKind::scatter},
         {"Send", OpKind::send},
         {"SendRecv", OpKind::coalesced},
         {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", OpKind::all_reduce},
         {"ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", OpKind::reduce_scatter},
         {"ncclDevKernel_SendRecv", OpKind::coalesced},
         {"Signal", OpKind::unknown},
         {"WaitSignal", OpKind::unknown},
         {"", OpKind::unknown},
         {"nccl:", OpKind::unknown}});
}

TEST(ParseOpKind, ReadsItsOwnNamesBack) {
  for (int i = 0; i <= static_cast<int>(OpKind::coalesced); ++i)
    EXPECT_EQ(ParseOpKind(Name(static_cast<OpKind>(i))), static_cast<OpKind>(i)) << i;
}

TEST(ParseDataType, KnowsEveryToolsNames) {
  const struct {
    const char* name;
    DataType type;
  } table[] = {{"Float", DataType::float32},
               {"float", DataType::float32},
               {"torch.float32", DataType::float32},
               {"ncclFloat32", DataType::float32},
               {"ncclFloat", DataType::float32},
               {"f32", DataType::float32},
               {"fp32", DataType::float32},
               {"Double", DataType::float64},
               {"ncclFloat64", DataType::float64},
               {"Half", DataType::float16},
               {"ncclFloat16", DataType::float16},
               {"ncclHalf", DataType::float16},
               {"half", DataType::float16},
               {"BFloat16", DataType::bfloat16},
               {"c10::BFloat16", DataType::bfloat16},
               {"ncclBfloat16", DataType::bfloat16},
               {"torch.bfloat16", DataType::bfloat16},
               {"bf16", DataType::bfloat16},
               {"Long", DataType::int64},
               {"torch.int64", DataType::int64},
               {"ncclInt64", DataType::int64},
               {"Int", DataType::int32},
               {"int32", DataType::int32},
               {"ncclUint32", DataType::uint32},
               {"ncclUint64", DataType::uint64},
               {"Short", DataType::int16},
               {"Char", DataType::int8},
               {"ncclInt8", DataType::int8},
               {"Byte", DataType::uint8},
               {"ncclUint8", DataType::uint8},
               {"Bool", DataType::boolean},
               {"Float8_e4m3fn", DataType::float8_e4m3},
               {"ncclFloat8e4m3", DataType::float8_e4m3},
               {"torch.float8_e5m2", DataType::float8_e5m2},
               {"ncclFloat8e5m2", DataType::float8_e5m2},
               {"ComplexFloat", DataType::complex64},
               {"ComplexDouble", DataType::complex128},
               {"", DataType::unknown},
               {"nullptr (uninitialized)", DataType::unknown},
               {"floating", DataType::unknown}};
  for (const auto& [name, type] : table) EXPECT_EQ(Name(ParseDataType(name)), Name(type)) << "'" << name << "'";
}

TEST(ParseDataType, ReadsItsOwnNamesBack) {
  for (int i = 0; i <= static_cast<int>(DataType::complex128); ++i)
    EXPECT_EQ(ParseDataType(Name(static_cast<DataType>(i))), static_cast<DataType>(i)) << i;
}

TEST(NcclCodes, AreThoseOfTheHeader) {
  EXPECT_EQ(DataTypeFromNccl(0), DataType::int8);
  EXPECT_EQ(DataTypeFromNccl(7), DataType::float32);
  EXPECT_EQ(DataTypeFromNccl(9), DataType::bfloat16);
  EXPECT_EQ(DataTypeFromNccl(11), DataType::float8_e5m2);
  EXPECT_EQ(DataTypeFromNccl(12), DataType::unknown);
  EXPECT_EQ(DataTypeFromNccl(-1), DataType::unknown);
  EXPECT_EQ(ReduceOpFromNccl(0), ReduceOp::sum);
  EXPECT_EQ(ReduceOpFromNccl(2), ReduceOp::max);
  EXPECT_EQ(ReduceOpFromNccl(4), ReduceOp::avg);
  EXPECT_EQ(ReduceOpFromNccl(5), ReduceOp::user);
  EXPECT_EQ(ReduceOpFromNccl(-1), ReduceOp::unknown);
}

TEST(BytesOf, IsTheSizeOfOneElement) {
  EXPECT_EQ(BytesOf(DataType::bfloat16), 2);
  EXPECT_EQ(BytesOf(DataType::float8_e4m3), 1);
  EXPECT_EQ(BytesOf(DataType::complex128), 16);
  EXPECT_EQ(BytesOf(DataType::unknown), 0);
  for (int i = 1; i <= static_cast<int>(DataType::complex128); ++i)
    EXPECT_GT(BytesOf(static_cast<DataType>(i)), 0) << i;
}

TEST(IsPointToPoint, IsTrueForSendAndRecvOnly) {
  for (int i = 0; i <= static_cast<int>(OpKind::coalesced); ++i) {
    const auto kind = static_cast<OpKind>(i);
    EXPECT_EQ(IsPointToPoint(kind), kind == OpKind::send || kind == OpKind::recv);
  }
}

}  // namespace
}  // namespace tacet
