// SPDX-License-Identifier: Apache-2.0
#include "model/refusals.h"

#include <algorithm>
#include <iterator>

#include "base/text_scan.h"

namespace tacet {
namespace {

constexpr Refusal kRefusals[] = {
    {"no-nccl-build",
     "this build of PyTorch has no NCCL",
     {"Check the build: python -c \"import torch; print(torch.cuda.is_available(), "
      "torch.distributed.is_nccl_available())\". "
      "Builds for Windows, macOS and CPU only have no NCCL.",
      "On Windows: use the backend gloo, or run under Linux or WSL 2.", "On Linux: install a CUDA build of PyTorch."}},
    {"no-mpi-build",
     "this build of PyTorch has no MPI",
     {"Use the backend nccl (gloo for CPU tensors): packages of PyTorch come without MPI.",
      "If MPI is needed: build PyTorch from source on a host where MPI is installed."}},
    {"no-libuv",
     "this build of PyTorch has no libuv, which its TCPStore asks for",
     {"Set USE_LIBUV=0 before the job starts, or append ?use_libuv=0 to the init_method.",
      "Or install a build of PyTorch with libuv."}},
    {"mpi-without-launcher",
     "MPI could not start in this process: most often no MPI launcher started it, or one of another MPI did",
     {"Start the program with mpirun or srun --mpi=pmix of the same MPI that it was built against; torchrun is not an "
      "MPI "
      "launcher.",
      "If nothing in the program needs MPI: find what initializes it (mpi4py, a user-buffer or overlap option) and "
      "switch "
      "it off, or choose another bootstrap backend for it.",
      "Compare the versions: which mpirun, and ldd of the library that calls MPI_Init."}},
    {"parallel-sizes",
     "the number of processes does not fit the parallel sizes (tensor, pipeline, data, expert) that are configured",
     {"Start as many processes as the sizes ask for: tensor x pipeline (x context) must divide the world size.",
      "Or change the sizes to fit the processes."}},
    {"engine-sizes",
     "the number of processes does not fit the parallel sizes that the engine was built for",
     {"Start exactly as many processes as the engine was built for, tensor x pipeline size: mpirun -n N.",
      "Or build the engine again for the processes that you have."}},
    {"batch-sizes",
     "the batch sizes in the configuration do not fit the number of processes",
     {"Set train_batch_size = micro batch per GPU x gradient accumulation steps x number of processes, or set it to "
      "auto.",
      "Check that the launcher started as many processes as you expect."}},
    {"group-not-initialised",
     "a collective was called before the process group was initialized",
     {"Call torch.distributed.init_process_group() before the first collective, sampler or DDP wrapper; guard code "
      "that "
      "also runs alone with torch.distributed.is_initialized()."}},
    {"group-twice",
     "the process group was initialized twice in one process",
     {"Call init_process_group once: a framework (Accelerate, Lightning, DeepSpeed) may have done it already; guard it "
      "with torch.distributed.is_initialized()."},
     false,
     false,
     true},
    {"scatter-list",
     "the source of a scatter passed a list that does not have one entry for each rank of the group",
     {"Give scatter one entry for each rank of the group, in the order of the ranks: only the source passes the list, "
      "the others pass None.",
      "If the group is smaller or larger than expected: compare its size with the number of entries that the program "
      "makes."},
     false,
     true},
    {"tracker-timeout",
     "Weights & Biases did not answer in time when the run was started",
     {"Check that the node of the rank that logs (usually rank 0) reaches the server: curl -I https://api.wandb.ai, or "
      "the address in WANDB_BASE_URL. Compute nodes often need a proxy (HTTPS_PROXY).",
      "Without a way to the server: WANDB_MODE=offline, and wandb sync DIR after the job.",
      "If it is only slow: wandb.init(settings=wandb.Settings(init_timeout=300))."}},
    {"cpu-tensor",
     "a tensor on the CPU was given to a backend that only moves GPU memory",
     {"Move the tensor to the GPU before the collective, or initialize with both backends: "
      "init_process_group(backend=\"cpu:gloo,cuda:nccl\")."}},
    {"forked-cuda",
     "CUDA was used in a child process that was forked after CUDA had started",
     {"In a data loader's workers keep all tensors on the CPU, and move batches to the GPU in the training loop.",
      "Or start child processes with spawn: multiprocessing.set_start_method('spawn'), or "
      "DataLoader(multiprocessing_context='spawn'); or load in the main process (num_workers=0).",
      "Other child processes: do not touch CUDA before the fork."},
     false,
     true},
    {"no-gpu",
     "the process sees no GPU",
     {"Run nvidia-smi in the same environment (container, job step) and look at CUDA_VISIBLE_DEVICES there.",
      "Ask the scheduler for GPUs (srun --gpus, docker --gpus all), and check that the driver of the host is loaded.",
      "Check that PyTorch is a CUDA build: python -c \"import torch; print(torch.version.cuda)\"."}},
    {"device-ordinal",
     "a process asks for a GPU that it cannot see: more processes than visible GPUs, or a wrong local rank",
     {"Start no more processes per node than GPUs are visible there (--nproc-per-node; nvidia-smi -L, "
      "CUDA_VISIBLE_DEVICES).",
      "Use torch.cuda.set_device(local_rank), not the global rank."}},
    {"no-kernel-image",
     "this build has no code for the GPU's architecture",
     {"Compare torch.cuda.get_arch_list() with torch.cuda.get_device_capability(): install a build of PyTorch that "
      "supports this GPU.",
      "Extensions built from source: build them again with TORCH_CUDA_ARCH_LIST for this GPU."}},
    {"old-driver",
     "the driver is older than the CUDA version of the program needs",
     {"Update the driver of the host (nvidia-smi shows the CUDA version that it supports), or install a build for an "
      "older "
      "CUDA.",
      "In containers: the driver is the host's; remove a compat library that does not fit it."}},
    {"driver-mismatch",
     "CUDA cannot start: the CUDA library that the process loads does not fit the driver of the host",
     {"In containers: remove the CUDA compat library (/usr/local/cuda/compat, or its path in LD_LIBRARY_PATH), or use "
      "an "
      "image whose CUDA the host's driver supports (nvidia-smi shows it).",
      "If the driver was updated while the host ran: load the new kernel modules, or restart the host; cat "
      "/proc/driver/nvidia/version and nvidia-smi must show the same version.",
      "Forward compatibility works on data-center GPUs only: on others install a newer driver."}},
    {"no-container-gpu",
     "the container runtime cannot give the container a GPU",
     {"Install the NVIDIA Container Toolkit on this host, configure the runtime (nvidia-ctk runtime configure) and "
      "restart it.",
      "Test it by itself: docker run --rm --gpus all ubuntu nvidia-smi."}},
    {"wrong-architecture",
     "the program was built for another processor architecture than that of the host",
     {"Use an image or a package for the host's architecture (uname -m): x86_64 and aarch64 differ.",
      "A script needs an interpreter in its first line (#!/bin/bash)."}},
    {"missing-library",
     "a shared library that the program needs cannot be loaded",
     {"Find it (find / -name 'libNAME*') and add its folder to LD_LIBRARY_PATH, or install the package that has it, in "
      "the same image and on all nodes.",
      "Libraries of CUDA and cuDNN must be of the release that the program was built for: compare with "
      "torch.version.cuda and torch.backends.cudnn.version().",
      "ldd FILE.so shows which of the libraries of a module are not found."}},
    {"unpicklable",
     "an object cannot be pickled, and so cannot be sent to a child process that is started with spawn",
     {"Move the function or class that the message names to the top level of a module: lambdas and functions inside of "
      "functions cannot be pickled (functools.partial of a top-level function can).",
      "Create what cannot be pickled (open files, locks, modules, connections) in the child process itself.",
      "On Linux a data loader's workers can be forked instead (multiprocessing_context='fork'); with num_workers=0 "
      "there is no child process."},
     false,
     true},
    {"extension-mismatch",
     "a compiled extension was built for another release of PyTorch",
     {"Reinstall the package that the message names for the PyTorch in use (python -c \"import torch; "
      "print(torch.__version__)\"): a wheel for that release, or pip install --no-build-isolation --no-cache-dir "
      "--force-reinstall.",
      "Compare the release of PyTorch on all nodes and in the image: it may have changed since the extension was "
      "built."},
     true},
    {"libnccl-mismatch",
     "the program loaded a different NCCL library from the one it was built against",
     {"See which one is loaded: ldd, or LD_DEBUG=libs; remove the other libnccl from LD_LIBRARY_PATH.",
      "Install the nvidia-nccl package that belongs to this PyTorch."}},
    {"oneccl-workers",
     "the worker threads of oneCCL could not be started",
     {"Give it cores that the process may use: compare CCL_WORKER_AFFINITY and CCL_WORKER_COUNT with taskset -cp PID, "
      "or unset them; two processes on one host need different cores.",
      "Raise the limit of threads if it is small: ulimit -u.",
      "Read the |CCL_ERROR| line above it: the number behind 'pthread_create returns' is the system's error (22: a "
      "core "
      "that does not exist or is not allowed, 11: too many threads)."}},
    {"open-files",
     "a process has too many open files",
     {"Raise the limit: ulimit -n 65536 in the job's script (and in the container or service that starts it).",
      "Data loaders: torch.multiprocessing.set_sharing_strategy('file_system'), or fewer workers."}},
    {"damaged-file",
     "a file being loaded is damaged or incomplete",
     {"Download or copy the file again, or load the previous checkpoint; compare its size and hash with those of a "
      "good copy.",
      "If it was written by a job that was killed, or by several ranks at once: write to a temporary name and rename "
      "it when it is complete."},
     true},
    {"object-damaged",
     "an object that ranks exchanged could not be unpickled: what arrived is not what was sent",
     {"Check that all ranks make the same calls in the same order on this group, and that no other thread uses it at "
      "the same time: messages of different calls get mixed up otherwise (TORCH_DISTRIBUTED_DEBUG=DETAIL checks it).",
      "Use the same versions of Python, PyTorch and of the pickled classes on all ranks.",
      "If calls and versions agree: the memory, the GPU or the network damaged the data; run nccl-tests with checks "
      "(all_gather_perf -c 1) and dcgmi diag -r 3 on the nodes."}},
    {"stale-file",
     "a file on a network file system was replaced or deleted while the process used it (ESTALE)",
     {"Find out who wrote to that path at the time: another rank or job that rebuilds the same cache, a cleanup, or a "
      "copy that overwrites it. Let one rank write it and the others wait for it.",
      "Put caches (HF_HOME, TRITON_CACHE_DIR, datasets) on the node's own disk, or under a separate path for each job; "
      "write a new file completely, then rename it over the old one.",
      "If every file on the mount is stale, the server was restarted or its export has changed: remount it on that "
      "host."},
     true},
    {"storage-error",
     "the storage returned an input/output error",
     {"On the host that reports it: dmesg -T, and the state of the mount (df -h PATH, mount): a failed disk, a server "
      "of the file system that is gone, or a full disk or quota behind it gives this error.",
      "Write and read a file there by hand: dd if=/dev/zero of=PATH/test bs=1M count=1024 conv=fsync.",
      "Check the last checkpoint before you start again: the file that was being written is incomplete."},
     true},
    {"file-not-created",
     "a file to be written cannot be created: its folder is missing or may not be written to, or the disk is full",
     {"On the host that reports it: ls -ld of the folder, df -h and df -i PATH, and the quota.",
      "A relative path counts from the folder in which each rank was started; create the folder on rank 0 before the "
      "first checkpoint, and let the others wait for it."},
     true},
    {"checkpoint-unlike-model",
     "the checkpoint does not fit the model: names or shapes of parameters differ",
     {"Compare the configuration with that of the run that wrote the checkpoint: architecture, vocabulary, tensor and "
      "pipeline sizes.",
      "If only the first dimension of an embedding or of the output layer differs, it is the vocabulary: use the "
      "tokenizer of that run and the same padding (Megatron: --make-vocab-size-divisible-by times the tensor-parallel "
      "size), or resize the embedding.",
      "A prefix such as 'module.' comes from DDP: remove it before loading."}},
    {"checkpoint-shapes",
     "the checkpoint does not fit the model: shapes of parameters differ",
     {"Compare the configuration with that of the run that wrote the checkpoint: architecture, vocabulary, tensor and "
      "pipeline sizes.",
      "If only the first dimension of an embedding or of the output layer differs, it is the vocabulary: use the "
      "tokenizer of that run and the same padding (Megatron: --make-vocab-size-divisible-by times the tensor-parallel "
      "size), or resize the embedding."}},
    {"no-fabric-provider",
     "no provider of libfabric (OFI) was found for oneCCL",
     {"Run fi_info on the host, in the same container and environment: it lists the providers that libfabric finds.",
      "Check FI_PROVIDER: it must name one of them, or be unset.",
      "Set FI_PROVIDER_PATH to the folder with the providers of the libfabric that oneCCL loads (source setvars.sh)."}},
    {"partitioned-model",
     "a whole checkpoint is loaded into a model whose parameters are partitioned: their size is 0 here",
     {"Load the checkpoint before the model is partitioned (before deepspeed.initialize or the FSDP wrapper), or "
      "through "
      "the framework's own loading (from_pretrained, engine.load_checkpoint).",
      "Or gather the parameters while loading: with deepspeed.zero.GatheredParameters(model.parameters(), "
      "modifier_rank=0).",
      "Do not build the model under zero.Init() or on the meta device if its weights are copied in afterwards."}},
    {"weights-only",
     "torch.load reads weights only (the default since PyTorch 2.6), and this file holds other objects",
     {"If you trust the file: torch.load(path, weights_only=False), or allow the type that the error names with "
      "torch.serialization.add_safe_globals([...]).",
      "If a framework loads it: use a release of it that knows PyTorch 2.6.",
      "The file is not damaged; save new checkpoints with plain tensors and numbers only."}},
    {"device-held",
     "another process holds the accelerator",
     {"Find and end it: nvidia-smi, hl-smi, npu-smi info or lsof /dev/accel* lists the processes; one that an earlier "
      "run left over is common.",
      "Start one process per device, and give each its own (CUDA_VISIBLE_DEVICES, HABANA_VISIBLE_MODULES, "
      "TPU_VISIBLE_DEVICES).",
      "GPUs in exclusive mode (nvidia-smi -q -d COMPUTE) take one process only."}},
    {"streaming-leftover",
     "shared memory of MosaicML Streaming is left over from an earlier run, or two datasets use one local directory",
     {"Call streaming.base.util.clean_stale_shared_memory() once before the first dataset is built, and end processes "
      "that an earlier run left over.",
      "Give each dataset a local directory of its own.",
      "Check that the launcher sets RANK, WORLD_SIZE, LOCAL_RANK and LOCAL_WORLD_SIZE: one process per node sets the "
      "shared memory up, the others attach."}},
    {"gradients-differ",
     "the gradients differ between ranks after they were reduced",
     {"Compare the norms below the error. Of a rank that alone differs, test the GPU (dcgmi diag -r 3), and look for "
      "parameters that are not synchronized on it.",
      "If several differ: parameters that only some ranks use, or GPUs of different generations in one job.",
      "fairseq: try --ddp-backend=legacy_ddp."}},
    {"marked-twice",
     "DDP got the gradient of a parameter twice in one backward pass",
     {"With gradient checkpointing use its non-reentrant form: checkpoint(..., use_reentrant=False), in Transformers "
      "gradient_checkpointing_kwargs={'use_reentrant': False}. Reentrant checkpointing of layers with LoRA adapters is "
      "the most common reason.",
      "If the graph is the same in every step: DistributedDataParallel(static_graph=True), and no "
      "find_unused_parameters=True.",
      "Otherwise look for a parameter that is shared by two forward passes before one backward pass, or used outside "
      "of forward()."}},
    {"too-few-gpus",
     "more GPUs are asked for than the cluster or placement group has",
     {"Lower the tensor or pipeline parallel size to the number of GPUs, or add nodes (ray status shows what Ray "
      "sees).",
      "See that no other job holds them."}},
    {"serving-memory",
     "the server finds less free GPU memory at start than its configuration asks for",
     {"Check with nvidia-smi what else is using the GPU: an earlier server, another job.",
      "Lower --gpu-memory-utilization to what is free, or use more GPUs (tensor parallel)."}},
    {"cache-memory",
     "too little GPU memory is left for the server's KV cache once the model is loaded",
     {"Raise --gpu-memory-utilization (SGLang: --mem-fraction-static), or lower --max-model-len and --max-num-seqs.",
      "Spread the model over more GPUs (--tensor-parallel-size), or use a quantized one."}},
    {"too-few-slots",
     "there are fewer slots than the processes that mpirun is to start, so it started none",
     {"Say how many processes each host takes: 'node1 slots=8' in the hostfile, or -H node1:8,node2:8; without them "
      "mpirun takes the number of cores.",
      "In a Slurm job ask for as many tasks as processes (--ntasks).", "For a test on one host: --oversubscribe."}},
    {"unknown-argument",
     "the launcher passes an argument that the script does not know",
     {"Start it with torchrun and read os.environ['LOCAL_RANK'], or accept the option (--local-rank, with torch before "
      "2.0 "
      "--local_rank) in the script's parser."}},
    {"command-line",
     "the program does not accept its command line",
     {"Correct the arguments in the launch command or in the job script; the program lists those that it accepts with "
      "--help (Hydra: --cfg job).",
      "Options of the launcher stand before the name of the script, those of the script after it.",
      "Run the script alone with the same arguments to test them: this needs neither a GPU nor other ranks."}},
};

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
    {"engine-sizes", {"mpiSize == tp * pp", ""}},
    {"parallel-sizes", {"world size", "is not divisible by"}},
    {"parallel-sizes", {"world_size", "is not divisible by"}},
    {"parallel-sizes", {"World size", "is not divisible by"}},
    {"parallel-sizes", {"world_size", "is not equal to tensor_model_parallel_size"}},
    {"parallel-sizes", {"Invalid parallel dims: ", "WORLD_SIZE("}},
    {"parallel-sizes", {"Mesh should not be bigger than default world size", ""}},
    {"batch-sizes", {"train_batch_size is not equal to micro_batch_per_gpu", ""}},
    {"group-not-initialised", {"Default process group has not been initialized", ""}},
    {"group-twice", {"initialize the default process group twice", ""}},
    {"scatter-list", {"scatter: Incorrect input list size", "size of the process group"}},
    {"tracker-timeout", {"Run initialization has timed out after", ""}},
    {"tracker-timeout", {"wandb.init", "timed out"}},
    {"cpu-tensor", {"No backend type associated with device type cpu", ""}},
    {"cpu-tensor", {"Tensors must be CUDA and dense", ""}},
    {"forked-cuda", {"Cannot re-initialize CUDA in forked subprocess", ""}},
    // As the reader of tracebacks says of an error that a worker raised.
    {"forked-cuda", {"CUDA error: initialization error", "raised in DataLoader worker process"}},
    {"forked-cuda", {": initialization error at ", "raised in DataLoader worker process"}},
    {"no-gpu", {"No CUDA GPUs are available", ""}},
    {"no-gpu", {"No HIP GPUs are available", ""}},
    {"no-gpu", {"CUDA unknown error - this may be due to an incorrectly set up environment", ""}},
    {"no-gpu", {"only supported with GPUs, no GPUs found", ""}},
    {"no-gpu", {"Found no NVIDIA driver on your system", ""}},
    {"no-gpu", {"no supported devices found for platform CUDA", ""}},
    {"device-ordinal", {"invalid device ordinal", ""}},
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
    {"damaged-file", {"Error while deserializing header: ", "SafetensorError"}},
    {"too-few-gpus", {"number of required GPUs exceeds the total number of available GPUs", ""}},
    {"serving-memory", {"is less than desired GPU memory utilization", ""}},
    {"cache-memory", {"No available memory for the cache blocks", ""}},
    {"cache-memory", {"larger than the maximum number of tokens that can be stored in KV cache", ""}},
    {"too-few-slots", {"not enough slots available in the system", ""}},
    {"unknown-argument", {"unrecognized arguments: --local", "rank"}},
    {"command-line", {"an error of its command line", ""}},  // as the reader calls what parsers of arguments say
    {"command-line", {"are not used by the HfArgumentParser", ""}},
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
