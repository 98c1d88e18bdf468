// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/refusals.h"

namespace tacet {

// The table of refusals as data; refusals.cc holds the words by which each is known.
inline constexpr Refusal kRefusals[] = {
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
    {"graph-capture",
     "a call was made that CUDA does not allow while it captures a graph",
     {"Look for what waits for the GPU there: .item(), .cpu(), printing a tensor, a branch on a tensor's value, "
      "torch.cuda.synchronize(). Move it out of the captured code.",
      "Run the captured code a few times before the capture, on a side stream, so that libraries are set up and memory "
      "is allocated by then.",
      "Other threads count as well: torch.cuda.graph(..., capture_error_mode=\"thread_local\") lets them make such "
      "calls."},
     false,
     true},
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
    {"driver-down",
     "the NVIDIA driver does not answer on this host: it is not loaded, or does not fit the kernel",
     {"On the host: lsmod | grep nvidia; dmesg -T | grep -iE 'nvrm|nvidia'; after an update of the kernel the driver "
      "must "
      "be built again (dkms status).",
      "Load it (modprobe nvidia), or restart the host; take the node out of service until nvidia-smi works."}},
    {"gpu-access-lost",
     "the container or the user has no access to the GPUs (any more)",
     {"On the host itself: does nvidia-smi work there? Then the container lost its devices, as happens when systemd is "
      "reloaded on a host with cgroup v2: start the container again.",
      "To keep it from happening: set the cgroup driver of the container runtime to cgroupfs, or use CDI "
      "(nvidia-ctk cdi generate).",
      "Without a container: ls -l /dev/nvidia*, and the groups of the user."}},
    {"gpu-taken",
     "CUDA gets no GPU: all that the process sees are taken or out of order",
     {"nvidia-smi shows who uses them, their compute mode (an exclusive one allows one process: nvidia-smi -c 0), and "
      "GPUs that report an error.",
      "Processes left over from an earlier job hold GPUs without being listed in a container: fuser -v /dev/nvidia* on "
      "the host.",
      "MIG: the instance must exist, and CUDA_VISIBLE_DEVICES name it by its UUID."}},
    {"thread-limit",
     "the process cannot create more threads",
     {"Set OMP_NUM_THREADS (and OPENBLAS_NUM_THREADS, RAYON_NUM_THREADS) to the cores per process, and use fewer "
      "loader "
      "workers.",
      "Look at the limits inside the job: ulimit -u, and pids.max of its cgroup (docker --pids-limit=-1; the pod's "
      "limit "
      "of the kubelet)."}},
    {"slurm-refused",
     "Slurm refused the job, and nothing was started",
     {"Compare what the script asks for with what there is: sinfo -o '%P %D %c %m %G %l'; scontrol show partition "
      "NAME.",
      "Accounts and limits: sacctmgr show assoc user=$USER format=account,partition,qos,grptres."},
     false,
     false,
     false,
     true},
    {"slurm-unreachable",
     "Slurm's controller (slurmctld) does not answer, and nothing was started",
     {"scontrol ping shows whether it is up; wait and submit again, or tell the administrators.",
      "From this host only: compare /etc/slurm/slurm.conf, the network and the clock with a host where it works."},
     false,
     false,
     false,
     true},
    {"name-unknown",
     "the name of a host cannot be resolved",
     {"On the host that says so: getent hosts NAME. The name must be spelled right (MASTER_ADDR, the endpoint's URL), "
      "and "
      "the servers in /etc/resolv.conf must answer.",
      "In Kubernetes: the name of a pod needs its headless Service, and is only known once the pod runs; nslookup NAME "
      "in the pod tests it.",
      "'Temporary failure' is the name server's: it does not answer, or is overloaded when all ranks ask at once."}},
    {"watch-limit",
     "the host has no more inotify watches; no disk is full",
     {"Raise it: sysctl fs.inotify.max_user_watches=1048576 fs.inotify.max_user_instances=8192.",
      "Find who takes them: editors, log shippers and file watchers on folders with many files."}},
    {"no-cloud-keys",
     "the process has no valid credentials for the object store",
     {"In the environment of the rank that says so: AWS_PROFILE, AWS_ACCESS_KEY_ID, the role of the instance or of the "
      "service account; for Google GOOGLE_APPLICATION_CREDENTIALS. aws sts get-caller-identity tests it.",
      "Tokens expire during long jobs: use a role or a provider that renews them."}},
    {"cloud-forbidden",
     "the object store refuses access with these credentials",
     {"aws sts get-caller-identity shows who asks; compare with the policy of the bucket and of the role. A missing "
      "object gives 403, too, without the right to list.",
      "Is the bucket's name and region right?"}},
    {"cloud-busy",
     "the object store refuses requests because there are too many",
     {"Let fewer processes write or read at the same time, and larger objects at once; write one object per rank, not "
      "the same one from all.",
      "Raise the retries with back-off: AWS_MAX_ATTEMPTS=10 AWS_RETRY_MODE=adaptive."}},
    {"cloud-unreachable",
     "the object store does not answer under its address",
     {"On that host: curl -sI URL. Check the endpoint (AWS_ENDPOINT_URL), that its name resolves, and whether nodes "
      "need "
      "a proxy.",
      "If it answers slowly: raise the timeouts and retries (AWS_MAX_ATTEMPTS, botocore Config(read_timeout=...))."}},
    {"no-ray",
     "there is no Ray cluster to connect to on this host",
     {"Start one first (ray start --head on one host, ray start --address=HEAD:6379 on the others; ray status shows "
      "them), or leave the address out so that the program starts its own.",
      "In containers: /tmp/ray, by which programs find the cluster, must be the same for all of them."}},
    {"device-ordinal",
     "a process asks for a GPU that it cannot see: more processes than visible GPUs, or a wrong local rank",
     {"Start no more processes per node than GPUs are visible there (--nproc-per-node; nvidia-smi -L, "
      "CUDA_VISIBLE_DEVICES).",
      "Use torch.cuda.set_device(local_rank), not the global rank."}},
    {"no-kernel-image",
     "this build has no code for the GPU's architecture",
     {"Compare torch.cuda.get_arch_list() with torch.cuda.get_device_capability(): install a build of PyTorch that "
      "supports this GPU.",
      "Extensions built from source: build them again with TORCH_CUDA_ARCH_LIST (AMD: PYTORCH_ROCM_ARCH) for this GPU.",
      "AMD: rocminfo shows the gfx number of the GPU; the ROCm build of PyTorch must list it."}},
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
     {"Move the function or class that the message names to the top level of a module: lambdas and functions inside "
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
     {"See which libnccl.so.2 is loaded: ldd torch/lib/libtorch_cuda.so | grep nccl, or LD_DEBUG=libs. Take an "
      "older or foreign one out of LD_LIBRARY_PATH.",
      "Install the nvidia-nccl package that belongs to this PyTorch."}},
    {"mpi-before-init",
     "an MPI call was made before MPI was initialized",
     {"Call MPI_Init (hvd.init(), or from mpi4py import MPI) before the first other MPI call.",
      "If the program does so: look for a library that asks MPI for ranks or sizes when it is imported, and import it "
      "later."}},
    {"mpi-after-finalize",
     "an MPI call was made after MPI was finalized",
     {"Make no MPI call after MPI_Finalize: look for destructors, atexit handlers and threads that still communicate "
      "when the program ends."}},
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
      "Use the same versions of Python, PyTorch and the pickled classes on all ranks.",
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
      "In a Slurm job ask for as many tasks as processes (--ntasks).", "For a test on one host: --oversubscribe."},
     false,
     false,
     false,
     true},
    {"mpi-no-program",
     "the launcher mpirun cannot find the program on a node, and started nothing",
     {"On the node that the note names: ls -l of the path; it must be the same on all nodes, on a shared file system "
      "or "
      "in the image.",
      "Look at the command line: mpirun takes the first word that it does not know as an option for the program.",
      "If it is found by PATH: mpirun -x PATH, or give the whole path."},
     false,
     false,
     false,
     true},
    {"mpi-as-root",
     "the launcher mpirun refuses to run as root",
     {"Start it as another user.",
      "In a container that has no other user: --allow-run-as-root (OMPI_ALLOW_RUN_AS_ROOT=1 and "
      "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 do the same)."},
     false,
     false,
     false,
     true},
    {"mpi-binding",
     "more processes are to be bound to a resource than it has CPUs, and mpirun started nothing",
     {"Start fewer processes on the node that the note names, or let the job have more CPUs (--cpus-per-task).",
      "Or bind otherwise: --bind-to none, --map-by slot:PE=1, or --bind-to core:overload-allowed."},
     false,
     false,
     false,
     true},
    {"unknown-argument",
     "the launcher passes an argument that the script does not know",
     {"Start it with torchrun and read os.environ['LOCAL_RANK'], or accept the option (--local-rank, with torch before "
      "2.0 "
      "--local_rank) in the script's parser.",
      "Correct the other arguments that the message names, if there are any: the script lists those that it accepts "
      "with --help."}},
    {"command-line",
     "the program does not accept its command line",
     {"Correct the arguments in the launch command or in the job script; the program lists those that it accepts with "
      "--help (Hydra: --cfg job). An empty value ('') is mostly a variable of the launch command that is not set.",
      "Launcher options go before the script name, script options after it.",
      "Run the script alone with the same arguments to test them: this needs neither a GPU nor other ranks."}},
    {"no-download",
     "a server could not be reached over HTTP, for a download or an upload",
     {"On the host that reports it, in the same container: curl -I https://huggingface.co, or the server that the "
      "message names. Compute nodes often have no way to the internet; with a proxy set https_proxy and no_proxy "
      "there.",
      "Download the model, the tokenizer and the data once where there is a network, put them on storage that all "
      "nodes see, and start with HF_HUB_OFFLINE=1 and local paths.",
      "If the server answers only now and then: let one rank download while the others wait, and retry."}},
    {"download-refused",
     "the server refuses the download: the repository is private or gated, its name is wrong, or the token is missing",
     {"Ask for access on the page of the repository, and log in on the host that downloads (HF_TOKEN in the job's "
      "environment, or huggingface-cli login).",
      "Check the name of the repository and of the revision: one that does not exist gives the same answer."}},
    {"download-limited",
     "the server limits how often it may be asked (HTTP 429)",
     {"Let one rank per node download while the others wait, and keep the files in a cache that all ranks share "
      "(HF_HOME).",
      "Set a token (HF_TOKEN): the limit is higher then. Wait a few minutes before the next try."}},
    {"model-not-found",
     "the model or tokenizer is not found under the given name or path",
     {"Check the path on the host that reports it, as seen from inside the container: ls PATH/config.json. A path that "
      "does not exist is taken for the name of a repository.",
      "For a name: check its spelling, the token, and that the host can reach the server (with HF_HUB_OFFLINE=1 only "
      "what is in the cache is found)."},
     true},
    {"model-unknown",
     "the installed release does not know the architecture of this model",
     {"Install a newer release of the library that the message names (Transformers, vLLM, SGLang), on all nodes.",
      "Models with code of their own need trust_remote_code=True."}},
    {"remote-code",
     "the model comes with code of its own, which has to be allowed first",
     {"If you trust the repository: trust_remote_code=True (vLLM and SGLang: --trust-remote-code).",
      "Or install a release of the library that has this model built in."}},
    {"gpu-generation",
     "the GPU is of a generation that lacks what the program asks for",
     {"Compare the GPU (nvidia-smi -L, torch.cuda.get_device_capability()) with what the message asks for. If the job "
      "ran on a node with older GPUs: ask the scheduler for the right type (--constraint, --gres, a node selector).",
      "Or switch the feature off: attn_implementation=\"sdpa\" instead of FlashAttention 2, fp16 instead of bf16, no "
      "fp8."}},
    {"library-init",
     "a CUDA library (cuDNN, cuBLAS) could not start on the GPU, most often because no GPU memory is left for it",
     {"Check what is free when it fails (nvidia-smi; other processes on the same GPU): lower the batch size, or leave "
      "more memory to the library. While a CUDA graph is captured it cannot start at all: run the operation once "
      "before the capture begins.",
      "Remove other copies of cuDNN and CUDA from LD_LIBRARY_PATH: PyTorch brings its own, and a copy of another "
      "release fails this way.",
      "Run once with CUDA_LAUNCH_BLOCKING=1: an index out of range (labels, token ids) in an earlier kernel can show "
      "up here, too."},
     false,
     true},
    {"bitsandbytes-setup",
     "the package bitsandbytes finds no library for the CUDA version in use",
     {"pip install -U bitsandbytes; then python -m bitsandbytes shows which library it looks for.",
      "Let LD_LIBRARY_PATH hold the libcudart of the release that torch.version.cuda names, and unset "
      "BNB_CUDA_VERSION."}},
    {"tensor-kinds",
     "one operation got both plain tensors and DTensors",
     {"A parameter or an input is not sharded as the others are. Wrap or shard everything that takes part: the root "
      "module (fully_shard(model)), adapters, tied weights and "
      "parameters added later.",
      "Code that uses a sharded parameter outside of its module's forward pass (a loss on lm_head.weight, a copy of "
      "weights) gets a DTensor: gather it first (full_tensor()), or turn the other operand into a DTensor."},
     false,
     true},
    {"device-mix",
     "the tensors of one operation are on different devices",
     {"Move inputs and modules to the rank's own GPU: torch.cuda.set_device(local_rank), then .to(device).",
      "Tensors that forward() creates take the device of an input (device=x.device); register "
      "constants with register_buffer.",
      "device_map=\"auto\" spreads a model over the GPUs of one process: do not use it with one process per GPU."},
     false,
     true},
    {"dtype-mix",
     "the tensors of one operation have different data types",
     {"Cast them to one type, or run the forward pass under torch.autocast.",
      "Look for modules that kept float32 while the rest is in half precision: adapters, norms, a head added later, "
      "or inputs that are not cast."},
     false,
     true},
    {"shape-mix",
     "the shapes of the tensors of one operation do not fit",
     {"Print the shapes before the call that the traceback names, and compare them with the configuration: hidden "
      "size, "
      "number of heads, vocabulary, sequence length.",
      "With tensor or sequence parallelism: one operand is split and the other one is not; check the parallel plan and "
      "that sizes are divisible by the parallel size.",
      "If only some batches fail: the last batch of an epoch is smaller (drop_last), or samples differ in length."},
     false,
     true},
    {"fsdp-uniform",
     "FSDP joins parameters into one that differ in data type or in requires_grad",
     {"Use FSDP(use_orig_params=True), or FSDP 2 (fully_shard).",
      "Cast all parameters of a wrapped module to one type before wrapping, or wrap the odd ones (LoRA adapters, "
      "frozen "
      "layers) by themselves."},
     false,
     true},
    {"main-guard",
     "a child process that is started with spawn runs the main script again, and the script starts processes unguarded",
     {"Put what the script runs into a function, and call it under if __name__ == \"__main__\": only."},
     false,
     true,
     true},
    {"daemon-children",
     "a process that may have no children (a data loader worker, a pool's process) tried to start one",
     {"Start child processes in the rank's main process, or load data in it (num_workers=0).",
      "Use concurrent.futures.ProcessPoolExecutor instead of multiprocessing.Pool inside of workers."},
     false,
     true},
    {"recompute-differs",
     "activation checkpointing got other tensors when it ran the forward pass again",
     {"Make the forward pass do the same both times: no branches on time, counters or random numbers outside of "
      "PyTorch, no caches filled the first time, the same autocast state.",
      "Apply checkpointing before FSDP or torch.compile wraps the module; try use_reentrant=True to see whether only "
      "the check fails."},
     false,
     true},
    {"changed-in-place",
     "a tensor that the backward pass needs was changed in place",
     {"torch.autograd.set_detect_anomaly(True) names the forward operation whose tensor was changed; use x = x + y "
      "there instead of x += y.",
      "With DDP: two forward passes before one backward pass change the buffers in between (BatchNorm): set "
      "broadcast_buffers=False, or run both inputs through one forward pass."},
     false,
     true},
    {"no-gradient",
     "the loss has no gradient: nothing that it depends on is trainable",
     {"Check that parameters have requires_grad=True and that the forward pass is not under torch.no_grad() or "
      "detached.",
      "Gradient checkpointing of a model with frozen embeddings (LoRA): call model.enable_input_require_grads(), or "
      "use "
      "use_reentrant=False."},
     false,
     true},
    {"uneven-batch",
     "samples of one batch have different shapes and cannot be stacked",
     {"Pad or crop samples to one size in the dataset or in collate_fn.",
      "Look for the odd samples: images with another number of channels, empty or truncated ones."},
     false,
     true},
    {"index-range",
     "an index is larger than the table it is looked up in (a token id, a label, a position)",
     {"Compare the largest id of the batch with the size of the embedding: tokenizer and model may be of different "
      "vocabularies, or the sequence longer than the model's positions."},
     false,
     true},
    {"empty-dataset",
     "the dataset is empty",
     {"Check the path of the data on the host that reports it, and the filters (length, language, split) that are "
      "applied to it.",
      "If only some ranks report it: their shard got no files; there must be at least as many files as ranks."},
     true},
    {"packages-differ",
     "two installed packages do not fit: one imports a name that the other does not have",
     {"Look at the releases of both (pip show, pip check), and install ones that fit; requirements of the program name "
      "them.",
      "If only some nodes report it: their environment or image is another one.",
      "A file of your own with the name of the package hides it: python -c \"import NAME; print(NAME.__file__)\"."},
     false,
     true},
    {"package-missing",
     "a Python package is missing in the environment of the process",
     {"Install the package for the Python that the job runs (python -m pip install NAME), on all nodes or in the "
      "image.",
      "Compare the interpreters: torchrun, srun and ssh may start another Python than your shell does (which python; "
      "python -c \"import sys; print(sys.executable)\")."},
     false,
     true},
    {"no-permission",
     "the process may not access a file, folder or device",
     {"On the host that reports it, inside of the container and as the user of the job: ls -l of the path, and id.",
      "Caches of another user are common (/tmp, ~/.cache, torch_extensions, HF_HOME): give each user or job its own "
      "folder."},
     true},
    {"system-library-old",
     "a compiled package needs a newer C or C++ library than the process finds on this host",
     {"Use an image or a node with a newer system, or a build of the package for this one (ldd --version shows glibc).",
      "GLIBCXX and CXXABI come with libstdc++: conda install -c conda-forge libstdcxx-ng, and put its lib folder first "
      "in "
      "LD_LIBRARY_PATH."}},
    {"numpy-release",
     "a compiled package was built for another release of NumPy",
     {"Install a newer release of the package that the traceback names, or pip install \"numpy<2\"."}},
    {"no-compiler",
     "a kernel is compiled while the program runs, and the compiler or the CUDA toolkit is missing",
     {"Install gcc or clang, ninja, the headers of Python and the CUDA toolkit on all nodes or in the image, and set "
      "CUDA_HOME; the toolkit must be of the release that torch.version.cuda names.",
      "Or use packages that come with built kernels (wheels), or switch compiling off."}},
    {"extension-build",
     "a CUDA extension could not be built",
     {"Read the first line with 'error:' above it: that is the compiler's reason.",
      "Compare nvcc --version with torch.version.cuda, and the version of gcc with what this CUDA supports.",
      "Remove what an interrupted build left over: rm -r ~/.cache/torch_extensions."}},
    {"toolkit-release",
     "a CUDA extension cannot be built: the CUDA toolkit is of another release than the one PyTorch was built with",
     {"Point CUDA_HOME to a toolkit of the release that torch.version.cuda names (nvcc --version), on all nodes.",
      "Or install a build of PyTorch for the toolkit that is there.",
      "Or use a package that comes with built kernels (a wheel)."}},
    {"extension-missing",
     "the compiled part of a Python package is missing: it was not built for this environment, or its build failed",
     {"Look above for the compiler's reason ('error:', 'No such file or directory'): a header or the CUDA toolkit may "
      "be "
      "missing (CUDA_HOME).",
      "Install a wheel of the package that has it, for this Python, PyTorch and CUDA, or build it again with the CUDA "
      "toolkit that torch.version.cuda names."}},
    {"heap-damaged",
     "the memory of a process is damaged: native code wrote or freed what it should not, and the process aborted",
     {"Find the library: a core dump (ulimit -c unlimited) read with gdb (bt), and PYTHONFAULTHANDLER=1 for the Python "
      "line. The place where it is noticed may be far from where it was done.",
      "Run with num_workers=0: if it is gone, a library of the data code (decoders, OpenCV, HDF5, Arrow) is not safe "
      "to "
      "fork; start the workers with multiprocessing_context='spawn'.",
      "Look for two copies of one library in the process (OpenMP, libstdc++, protobuf, tcmalloc in LD_PRELOAD), and "
      "for "
      "extensions built against another release."},
     true},
    {"rocm-runtime",
     "ROCm's runtime cannot get what it needs of the GPUs or their driver",
     {"Look whether all GPUs still answer: rocm-smi; dmesg -T | grep -i amdgpu. After a reset or a fault load the "
      "driver "
      "again, or restart the host.",
      "Check access: /dev/kfd and /dev/dri must be there (also in the container), and the user in their groups "
      "(render, "
      "video).",
      "Processes left over from earlier jobs hold queues and memory: rocm-smi --showpids."},
     true},
    {"library-mix",
     "libraries of two CUDA releases are mixed: one lacks a symbol that the other one needs",
     {"Remove other copies of CUDA from LD_LIBRARY_PATH: the packages nvidia-* that pip installs with PyTorch bring "
      "their "
      "own (python -m torch.utils.collect_env lists them).",
      "Reinstall PyTorch and its nvidia-* packages together, for the same CUDA release.",
      "LD_DEBUG=libs shows from where each library is loaded."}},
    {"checkpoint-unlike-optimizer",
     "the state of the optimizer in the checkpoint does not fit the optimizer: its parameter groups differ",
     {"Build the same parameters and groups as the run that wrote the checkpoint: frozen layers, added layers and "
      "weight-decay groups change them.",
      "If the model has changed on purpose: load its weights only, and start with a new optimizer."}},
    {"no-api-key",
     "the process has no API key for wandb",
     {"Set WANDB_API_KEY in the job's environment on all nodes, or run wandb login there once.",
      "Or start with WANDB_MODE=offline, and upload later with wandb sync."}},
    {"shared-tensors",
     "tensors that share memory cannot be saved with safetensors",
     {"Save with safetensors.torch.save_model, or save_safetensors=False, or model.save_pretrained.",
      "Look for tied weights that the model does not declare (_tied_weights_keys)."},
     false,
     true},
    {"kernel-resources",
     "a Triton kernel needs more shared memory or registers than this GPU has",
     {"Lower block sizes or num_stages of the kernel that the traceback names: its configuration was made for a larger "
      "GPU.",
      "Use a release of the library that has a configuration for this GPU, or its path without Triton."}},
    {"tensor-split",
     "the model cannot be split that way: one of its dimensions is not divisible by the tensor-parallel size",
     {"Choose a tensor-parallel size that divides the number of attention heads (and of key-value heads, and the block "
      "size of the quantization).",
      "Use pipeline or data parallelism for the other GPUs."}},
    {"pipeline-split",
     "the model cannot be split that way: its number of layers is not divisible by the pipeline-parallel size",
     {"Choose a pipeline-parallel size that divides the number of layers, or set how many layers each stage gets "
      "(Megatron: --decoder-first-pipeline-num-layers and --decoder-last-pipeline-num-layers).",
      "Use tensor or data parallelism for the other GPUs."}},
    {"sequence-split",
     "the input cannot be split that way: its length is not divisible by the parallel size that splits it",
     {"Pad the sequences to a multiple of the tensor-parallel size (with context parallelism, of twice that size times "
      "the context-parallel one).",
      "Or switch sequence parallelism off."}},
    {"context-length",
     "the context length that is asked for is longer than the model's own",
     {"Lower --max-model-len to what the model supports (max_position_embeddings in its config.json), or set the rope "
      "scaling that its authors give."}},
};

}  // namespace tacet
