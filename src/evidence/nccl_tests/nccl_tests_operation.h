// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tacet {

// "all_reduce_perf" -> "all_reduce"; empty where the program is not known.
std::string OperationOfProgram(std::string_view program);
// "runs/nccl_allreduce.log" -> "all_reduce"; empty where the file's name says nothing.
std::string OperationOfPath(std::string_view path);
// From bus over algorithm bandwidth: only all_reduce has 2(n-1)/n, and only with three ranks or more.
std::string OperationOfFactor(int32_t ranks, double factor);
// The ranks of an all_reduce by the two bandwidths of one size, where their digits leave one number: the factor is
// 2(n-1)/n. -1 where they do not.
int32_t RanksOfFactor(double algorithm_gbs, double bus_gbs);
// Whether an operation can have this factor; true where nothing speaks against it.
bool FitsFactor(std::string_view operation, int32_t ranks, double factor);

}  // namespace tacet
