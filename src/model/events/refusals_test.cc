// SPDX-License-Identifier: Apache-2.0
#include "model/events/refusals.h"

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
  EXPECT_EQ(id("OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized."), "openmp-twice");
  EXPECT_EQ(id("OMP: Error #179: Function Can't open SHM failed:"), "openmp-shm");
  EXPECT_EQ(id("listen on any local network address. port: 29500, code: -99, name: EADDRNOTAVAIL"), "");
  EXPECT_EQ(id("The server socket has failed to listen on any local network address. code: -99, name: EADDRNOTAVAIL, "
               "message: address not available"),
            "address-not-local");
  EXPECT_EQ(id("FileNotFoundError [Errno 2] No such file or directory: '/ckpt/step-9/.metadata'"),
            "checkpoint-missing");
  EXPECT_EQ(id("FileNotFoundError [Errno 2] No such file or directory: '/data/a.txt'"), "");
  EXPECT_EQ(id("ValueError Total available GPUs 8 is less than total desired GPUs 16"), "too-few-gpus");
  EXPECT_EQ(id("libgomp: Thread creation failed: Resource temporarily unavailable"), "thread-limit");
  EXPECT_EQ(id("ray.exceptions.OutOfDiskError Local disk is full"), "ray-disk");
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
  EXPECT_EQ(id("requests.exceptions.ProxyError (MaxRetryError(\"HTTPSConnectionPool(host='hub.example', port=443): Max "
               "retries exceeded with url: /a"),
            "no-download");
  EXPECT_EQ(id("requests.exceptions.HTTPError 429 Client Error: Too Many Requests for url: https://hub.example"),
            "download-limited");
  EXPECT_EQ(id("huggingface_hub.errors.GatedRepoError 403 Client Error."), "download-refused");
  EXPECT_EQ(id("OSError org/model is not a local folder and is not a valid model identifier listed on"),
            "model-not-found");
  EXPECT_EQ(id("RuntimeError FlashAttention only supports Ampere GPUs or newer."), "gpu-generation");
  EXPECT_EQ(id("RuntimeError cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"), "library-init");
  EXPECT_EQ(id("hipErrorNoBinaryForGpu: Unable to find code object for all current devices!"), "no-kernel-image");
  EXPECT_EQ(id("RuntimeError aten.mm.default: got mixed torch.Tensor and DTensor, need to convert all"),
            "tensor-kinds");
  EXPECT_EQ(id("RuntimeError Expected all tensors to be on the same device, but found at least two devices, cuda:1"),
            "device-mix");
  EXPECT_EQ(id("RuntimeError expected scalar type Half but found Float"), "dtype-mix");
  EXPECT_EQ(id("ModuleNotFoundError No module named 'apex'"), "package-missing");
  EXPECT_EQ(id("ImportError cannot import name 'a' from 'b' (/x/b.py)"), "packages-differ");
  EXPECT_EQ(id("triton.runtime.errors.OutOfResources out of resource: shared memory, Required: 163840, Hardware limit: "
               "101376."),
            "kernel-resources");
  EXPECT_EQ(id("ValueError Total number of attention heads (14) must be divisible by tensor parallel size (4)."),
            "tensor-split");
  EXPECT_EQ(id("subprocess.CalledProcessError Command '['ninja', '-v']' returned non-zero exit status 1."),
            "extension-build");
  EXPECT_EQ(id("RuntimeError mat1 and mat2 shapes cannot be multiplied (8x512 and 256x10)"), "shape-mix");
  EXPECT_EQ(id("subprocess.CalledProcessError Command '['python', 'train.py']' returned non-zero exit status 1."), "");
  EXPECT_EQ(id("OSError /x/libcublas.so.11: symbol cublasLtInit version libcublasLt.so.11 not defined in file "
               "libcublasLt.so.11 with link time reference"),
            "library-mix");
  EXPECT_EQ(id("ValueError loaded state dict contains a parameter group that doesn't match the size of optimizer's "
               "group"),
            "checkpoint-unlike-optimizer");
  EXPECT_EQ(id("an error of the C library double free or corruption (!prev)"), "heap-damaged");
  // Words that share half with one of them. CUDA that does not start in the program itself may be the driver's fault.
  EXPECT_EQ(id("RuntimeError CUDA error: initialization error"), "");
  EXPECT_EQ(id("PytorchStreamReader failed locating file constants.pkl: file not found"), "");
  EXPECT_EQ(id("FileExistsError [Errno 17] File exists: '/out/run7'"), "");
  EXPECT_EQ(id("OSError [Errno 16] Device or resource busy: '/mnt/.nfs0001'"), "");
  EXPECT_EQ(id("hidden size 1000 is not divisible by 16 heads"), "");
  EXPECT_EQ(id("the NCCL communicator is not built"), "");
  EXPECT_EQ(id("RuntimeError cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), "");
  EXPECT_EQ(id("RuntimeError CUDA error: invalid argument"), "");
  EXPECT_EQ(id("IndexError list index out of range"), "");
  EXPECT_EQ(id("ConnectionResetError [Errno 104] Connection reset by peer"), "");
  EXPECT_EQ(id("DistNetworkError The client socket has failed to connect to node1:29500"), "");
}

}  // namespace
}  // namespace tacet
