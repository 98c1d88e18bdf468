// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/events/refusals.h"

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
     "this build of PyTorch has no libuv, which its TCPStore is set to use",
     {"Set USE_LIBUV=0 before the job starts, or append ?use_libuv=0 to the init_method.",
      "Or install a build of PyTorch with libuv."}},
    {"mpi-without-launcher",
     "MPI could not start in this process: usually because no MPI launcher started it, or the launcher of a different "
     "MPI did",
     {"Start the program with mpirun or srun --mpi=pmix of the same MPI that it was built against; torchrun is not an "
      "MPI "
      "launcher.",
      "If nothing in the program needs MPI: find what initializes it (mpi4py, a user-buffer or overlap option) and "
      "switch "
      "it off, or choose another bootstrap backend for it.",
      "Compare the versions: which mpirun, and ldd of the library that calls MPI_Init."}},
    {"parallel-sizes",
     "the number of processes does not match the configured parallel sizes (tensor, pipeline, data, expert)",
     {"Start as many processes as the sizes ask for: tensor x pipeline (x context) must divide the world size.",
      "Or change the sizes to match the number of processes."}},
    {"engine-sizes",
     "the number of processes does not match the parallel sizes that the engine was built for",
     {"Start exactly as many processes as the engine was built for, tensor x pipeline size: mpirun -n N.",
      "Or build the engine again for the processes that you have."}},
    {"batch-sizes",
     "the batch sizes in the configuration do not match the number of processes",
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
      "If it cannot reach the server: WANDB_MODE=offline, and wandb sync DIR after the job.",
      "If it is only slow: wandb.init(settings=wandb.Settings(init_timeout=300))."}},
    {"cpu-tensor",
     "a tensor on the CPU was given to a backend that only moves GPU memory",
     {"Move the tensor to the GPU before the collective, or initialize with both backends: "
      "init_process_group(backend=\"cpu:gloo,cuda:nccl\")."}},
    {"graph-capture",
     "a call was made that CUDA does not allow while it captures a graph",
     {"Look for what waits for the GPU there: .item(), .cpu(), printing a tensor, a branch on a tensor's value, "
      "torch.cuda.synchronize(). Move it out of the captured code.",
      "Run the captured code a few times before the capture, on a side stream, so that libraries are already set up "
      "and memory is already allocated.",
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
     "the NVIDIA driver does not answer on this host: it is not loaded, or does not match the kernel",
     {"On the host: lsmod | grep nvidia; dmesg -T | grep -iE 'nvrm|nvidia'; after an update of the kernel the driver "
      "must "
      "be built again (dkms status).",
      "Load it (modprobe nvidia), or restart the host; take the node out of service until nvidia-smi works."}},
    {"gpu-access-lost",
     "the container or the user has no access to the GPUs, or has lost it",
     {"On the host itself: does nvidia-smi work there? Then the container lost its devices, as happens when systemd is "
      "reloaded on a host with cgroup v2: start the container again.",
      "To keep it from happening: set the cgroup driver of the container runtime to cgroupfs, or use CDI "
      "(nvidia-ctk cdi generate).",
      "Without a container: ls -l /dev/nvidia*, and the groups of the user."}},
    {"gpu-taken",
     "CUDA gets no GPU: all GPUs that the process sees are in use or faulty",
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
     {"On the host that says so: getent hosts NAME. The name must be spelled correctly (MASTER_ADDR, the endpoint's "
      "URL), and the servers in /etc/resolv.conf must answer.",
      "In Kubernetes: the name of a pod needs its headless Service, and is only known once the pod runs; nslookup NAME "
      "in the pod tests it.",
      "'Temporary failure' points to the name server: it does not answer, or is overloaded when all ranks ask at "
      "once."}},
    {"watch-limit",
     "the host has no more inotify watches; no disk is full",
     {"Raise it: sysctl fs.inotify.max_user_watches=1048576 fs.inotify.max_user_instances=8192.",
      "Find out what uses them: editors, log shippers and file watchers on folders with many files."}},
    {"no-cloud-keys",
     "the process has no valid credentials for the object store",
     {"In the environment of the rank that says so: AWS_PROFILE, AWS_ACCESS_KEY_ID, the role of the instance or of the "
      "service account; for Google GOOGLE_APPLICATION_CREDENTIALS. aws sts get-caller-identity tests it.",
      "Tokens expire during long jobs: use a role or a provider that renews them."}},
    {"cloud-forbidden",
     "the object store denies access with these credentials",
     {"aws sts get-caller-identity shows who asks; compare with the policy of the bucket and of the role. Without the "
      "right to list, a missing object gives 403 as well.",
      "Is the bucket's name and region right?"}},
    {"cloud-busy",
     "the object store rejects requests because there are too many",
     {"Have fewer processes read or write at the same time, and use larger objects; write one object per rank, not the "
      "same one from all.",
      "Raise the retries with back-off: AWS_MAX_ATTEMPTS=10 AWS_RETRY_MODE=adaptive."}},
    {"cloud-unreachable",
     "the object store does not answer at its address",
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
     {"Start no more processes per node than there are visible GPUs (--nproc-per-node; nvidia-smi -L, "
      "CUDA_VISIBLE_DEVICES).",
      "Use torch.cuda.set_device(local_rank), not the global rank."}},
    {"no-kernel-image",
     "this build has no code for the GPU's architecture",
     {"Compare torch.cuda.get_arch_list() with torch.cuda.get_device_capability(): install a build of PyTorch that "
      "supports this GPU.",
      "Extensions built from source: build them again with TORCH_CUDA_ARCH_LIST (AMD: PYTORCH_ROCM_ARCH) for this GPU.",
      "AMD: rocminfo shows the gfx number of the GPU; the ROCm build of PyTorch must list it."}},
    {"old-driver",
     "the driver is too old for the CUDA version of the program",
     {"Update the driver of the host (nvidia-smi shows the CUDA version that it supports), or install a build for an "
      "older "
      "CUDA.",
      "In containers: the driver is the host's; remove a compat library that does not match it."}},
    {"driver-mismatch",
     "CUDA cannot start: the CUDA library that the process loads does not match the host's driver",
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
     "the program was built for a processor architecture other than the host's",
     {"Use an image or a package for the host's architecture (uname -m): x86_64 and aarch64 differ.",
      "A script needs an interpreter in its first line (#!/bin/bash)."}},
    {"missing-library",
     "a shared library that the program needs cannot be loaded",
     {"Find it (find / -name 'libNAME*') and add its folder to LD_LIBRARY_PATH, or install the package that has it, in "
      "the same image and on all nodes.",
      "Libraries of CUDA and cuDNN must be of the release that the program was built for: compare with "
      "torch.version.cuda and torch.backends.cudnn.version().",
      "ldd FILE.so shows which libraries of a module are not found."}},
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
     "a compiled extension was built for a different release of PyTorch",
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
      "Raise the limit on threads if it is small: ulimit -u.",
      "Read the |CCL_ERROR| line above it: the number after 'pthread_create returns' is the system's error (22: a "
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
     {"On the host that reports it: dmesg -T, and the state of the mount (df -h PATH, mount): a failed disk, a file "
      "system server that is gone, or a full disk or quota there gives this error.",
      "Write and read a file there by hand: dd if=/dev/zero of=PATH/test bs=1M count=1024 conv=fsync.",
      "Check the last checkpoint before you start again: the file that was being written is incomplete."},
     true},
    {"file-not-created",
     "a file to be written cannot be created: its folder is missing or not writable, or the disk is full",
     {"On the host that reports it: ls -ld of the folder, df -h and df -i PATH, and the quota.",
      "A relative path is relative to the folder in which each rank was started; create the folder on rank 0 before "
      "the first checkpoint, and let the others wait for it."},
     true},
    {"checkpoint-unlike-model",
     "the checkpoint does not match the model: names or shapes of parameters differ",
     {"Compare the configuration with that of the run that wrote the checkpoint: architecture, vocabulary, tensor and "
      "pipeline sizes.",
      "If only the first dimension of an embedding or of the output layer differs, it is the vocabulary: use the "
      "tokenizer of that run and the same padding (Megatron: --make-vocab-size-divisible-by times the tensor-parallel "
      "size), or resize the embedding.",
      "A prefix such as 'module.' comes from DDP: remove it before loading."}},
    {"checkpoint-shapes",
     "the checkpoint does not match the model: shapes of parameters differ",
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
      "Do not build the model under zero.Init() or on the meta device if its weights are copied in afterward."}},
    {"weights-only",
     "the file holds objects other than weights, and torch.load reads weights only (the default since PyTorch 2.6)",
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
     {"Compare the norms below the error. If one rank alone differs, test its GPU (dcgmi diag -r 3), and look for "
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
      "Check that no other job holds them."}},
    {"serving-memory",
     "the server finds less free GPU memory at start than its configuration asks for",
     {"Check with nvidia-smi what else is using the GPU: an earlier server, another job.",
      "Lower --gpu-memory-utilization to what is free, or use more GPUs (tensor parallel)."}},
    {"cache-memory",
     "too little GPU memory is left for the server's KV cache once the model is loaded",
     {"Raise --gpu-memory-utilization (SGLang: --mem-fraction-static), or lower --max-model-len and --max-num-seqs.",
      "Spread the model over more GPUs (--tensor-parallel-size), or use a quantized one."}},
    {"too-few-slots",
     "the launcher mpirun has fewer slots than processes to start, so it started none",
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
    {"mpi-execve",
     "the program could not be started on a host by mpirun",
     {"Look at the program on the host that the note names, as the job sees it: ls -l must show a file with the right "
      "to "
      "execute, and no folder; a script needs its interpreter (#!) there, too.",
      "Start scripts through their interpreter: mpirun ... bash train.sh, mpirun ... python train.py."},
     false,
     false,
     false,
     true},
    {"mpi-mapping",
     "the processes cannot be placed on the hosts in the way that mpirun is told to",
     {"Compare --map-by and -np with the hosts and slots of the allocation: ppr:8:node needs 8 slots on each host.",
      "Print what mpirun sees: mpirun --display allocation,map (Open MPI 4: --display-allocation --display-map)."},
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
      "--help (Hydra: --cfg job). An empty value ('') usually comes from a variable in the launch command that is not "
      "set.",
      "Launcher options go before the script name, script options after it.",
      "Run the script alone with the same arguments to test them: this needs neither a GPU nor other ranks."}},
    {"no-download",
     "a server could not be reached over HTTP, for a download or an upload",
     {"On the host that reports it, in the same container: curl -I https://huggingface.co, or the server that the "
      "message names. Compute nodes often have no internet access; with a proxy set https_proxy and no_proxy "
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
     "the server rate-limits requests (HTTP 429)",
     {"Let one rank per node download while the others wait, and keep the files in a cache that all ranks share "
      "(HF_HOME).",
      "Set a token (HF_TOKEN): the limit is higher then. Wait a few minutes before you retry."}},
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
      "Remove other copies of cuDNN and CUDA from LD_LIBRARY_PATH: PyTorch brings its own, and a copy of a different "
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
     "the tensor shapes in one operation do not match",
     {"Print the shapes before the call that the traceback names, and compare them with the configuration: hidden "
      "size, "
      "number of heads, vocabulary, sequence length.",
      "With tensor or sequence parallelism: one operand is split and the other one is not; check the parallel plan and "
      "that sizes are divisible by the parallel size.",
      "If only some batches fail: the last batch of an epoch is smaller (drop_last), or samples differ in length."},
     false,
     true},
    // Megatron's check of results runs a step that gave a bad value again, first on the same GPU, then on another one.
    {"result-check",
     "Megatron's check of results found a value that cannot be right",
     {"Read what the check says next of that rank: 'not reproducible' points to its GPU; 'reproducible' asks for a "
      "restart from the checkpoint of that step with the rank on another GPU, which decides.",
      "If another GPU gives the same value: look at the batch of that step, lower the learning rate, clip gradients.",
      "Compare the ranks: one that has it alone has other data, or a GPU that computes wrongly."},
     true,
     false,
     true},
    {"result-repeats",
     "a value that cannot be right came again when the step was run again on the same GPU: the data or the program, or "
     "a permanent fault of that GPU",
     {"Resume from the checkpoint that the check saves, with that rank on another GPU (exclude the node): the check "
      "runs the step once more and says which of the two it is.",
      "If the value stays: look at the batch of that step, lower the learning rate, clip gradients."},
     true,
     false,
     true},
    {"result-right",
     "another GPU gave the same value that cannot be right: it comes from the data or the program, and no GPU is at "
     "fault",
     {"Look at the batch of that step (empty targets, outliers), lower the learning rate, clip gradients; with fp16 or "
      "fp8 look at the scaling.",
      "Find the operation: torch.autograd.set_detect_anomaly(True) for that step."},
     true,
     false,
     true},
    {"module-device",
     "the module's parameters are not on the GPU that DDP or FSDP is to use",
     {"Call torch.cuda.set_device(local_rank) before the model is built, and move it to that device: a bare .cuda(), "
      "or 'cuda:0', on every rank puts all models on GPU 0.",
      "FSDP: pass device_id=torch.cuda.current_device(), which moves what is still on the CPU. DDP: move the whole "
      "module before it is wrapped.",
      "Do not load the model with device_map=\"auto\", which spreads it over the GPUs of one process."},
     false,
     true},
    {"fsdp-integer",
     "FSDP cannot shard parameters of an integer type, as quantized weights have",
     {"Store the quantized weights as the type that is computed with (bitsandbytes: bnb_4bit_quant_storage), or keep "
      "quantized modules out of FSDP (ignored_modules).",
      "Or use FSDP 2 (fully_shard), DDP, or weights that are not quantized."},
     false,
     true},
    {"fsdp-root",
     "a part of the model that FSDP wraps ran before the whole model did, and took itself for the root",
     {"Call the outermost wrapped module first: no submodule's forward, state_dict or generate before it.",
      "If parts are used by themselves: wrap each of them as a root of its own, and not the whole around them."},
     false,
     true},
    {"fsdp-wrap-class",
     "the class of layers that FSDP is to wrap does not occur in this model",
     {"Set fsdp_transformer_layer_cls_to_wrap (Accelerate, Trainer) to a class of this model: print(model) shows the "
      "names, such as LlamaDecoderLayer.",
      "Or wrap by size: SIZE_BASED_WRAP."}},
    {"fsdp-uniform",
     "FSDP flattens parameters together that differ in data type or in requires_grad",
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
     "activation checkpointing got different tensors when it ran the forward pass again",
     {"Make the forward pass do the same both times: no branches on time, counters or random numbers outside of "
      "PyTorch, no caches filled the first time, the same autocast state.",
      "Apply checkpointing before FSDP or torch.compile wraps the module; try use_reentrant=True to check whether only "
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
     "the samples of one batch have different shapes and cannot be stacked",
     {"Pad or crop samples to one size in the dataset or in collate_fn.",
      "Look for the odd samples: images with a different number of channels, empty or truncated ones."},
     false,
     true},
    {"index-range",
     "an index is outside the table in which it is looked up (a token id, a label, a position)",
     {"Compare the largest id of the batch with the size of the embedding: tokenizer and model may have different "
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
     "two installed packages do not match: one imports a name that the other does not have",
     {"Look at the releases of both (pip show, pip check), and install ones that match; the program's requirements "
      "name them.",
      "If only some nodes report it: their environment or image is a different one.",
      "A file of your own with the same name as the package hides it: python -c \"import NAME; "
      "print(NAME.__file__)\"."},
     false,
     true},
    {"package-missing",
     "a Python package is missing in the environment of the process",
     {"Install the package for the Python that the job runs (python -m pip install NAME), on all nodes or in the "
      "image.",
      "Compare the interpreters: torchrun, srun and ssh may start a different Python from the one in your shell (which "
      "python; "
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
     "a compiled package was built for a different release of NumPy",
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
     "a CUDA extension cannot be built: the CUDA toolkit is of a different release from the one that PyTorch was built "
     "with",
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
     "the memory of a process is damaged: native code wrote to or freed memory that it should not have, and the "
     "process aborted",
     {"Find the library: a core dump (ulimit -c unlimited) read with gdb (bt), and PYTHONFAULTHANDLER=1 for the Python "
      "line. The damage may be detected far from the code that caused it.",
      "Run with num_workers=0: if the error is gone, a library of the data code (decoders, OpenCV, HDF5, Arrow) is not "
      "safe to fork; start the workers with multiprocessing_context='spawn'.",
      "Look for two copies of one library in the process (OpenMP, libstdc++, protobuf, tcmalloc in LD_PRELOAD), and "
      "for extensions built against a different release."},
     true},
    {"rocm-runtime",
     "the ROCm runtime cannot get the resources that it needs from the GPUs or their driver",
     {"Check whether all GPUs still answer: rocm-smi; dmesg -T | grep -i amdgpu. After a reset or a fault, load the "
      "driver again, or restart the host.",
      "Check access: /dev/kfd and /dev/dri must be there (also in the container), and the user in their groups "
      "(render, "
      "video).",
      "Processes left over from earlier jobs hold queues and memory: rocm-smi --showpids."},
     true},
    {"library-mix",
     "libraries of two CUDA releases are mixed: one lacks a symbol that the other needs",
     {"Remove other copies of CUDA from LD_LIBRARY_PATH: the packages nvidia-* that pip installs with PyTorch bring "
      "their "
      "own (python -m torch.utils.collect_env lists them).",
      "Reinstall PyTorch and its nvidia-* packages together, for the same CUDA release.",
      "LD_DEBUG=libs shows from where each library is loaded."}},
    {"checkpoint-unlike-optimizer",
     "the optimizer state in the checkpoint does not match the optimizer: its parameter groups differ",
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
    {"openmp-twice",
     "two copies of the OpenMP runtime are loaded into one process",
     {"Find which packages bring them (python -m threadpoolctl -i torch numpy), and install both from one source: all "
      "with pip, or all with conda.",
      "KMP_DUPLICATE_LIB_OK=TRUE only hides the error: the program may then hang or compute wrong results."}},
    {"openmp-shm",
     "the OpenMP runtime cannot create its file in /dev/shm",
     {"Check that /dev/shm is mounted, writable and not full, as the process sees it: ls -ld /dev/shm, df -h /dev/shm.",
      "In a container or sandbox: mount it (docker run --shm-size=16g, an emptyDir with medium: Memory in "
      "Kubernetes)."}},
    {"cudnn-release",
     "the cuDNN library that the process loads is older than the one it was built for",
     {"Find which cuDNN is loaded (LD_LIBRARY_PATH, /usr/lib, the package nvidia-cudnn-cu12), and remove the older "
      "copy from LD_LIBRARY_PATH.",
      "Or install the release that the line asks for: pip install 'nvidia-cudnn-cu12>=X.Y'."}},
    {"ray-agent",
     "an agent of Ray on this node failed, and Ray's node process ended with it",
     {"Read the agent's log on that node (/tmp/ray/session_latest/logs/runtime_env_agent.log, dashboard_agent.log): a "
      "port that is taken, a package that does not load.",
      "Compare pip freeze | grep grpcio with what the release of Ray asks for: a different release can crash the "
      "agent."}},
    {"ray-worker-died",
     "worker processes of Ray ended while they started",
     {"Read why: worker-*.err and python-core-worker-*.log of the process that the line names "
      "(/tmp/ray/session_latest/logs on that node).",
      "Start what Ray starts by hand in the same environment: python -c 'import ray, torch'. An import that fails, a "
      "missing library, or a limit of memory or processes (ulimit -u) ends such workers at once.",
      "dmesg -T on that node shows OOM kills and segmentation faults."}},
    {"ray-worker-start",
     "worker processes of Ray did not start in time",
     {"Look at the CPU load and the file system of that node: importing Python packages from a slow shared file system "
      "takes longer than the limit (RAY_worker_register_timeout_seconds).",
      "Read worker-*.err and python-core-worker-*.log of the process that the line names "
      "(/tmp/ray/session_latest/logs)."}},
    {"ray-versions",
     "the Ray cluster was started with a different release of Ray or Python from the one that this process runs",
     {"Use one image or environment on all nodes: compare ray --version and python --version.",
      "ray stop on all nodes, then ray start again in the same environment as the program."}},
    {"ray-disk",
     "Ray cannot spill objects: the disk of its session folder is full",
     {"Free space there (df -h /tmp/ray; old sessions below /tmp/ray), or choose a larger disk: ray start --temp-dir, "
      "or object_spilling_config.",
      "Keep fewer and smaller objects in Ray's object store: drop references that are no longer needed, save "
      "checkpoints to storage instead."}},
    {"ray-object-store",
     "Ray's object store is full",
     {"Drop references to objects that are no longer needed, and pass large arrays once (ray.put) instead of with "
      "every call.",
      "Give the store more memory (ray start --object-store-memory; a container needs as much in /dev/shm)."}},
    {"ray-runtime-env",
     "Ray could not set up the runtime environment of a worker",
     {"Read runtime_env_setup-*.log on that node (/tmp/ray/session_latest/logs): a package that cannot be installed, a "
      "working_dir that is too large or cannot be downloaded.",
      "Install the packages in the image instead of in runtime_env."}},
    {"backward-twice",
     "the backward pass runs twice through the same graph",
     {"Find the tensor that lives on from the last step (a hidden state, a cached output, an accumulated loss), and "
      "detach() it.",
      "If two losses share a graph: add them up and call backward() once, or pass retain_graph=True to all but the "
      "last."},
     false,
     true},
    {"no-trainable",
     "the module that is wrapped in DDP has no trainable parameter",
     {"Wrap after the layers are unfrozen (requires_grad_(True)), or do not wrap a frozen model such as a teacher or a "
      "reference model.",
      "With LoRA: check that target_modules match names of the model, so that adapters were added."},
     false,
     true},
    {"address-not-local",
     "the address to listen at does not belong to this host",
     {"Give MASTER_ADDR (--rdzv-endpoint, --master-addr) the address of the host on which rank 0 runs: hostname -I "
      "there shows its addresses.",
      "Check the node rank: only the first node listens at that address. In a container use its own address, not the "
      "host's."}},
    {"port-privileged",
     "the process may not listen at that port",
     {"Ports below 1024 need root: choose another one (MASTER_PORT, --rdzv-endpoint)."}},
    {"cudnn-no-engine",
     "the library cuDNN finds no way to run this operation",
     {"Check the GPU's free memory first (nvidia-smi): cuDNN needs workspace, and reports its absence in these words.",
      "Then the data type and the sizes of the operation, and that PyTorch and its nvidia-cudnn package belong "
      "together (python -m torch.utils.collect_env)."}},
    {"cublas-not-supported",
     "the library cuBLAS does not support this combination of sizes, data types and GPU",
     {"Look at the operands of the call: FP8 and INT8 need sizes that are multiples of 16, and FP8 needs Ada or Hopper "
      "GPUs and newer.",
      "Remove other copies of cuBLAS from LD_LIBRARY_PATH: a library of a different CUDA release reports this for "
      "correct calls."}},
    {"unscale-fp16",
     "the trainable parameters are float16, which mixed precision with a gradient scaler does not allow",
     {"Load the model in float32 (torch_dtype=torch.float32) and keep fp16=True, or train in bfloat16 (bf16=True).",
      "With LoRA: cast the trainable adapters to float32."},
     false,
     true},
    {"pad-token",
     "the tokenizer has no padding token",
     {"Set tokenizer.pad_token = tokenizer.eos_token, or add a token and resize the embeddings "
      "(model.resize_token_embeddings)."},
     false,
     true},
    {"deepspeed-config",
     "the DeepSpeed configuration contradicts the arguments of the trainer",
     {"Set the values that the message lists to \"auto\" in the DeepSpeed configuration, or make both the same."}},
    {"op-incompatible",
     "DeepSpeed cannot build one of its operators on this host",
     {"Run ds_report: it lists which operators are compatible, and why not. async_io needs the headers of libaio (apt "
      "install libaio-dev).",
      "Or switch off what needs the operator: offload to NVMe needs async_io, the fused optimizers need nvcc."}},
    {"device-map",
     "the model was spread over all GPUs with device_map='auto', which cannot be combined with data parallelism",
     {"Remove device_map, or give each process its own GPU: device_map={\"\": local_rank}.",
      "If the model does not fit on one GPU: use FSDP or DeepSpeed ZeRO-3 instead."}},
    {"quantized-training",
     "the quantized model is not on the process's own GPU",
     {"Load it with device_map={\"\": local_rank} (torch.cuda.current_device()), one whole copy per process."}},
    {"hostfile",
     "the hostfile cannot be used: it is missing, malformed, or lacks what the command asks for",
     {"DeepSpeed reads lines such as 'node1 slots=8' (--hostfile, default /job/hostfile), ColossalAI one host name per "
      "line. Check the path and each line.",
      "Compare --include and --exclude with the names and the number of slots in the file; slots count from 0."},
     false,
     false,
     false,
     true},
    {"zero-world-size",
     "the optimizer states in the checkpoint were saved by a different number of processes",
     {"Resume with the same number of GPUs, or convert the checkpoint to a universal one (ds_to_universal.py, then "
      "load_universal: true).",
      "Or load the weights alone (load_optimizer_states=False; zero_to_fp32.py joins them)."}},
    {"zero-order",
     "ZeRO-3 found that ranks fetch different parameters at the same time: they run different modules",
     {"Make all ranks run the same modules in the same order: no branch on the rank or on the data (a modality that is "
      "missing in a batch, experts without tokens).",
      "Tell DeepSpeed about modules whose internals differ: deepspeed.utils.set_z3_leaf_modules(model, [Module])."},
     false,
     true},
    {"zero-trace",
     "ZeRO-3 found the modules in a different order from the step before",
     {"Keep the order of modules the same in every step, or tell DeepSpeed about those that change: "
      "set_z3_leaf_modules(model, [Module]).",
      "A forward pass outside of the training step (evaluation, generation) changes the order: run it under "
      "deepspeed.zero.GatheredParameters, or through the engine."},
     false,
     true},
    {"megatron-data",
     "the indexed dataset is not at the given path",
     {"--data-path takes the common prefix of both files, without .bin and .idx: ls PREFIX.bin PREFIX.idx on every "
      "node.",
      "Check that the file system is mounted there, and that preprocess_data.py has written both."}},
    {"max-connections",
     "CUDA_DEVICE_MAX_CONNECTIONS is not 1, which this kind of overlap needs",
     {"export CUDA_DEVICE_MAX_CONNECTIONS=1 for all ranks (torchrun passes it on; mpirun needs -x). On Blackwell GPUs "
      "newer releases do not need it."}},
    {"not-distributed-checkpoint",
     "the checkpoint has a different format, or was saved with different settings, from what this run expects",
     {"Compare --ckpt-format, the release and the optimizer settings (--use-distributed-optimizer, parallel sizes) "
      "with those of the run that saved it.",
      "To load the weights alone: --no-load-optim --no-load-rng, or --finetune."}},
    {"checkpoint-missing",
     "the checkpoint to be loaded is missing or was not written completely",
     {"List the folder on the node of that rank: a sharded checkpoint needs all of its files (.distcp) and, written "
      "last, .metadata. Without it the save did not finish: use an older step.",
      "Check that all nodes see the same shared file system: files on a node's local disk are missing on the others."},
     true},
    {"checkpoint-key",
     "the checkpoint lacks an entry that the program loads",
     {"Compare the names: what was saved (the model wrapped or not, the optimizer's type, flattened or not) must match "
      "what is loaded.",
      "To continue without it: load the weights alone, or pass a planner with allow_partial_load=True."},
     true,
     true},
    {"fp8-shape",
     "FP8 needs sizes that are multiples of 16, and those of this batch are not",
     {"Pad sequences (and the vocabulary) to a multiple of 16: pad_to_multiple_of=16, or drop the last incomplete "
      "batch."},
     false,
     true},
    {"attention-backend",
     "Transformer Engine finds no attention kernel for these inputs",
     {"Run again with NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2: it prints for each backend why it is ruled out (release of "
      "flash-attn or cuDNN, head size, mask, data type).",
      "Check that NVTE_FLASH_ATTN, NVTE_FUSED_ATTN and NVTE_UNFUSED_ATTN are not all 0."}},
    {"lightning-tasks",
     "the Slurm allocation and the arguments of the trainer ask for different numbers of processes",
     {"Make them equal: --ntasks-per-node = devices, --nodes = num_nodes, and start with srun.",
      "In an interactive shell that was not started for the job: unset SLURM_NTASKS, or SLURM_JOB_NAME=bash."}},
    {"monitor-key",
     "the metric that the checkpoint callback watches was never logged",
     {"Log it under that exact name in validation_step (self.log('val_loss', ..., sync_dist=True)), on all ranks, "
      "before the callback runs; or monitor one of the listed keys."},
     false,
     true},
    {"meta-parameters",
     "parameters are still on the meta device: they have no memory yet",
     {"After fully_shard: model.to_empty(device='cuda'), then initialize or load all of them. Parameters that the "
      "checkpoint lacks (tied or new layers) need their own initialization."},
     false,
     true},
    {"no-sharding",
     "this operator is not implemented for DTensor",
     {"Use a newer release of PyTorch, or another form of the call (clip_grad_norm_ with foreach=False), or work on "
      "full_tensor() or to_local() there."},
     false,
     true},
    {"pipeline-shapes",
     "a pipeline stage got a tensor whose shape differs from that in its first step",
     {"Keep the microbatch and the sequence length constant: the shapes of the first step hold for all "
      "(drop_last=True, padding).",
      "Or create the stages again when the shapes change, for example for evaluation."},
     false,
     true},
    {"compile-cache",
     "files of the compiler's cache vanished while they were used",
     {"Give each job a cache of its own on a local disk (TORCHINDUCTOR_CACHE_DIR, TRITON_CACHE_DIR); a shared or "
      "cleaned /tmp loses files.",
      "Several ranks on one network file system compile into the same folder: use a folder per node."}},
    {"compile-failed",
     "the program could not be compiled by torch.compile",
     {"TORCH_COMPILE_DISABLE=1 runs it without compilation: as a workaround, and to confirm that this is the reason.",
      "Run again with TORCHDYNAMO_VERBOSE=1 and TORCH_LOGS=+dynamo,+inductor; mark the function that fails with "
      "torch.compiler.disable."},
     false,
     true},
    {"peer-handle",
     "the process may not take file descriptors of its peers, which symmetric memory needs",
     {"In a container: --cap-add=SYS_PTRACE (Kubernetes: securityContext.capabilities.add), or a seccomp profile that "
      "allows pidfd_getfd.",
      "On the host: sysctl kernel.yama.ptrace_scope=0."}},
    {"cufile-driver",
     "GPUDirect Storage cannot start: the driver nvidia-fs is not loaded on this host",
     {"modprobe nvidia-fs (package nvidia-fs-dkms, the same release as the driver), then "
      "/usr/local/cuda/gds/tools/gdscheck -p.",
      "Or allow the slower way through host memory: allow_compat_mode: true in cufile.json."}},
    {"engines-differ",
     "the data-parallel engines were started with different settings",
     {"Start all of them with the same arguments, image and environment variables; the message lists what must be "
      "equal."}},
    {"paddle-launch",
     "the program was not started by Paddle's launcher, which sets the addresses of all processes",
     {"Start it with python -m paddle.distributed.launch --devices 0,1,... script.py (--master HOST:PORT and --nnodes "
      "for several nodes)."}},
    {"loader-stopped",
     "the process that reads the data raised an error",
     {"Read the error above this one: it names the reason in the dataset or the collate function. num_workers=0 raises "
      "it in the main process."},
     false,
     true},
    {"dataset-generation",
     "the dataset could not be built from its files",
     {"Read the error above this one (\"The above exception was the direct cause\"): usually one file with a different "
      "schema, a damaged line, or a full disk of the cache (HF_DATASETS_CACHE).",
      "Build the dataset once before the job starts; do not let all ranks build it at the same time."}},
    {"same-device-roles",
     "the trainer and the inference server use the same GPU in one communicator",
     {"Give them different GPUs: CUDA_VISIBLE_DEVICES for the server and for the trainer without overlap."}},
    {"read-only",
     "the file system is mounted read-only",
     {"Check the mount: a volume that is read-only on purpose (a dataset, a ConfigMap), or a file system that the "
      "kernel remounted after an error (dmesg -T | grep -iE 'remount|I/O error').",
      "Write checkpoints and caches to a writable path (HF_HOME, TMPDIR, the output folder)."}},
    {"forward-order",
     "FSDP found that ranks run their layers in different orders",
     {"Make all ranks take the same path through the model in the first iteration: no branch on the rank or on the "
      "data, the same number of microbatches."},
     false,
     true},
    {"not-in-group",
     "a rank was passed that does not belong to the process group",
     {"src and dst of a collective are global ranks, also for a subgroup: use dist.get_global_rank(group, i), or "
      "group_src and group_dst in newer releases."},
     false,
     true},
    {"not-contiguous",
     "a tensor that is not contiguous was given to a collective",
     {"Call .contiguous() on it before the collective (views from transpose, permute and slices are not contiguous)."},
     false,
     true},
    {"gather-size",
     "the output of a gather does not have room for one input of each rank",
     {"Allocate world size times the input; if inputs differ in size between ranks, pad them or use all_gather with a "
      "list."},
     false,
     true},
    {"nproc",
     "the launcher torchrun does not know this value of --nproc-per-node",
     {"Pass a number, or one of gpu, cpu and auto."},
     false,
     false,
     false,
     true},
    {"deepspeed-batch",
     "the batch size per GPU is not known to DeepSpeed",
     {"Set train_micro_batch_size_per_gpu in the DeepSpeed configuration to a number.",
      "Or pass a data loader that has a batch_size to accelerate.prepare(): one with a batch sampler of its own has "
      "none."}},
    {"attention-operator",
     "the package xFormers has no attention operator for these inputs",
     {"Read the list below the message: for each operator it says what does not fit (data type, head size, GPU, mask), "
      "or that it was not built.",
      "python -m xformers.info shows what is available: install the release that was built for this PyTorch and "
      "CUDA."}},
    {"user-buffers",
     "the overlap of Transformer Engine (user buffers) cannot share GPU memory between the ranks",
     {"To work around it, switch it off: tp_comm_overlap=False (no --tp-comm-overlap); UB_SKIPMC=1 avoids multicast "
      "memory alone.",
      "It needs NVLink between all GPUs of the tensor-parallel group, and in a container the same IPC rights as "
      "NCCL."}},
};

}  // namespace tacet
