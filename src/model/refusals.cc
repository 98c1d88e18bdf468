// SPDX-License-Identifier: Apache-2.0
#include "model/refusals.h"

#include <algorithm>
#include <iterator>

#include "base/text_scan.h"
#include "model/refusal_table.h"

namespace tacet {
namespace {

struct RefusalWords {
  std::string_view id;
  std::string_view all[2];  // both stand in the message; the second may be empty
};

// As the programs word it.
constexpr RefusalWords kRefusalWords[] = {
    {"no-nccl-build", {"package doesn't have NCCL built in", ""}},
    {"no-mpi-build", {"package doesn't have MPI built in", ""}},
    {"no-libuv", {"without libuv support", ""}},
    {"mpi-without-launcher", {"MPI_Init", "on a NULL communicator"}},
    {"mpi-before-init", {"called before MPI_INIT was invoked", ""}},
    {"mpi-after-finalize", {"called after MPI_FINALIZE was invoked", ""}},
    {"engine-sizes", {"mpiSize == tp * pp", ""}},
    {"parallel-sizes", {"world size", "is not divisible by"}},
    {"parallel-sizes", {"world_size", "is not divisible by"}},
    {"parallel-sizes", {"World size", "is not divisible by"}},
    {"parallel-sizes", {"world_size", "is not equal to tensor_model_parallel_size"}},
    {"parallel-sizes", {"Invalid parallel dims: ", "WORLD_SIZE("}},
    {"parallel-sizes", {"Mesh should not be bigger than default world size", ""}},
    {"batch-sizes", {"train_batch_size is not equal to micro_batch_per_gpu", ""}},
    {"group-not-initialised", {"Default process group has not been initialized", ""}},
    {"group-not-initialised", {"parallel group is not initialized", ""}},
    {"group-twice", {"initialize the default process group twice", ""}},
    {"scatter-list", {"scatter: Incorrect input list size", "size of the process group"}},
    {"tracker-timeout", {"Run initialization has timed out after", ""}},
    {"tracker-timeout", {"wandb.init", "timed out"}},
    {"cpu-tensor", {"No backend type associated with device type cpu", ""}},
    {"cpu-tensor", {"Tensors must be CUDA and dense", ""}},
    {"graph-capture", {"operation not permitted when stream is capturing", ""}},
    {"forked-cuda", {"Cannot re-initialize CUDA in forked subprocess", ""}},
    // As the reader of tracebacks says of an error that a worker raised.
    {"forked-cuda", {"CUDA error: initialization error", "raised in DataLoader worker process"}},
    {"forked-cuda", {": initialization error at ", "raised in DataLoader worker process"}},
    {"no-gpu", {"No CUDA GPUs are available", ""}},
    {"no-gpu", {"No HIP GPUs are available", ""}},
    {"no-gpu", {"CUDA unknown error - this may be due to an incorrectly set up environment", ""}},
    {"no-gpu", {"only supported with GPUs, no GPUs found", ""}},
    {"no-gpu", {"Found no NVIDIA driver on your system", ""}},
    {"no-gpu", {"Torch not compiled with CUDA enabled", ""}},
    {"driver-down", {"NVIDIA-SMI has failed because", ""}},
    {"gpu-access-lost", {"Failed to initialize NVML: Unknown Error", ""}},
    {"gpu-access-lost", {"Failed to initialize NVML: Insufficient Permissions", ""}},
    {"driver-down", {"Failed to initialize NVML: Driver Not Loaded", ""}},
    {"gpu-taken", {"all CUDA-capable devices are busy or unavailable", ""}},
    {"thread-limit", {"can't start new thread", ""}},
    {"thread-limit", {"pthread_create failed", ""}},
    {"slurm-refused", {"an error of sbatch", ""}},  // as the reader calls what the tool says
    {"slurm-refused", {"an error of salloc", ""}},
    {"no-ray", {"Could not find any running Ray instance", ""}},
    {"no-gpu", {"no supported devices found for platform CUDA", ""}},
    {"device-ordinal", {"invalid device ordinal", ""}},
    {"device-ordinal", {"assert torch.cuda.device_count() >", "local_rank"}},
    {"device-ordinal", {"local_rank <", "torch.cuda.device_count()"}},
    {"no-kernel-image", {"no kernel image is available for execution", ""}},
    {"old-driver", {"CUDA driver version is insufficient for CUDA runtime version", ""}},
    {"old-driver", {"The NVIDIA driver on your system is too old", ""}},
    {"driver-mismatch", {"system has unsupported display driver / cuda driver combination", ""}},
    {"driver-mismatch", {"forward compatibility was attempted on non supported HW", ""}},
    {"driver-mismatch", {"Driver/library version mismatch", ""}},
    {"no-kernel-image", {"is not compatible with the current PyTorch installation", ""}},
    {"no-container-gpu", {"could not select device driver", "gpu"}},
    {"wrong-architecture", {"exec format error", ""}},
    {"missing-library", {"cannot open shared object file", ""}},
    {"missing-library", {"Could not load library lib", ""}},
    {"unpicklable", {"an't pickle local object", ""}},
    {"unpicklable", {"annot pickle '", "' object"}},
    {"unpicklable", {"an't pickle ", " objects"}},
    {"unpicklable", {"an't get local object '", ""}},
    {"libnccl-mismatch", {"undefined symbol: nccl", ""}},
    {"extension-mismatch", {"ImportError", ".so: undefined symbol: _ZN"}},  // of C++: torch's own names begin so
    {"oneccl-workers", {"start_workers", "failed to start worker"}},
    {"open-files", {"received 0 items of ancdata", ""}},
    {"open-files", {"[Errno 24] Too many open files", ""}},
    {"open-files", {"Too many open files. Communication with the workers", ""}},
    {"device-held", {"[Device already acquired]", ""}},
    {"device-held", {"open(/dev/accel", "Device or resource busy"}},
    {"device-held", {"The TPU is already in use by", ""}},
    {"streaming-leftover", {"File exists: '/0", "_locals'"}},
    {"streaming-leftover", {"File exists: '/0", "_epoch_shape'"}},
    {"streaming-leftover", {"Reused local directory: ", ""}},
    {"gradients-differ", {"gradients are inconsistent between workers", ""}},
    {"weights-only", {"Weights only load failed", ""}},
    {"partitioned-model", {"Error(s) in loading state_dict for ", "current model is torch.Size([0])"}},
    {"checkpoint-unlike-model", {"Error(s) in loading state_dict for ", ""}},
    {"checkpoint-shapes", {"hape mismatch for loaded", "tensor for key "}},
    {"checkpoint-shapes", {"Size mismatch between saved ", " and current: "}},
    {"checkpoint-shapes", {"MetadataIndex(fqn=", "mismatch sizes torch.Size("}},
    {"no-fabric-provider", {"oneCCL", "no ofi providers found"}},
    {"checkpoint-unlike-model", {" value from checkpoint ", "is not equal to the input argument value"}},
    {"marked-twice", {"Expected to mark a variable ready only once", ""}},
    {"stale-file", {"Stale file handle", ""}},
    {"storage-error", {"[Errno 5] Input/output error", ""}},
    {"storage-error", {"write(): fd ", "failed with Input/output error"}},
    {"file-not-created", {"RuntimeError", " cannot be opened."}},
    {"file-not-created", {"Parent directory ", " does not exist"}},
    {"stale-file", {"Stale NFS file handle", ""}},
    {"damaged-file", {"PytorchStreamReader failed", "central directory"}},
    {"damaged-file", {"PytorchStreamReader failed", "invalid header or archive is corrupted"}},
    {"damaged-file", {"pickle data was truncated", ""}},
    {"damaged-file", {"unexpected EOF, expected ", "more bytes"}},
    {"damaged-file", {"Error while deserializing header: ", "SafetensorError"}},
    {"too-few-gpus", {"number of required GPUs exceeds the total number of available GPUs", ""}},
    {"serving-memory", {"is less than desired GPU memory utilization", ""}},
    {"cache-memory", {"No available memory for the cache blocks", ""}},
    {"cache-memory", {"larger than the maximum number of tokens that can be stored in KV cache", ""}},
    // What is needed, and what is there: "(4.3 GiB KV cache is needed, which is larger than the available KV cache
    // memory"
    {"cache-memory", {" needed, which is larger than the available", ""}},
    {"cache-memory", {"KV cache", " exceeds the available"}},
    {"cache-memory", {"KV cache", "larger than the available"}},
    {"cache-memory", {"KV cache", "ot enough memory"}},
    {"cache-memory", {"KV cache", "nsufficient memory"}},
    {"cache-memory", {"mem-fraction-static", "ot enough memory"}},
    {"too-few-slots", {"not enough slots available in the system", ""}},
    {"mpi-no-program", {"was unable to find the specified executable file", ""}},
    {"mpi-execve", {"an error of mpirun", "execve failed"}},
    {"mpi-mapping", {"an error of mpirun", "the job failed to map"}},
    {"mpi-as-root", {"detected an attempt to run as root", ""}},
    {"mpi-binding", {"that would result in binding more", ""}},
    {"unknown-argument", {"unrecognized arguments: --local", "rank"}},
    {"command-line", {"an error of its command line", ""}},  // as the reader calls what parsers of arguments say
    {"command-line", {"are not used by the HfArgumentParser", ""}},
    {"no-kernel-image", {"hipErrorNoBinaryForGpu", ""}},
    {"no-kernel-image", {" error: invalid device function", ""}},
    {"no-kernel-image", {"is not a recognized processor for this target", ""}},  // Triton's compiler
    {"no-kernel-image", {"is not defined for option 'gpu-name'", ""}},           // ptxas
    {"no-kernel-image", {"Unsupported gpu architecture '", ""}},                 // nvcc
    {"download-limited", {"429 Client Error", ""}},
    {"download-refused", {"GatedRepoError", ""}},
    {"download-refused", {"RepositoryNotFoundError", ""}},
    {"download-refused", {"401 Client Error", ""}},
    {"download-refused", {"403 Client Error", ""}},
    {"no-download", {"Max retries exceeded with url", ""}},
    {"no-download", {"ConnectionPool(host=", "ead timed out"}},
    {"no-download", {"ProxyError", ""}},
    {"no-download", {"Remote end closed connection without response", ""}},
    {"no-download", {"We couldn't connect to 'http", ""}},
    {"no-download", {"Couldn't reach ", "on the Hub"}},
    {"no-download", {"Couldn't reach http", ""}},
    {"no-download", {"locate the file on the Hub and we cannot find the requested files in the", "cache"}},
    {"no-download", {"Cannot reach https://", "offline mode is enabled"}},
    {"no-download", {"URLError", "<urlopen error"}},
    {"no-download", {"Cannot connect to host ", " ssl:"}},
    {"model-not-found", {"is not a local folder and is not a valid model identifier", ""}},
    {"model-not-found", {"Can't load ", "If you were trying to load it from 'https://huggingface.co/models'"}},
    {"model-not-found", {"HFValidationError", "Repo id must "}},
    {"model-not-found", {"Cannot find any model weights with", ""}},
    {"model-unknown", {"does not recognize this architecture", ""}},
    {"model-unknown", {"Model architectures [", "are not supported"}},
    {"remote-code", {"requires you to execute ", "trust_remote_code"}},
    {"remote-code", {"contains custom code which must be executed", ""}},
    {"gpu-generation", {"FlashAttention only supports ", "GPUs"}},
    {"gpu-generation", {"FlashAttention backward for head dim ", "requires "}},
    {"gpu-generation", {"Bfloat16 is only supported on GPUs with compute capability", ""}},
    {"gpu-generation", {"our setup doesn't support bf16", ""}},
    {"gpu-generation", {"requires device with capability ", "but your GPU has capability"}},
    {"gpu-generation", {"not supported in this architecture", "fp8"}},
    {"library-init", {"CUDNN_STATUS_NOT_INITIALIZED", ""}},
    {"library-init", {"CUBLAS_STATUS_NOT_INITIALIZED", ""}},
    {"library-init", {"CUBLAS_STATUS_ALLOC_FAILED", ""}},
    {"bitsandbytes-setup", {"CUDA Setup failed despite ", ""}},
    {"tensor-kinds", {"got mixed torch.Tensor and DTensor", ""}},
    {"device-mix", {"Expected all tensors to be on the same device", ""}},
    {"device-mix", {"Input type (torch.", "and weight type (torch.cuda."}},
    {"device-mix", {"Input type (torch.cuda.", "and weight type (torch.FloatTensor)"}},
    {"dtype-mix", {"expected scalar type ", " but found "}},
    {"dtype-mix", {" must have the same dtype", ""}},
    {"dtype-mix", {" to have the same dtype, but got", ""}},
    {"fsdp-uniform", {"Must flatten tensors with uniform", ""}},
    {"fsdp-uniform", {"FlatParameter requires uniform", ""}},
    {"main-guard", {"to start a new process before the", "bootstrapping phase"}},
    {"daemon-children", {"daemonic processes are not allowed to have children", ""}},
    {"recompute-differs", {"tensors was saved during the original forward and recomputation", ""}},
    {"recompute-differs", {"Recomputed values for the following tensors have different metadata", ""}},
    {"changed-in-place", {"needed for gradient computation has been modified by an inplace operation", ""}},
    {"no-gradient", {"does not require grad and does not have a grad_fn", ""}},
    {"uneven-batch", {"stack expects each tensor to be equal size", ""}},
    {"uneven-batch", {"Trying to resize storage that is not resizable", ""}},
    {"index-range", {"index out of range in self", ""}},
    {"empty-dataset", {"positive integer value, but got num_samples=0", ""}},
    {"packages-differ", {"ImportError", "cannot import name '"}},
    {"extension-missing", {"No module named '", "._C"}},
    {"extension-missing", {"No module named '", "_cuda'"}},
    {"extension-missing", {"No module named 'amp_C'", ""}},
    {"package-missing", {"No module named '", ""}},
    {"no-permission", {"[Errno 13] Permission denied", ""}},
    {"system-library-old", {"version `GLIBC", "' not found"}},
    {"system-library-old", {"version `CXXABI", "' not found"}},
    {"numpy-release", {"numpy.dtype size changed", ""}},
    {"numpy-release", {"compiled using NumPy 1.x cannot be run in", ""}},
    {"numpy-release", {"numpy.core.multiarray failed to import", ""}},
    {"no-compiler", {"Failed to find C compiler", ""}},
    {"no-compiler", {"CUDA_HOME environment variable is not set", ""}},
    {"no-compiler", {"Ninja is required to load C++ extensions", ""}},
    {"no-compiler", {"annot find a working triton installation", ""}},
    {"extension-build", {"Error building extension '", ""}},
    {"toolkit-release", {"detected CUDA version (", "mismatches the version that was used to compile"}},
    {"extension-build", {"CalledProcessError Command '['ninja'", ""}},
    {"extension-build", {"CalledProcessError", "/nvcc'"}},
    {"no-compiler", {"CalledProcessError", "/gcc'"}},  // Triton builds its launcher with it
    {"no-compiler", {"CalledProcessError", "/cc'"}},
    {"shape-mix", {"shapes cannot be multiplied (", ""}},
    {"shape-mix", {"The size of tensor a (", ") must match the size of tensor b ("}},
    {"heap-damaged", {"an error of the C library", ""}},  // as the reader calls what glibc says
    {"rocm-runtime", {"HSA_STATUS_ERROR_OUT_OF_RESOURCES", ""}},
    {"library-mix", {"not defined in file lib", "with link time reference"}},
    {"library-mix", {": undefined symbol: cublas", ""}},
    {"library-mix", {": undefined symbol: cudnn", ""}},
    {"library-mix", {": undefined symbol: __nvJitLink", ""}},
    {"checkpoint-unlike-optimizer", {"loaded state dict ", "parameter group"}},
    {"no-api-key", {"api_key not configured", ""}},
    {"shared-tensors", {"Some tensors share memory", ""}},
    {"kernel-resources", {"out of resource: ", "Hardware limit"}},
    {"tensor-split", {"must be divisible by tensor parallel size", ""}},
    {"tensor-split", {"num_attention_heads", "multiple of tensor_model_parallel_size"}},
    {"pipeline-split", {"layers should be divisible by pipeline", ""}},
    {"pipeline-split", {"layers should be divisible by the pipeline", ""}},
    {"sequence-split", {"First dimension of the tensor should be divisible by", ""}},
    {"tensor-split", {"is not divisible by weight quantization block", ""}},
    {"context-length", {"is greater than the derived max_model_len", ""}},
};

}  // namespace

std::span<const Refusal> AllRefusals() { return kRefusals; }

const Refusal* FindRefusal(std::string_view id) {
  const auto* found =
      std::find_if(std::begin(kRefusals), std::end(kRefusals), [&](const Refusal& one) { return one.id == id; });
  return found == std::end(kRefusals) ? nullptr : found;
}

const Refusal* ClassifyRefusal(std::string_view message) {
  for (const RefusalWords& words : kRefusalWords)
    if (Contains(message, words.all[0]) && (words.all[1].empty() || Contains(message, words.all[1])))
      return FindRefusal(words.id);
  return nullptr;
}

}  // namespace tacet
