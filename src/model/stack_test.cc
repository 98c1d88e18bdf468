// SPDX-License-Identifier: Apache-2.0
#include "model/stack.h"

#include <gtest/gtest.h>

namespace tacet {
namespace {

constexpr std::string_view kSite = "/opt/venv/lib/python3.12/site-packages/";

FrameKind InLibrary(std::string_view function, std::string_view file) {
  return ClassifyFrame(function, std::string(kSite) + std::string(file));
}

TEST(ClassifyFrame, TheUsersOwnCodeIsUserCode) {
  EXPECT_EQ(ClassifyFrame("step", "/srv/train/train.py"), FrameKind::user);
  EXPECT_EQ(ClassifyFrame("<module>", "train.py"), FrameKind::user);
  EXPECT_EQ(ClassifyFrame("f", "<string>"), FrameKind::user);
  EXPECT_EQ(ClassifyFrame("nccl_warmup", "/home/nccl/train.py"), FrameKind::user) << "a name is not enough";
  EXPECT_EQ(ClassifyFrame("train_step", "/workspace/Megatron-LM/megatron/training/training.py"), FrameKind::user);
}

TEST(ClassifyFrame, CollectivesAndTheirSetUpAreCommunication) {
  for (const char* function :
       {"all_reduce", "barrier", "init_process_group", "destroy_process_group", "_new_process_group_helper", "isend"})
    EXPECT_EQ(InLibrary(function, "torch/distributed/distributed_c10d.py"), FrameKind::communication) << function;
  EXPECT_EQ(ClassifyFrame("all_reduce", "torch/distributed/distributed_c10d.py"), FrameKind::communication)
      << "py-spy's short form";
  EXPECT_EQ(InLibrary("wait_tensor", "torch/distributed/_functional_collectives.py"), FrameKind::communication);
  EXPECT_EQ(InLibrary("_sync_buffers", "torch/nn/parallel/distributed.py"), FrameKind::communication);
  EXPECT_EQ(InLibrary("_verify_param_shape_across_processes", "torch/distributed/utils.py"), FrameKind::communication);
  EXPECT_EQ(InLibrary("recv_tensor_dict", "vllm/distributed/parallel_state.py"), FrameKind::communication);
  EXPECT_EQ(InLibrary("get_tp_group", "vllm/distributed/parallel_state.py"), FrameKind::framework);
  EXPECT_EQ(InLibrary("_recursive_to", "torch/distributed/utils.py"), FrameKind::framework);
  EXPECT_EQ(ClassifyFrame("ncclGroupEndInternal", "group.cc"), FrameKind::communication);
  EXPECT_EQ(ClassifyFrame("c10d::ProcessGroupNCCL::allreduce(int)", "/x/libtorch_cuda.so"), FrameKind::communication);
  EXPECT_EQ(ClassifyFrame("bootstrapNetRecv", "bootstrap.cc"), FrameKind::communication);
}

TEST(ClassifyFrame, WhatOnlySurroundsTheUsersCodeIsNotCommunication) {
  EXPECT_EQ(InLibrary("forward", "torch/distributed/fsdp/fully_sharded_data_parallel.py"), FrameKind::framework);
  EXPECT_EQ(InLibrary("forward", "torch/nn/parallel/distributed.py"), FrameKind::framework);
  EXPECT_EQ(InLibrary("wrapper", "torch/distributed/c10d_logger.py"), FrameKind::framework);
  EXPECT_EQ(InLibrary("save", "torch/distributed/checkpoint/state_dict_saver.py"), FrameKind::framework);
  EXPECT_EQ(InLibrary("run", "torch/distributed/run.py"), FrameKind::framework);
  EXPECT_EQ(InLibrary("get_rank", "torch/distributed/distributed_c10d.py"), FrameKind::framework);
}

TEST(ClassifyFrame, WaitsForTheDevice) {
  EXPECT_EQ(InLibrary("synchronize", "torch/cuda/__init__.py"), FrameKind::device_wait);
  EXPECT_EQ(InLibrary("synchronize", "torch/cuda/streams.py"), FrameKind::device_wait);
  EXPECT_EQ(InLibrary("wait_stream", "torch/cuda/streams.py"), FrameKind::framework) << "does not block the host";
  EXPECT_EQ(InLibrary("__format__", "torch/_tensor.py"), FrameKind::device_wait);
  EXPECT_EQ(InLibrary("backward", "torch/_tensor.py"), FrameKind::framework);
  EXPECT_EQ(ClassifyFrame("cudaStreamSynchronize", "libcudart.so.12"), FrameKind::device_wait);
  EXPECT_EQ(ClassifyFrame("??", "/lib/x86_64-linux-gnu/libcuda.so.1"), FrameKind::device_wait);
  EXPECT_EQ(ClassifyFrame("item", "<built-in>"), FrameKind::device_wait);
}

TEST(ClassifyFrame, WaitsOfTheHost) {
  EXPECT_EQ(ClassifyFrame("wait", "/usr/lib/python3.10/threading.py"), FrameKind::lock);
  EXPECT_EQ(ClassifyFrame("run", "/usr/lib/python3.10/threading.py"), FrameKind::interpreter);
  EXPECT_EQ(ClassifyFrame("get", "queue.py"), FrameKind::lock);
  EXPECT_EQ(ClassifyFrame("wait", "torch/utils/file_baton.py"), FrameKind::lock);
  EXPECT_EQ(ClassifyFrame("acquire", "/opt/venv/lib/python3.11/site-packages/filelock/_api.py"), FrameKind::lock);
  EXPECT_EQ(ClassifyFrame("sleep", "<built-in>"), FrameKind::lock);
  EXPECT_EQ(ClassifyFrame("time_sleep", "./Modules/timemodule.c"), FrameKind::lock);
  EXPECT_EQ(ClassifyFrame("take_gil", "Python/ceval_gil.h"), FrameKind::lock);
  EXPECT_EQ(ClassifyFrame("readinto", "/opt/conda/lib/python3.10/socket.py"), FrameKind::io);
  EXPECT_EQ(InLibrary("_load", "torch/serialization.py"), FrameKind::io);
}

TEST(ClassifyFrame, LibrariesAndTheInterpreter) {
  EXPECT_EQ(InLibrary("forward", "torch/nn/modules/linear.py"), FrameKind::framework);
  EXPECT_EQ(ClassifyFrame("_call_impl", "torch/nn/modules/module.py"), FrameKind::framework);
  EXPECT_EQ(ClassifyFrame("call", "/tmp/torchinductor_me/ab/cabcd.py"), FrameKind::framework);
  EXPECT_EQ(ClassifyFrame("_find_and_load", "<frozen importlib._bootstrap>"), FrameKind::interpreter);
  EXPECT_EQ(ClassifyFrame("start_thread", ""), FrameKind::framework);
}

TEST(StackTable, EqualStacksAreOneAndDifferentOnesAreNot) {
  StackTable table;
  const StackId one = table.Intern({{StringId{1}, StringId{2}, 3}});
  EXPECT_EQ(table.Intern({{StringId{1}, StringId{2}, 3}}), one);
  EXPECT_NE(table.Intern({{StringId{1}, StringId{2}, 4}}), one);
  EXPECT_EQ(table.Intern({}), StackId{});
}

}  // namespace
}  // namespace tacet
