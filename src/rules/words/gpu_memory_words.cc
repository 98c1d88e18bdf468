// SPDX-License-Identifier: Apache-2.0
#include "rules/words/gpu_memory_words.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/digit_groups.h"

namespace tacet {
namespace {

std::string Gib(double gib) {
  constexpr double kHuge = 1000;  // there hundredths say nothing
  char text[32];
  std::snprintf(text, sizeof text, gib < kHuge ? "%.2f" : "%.0f", gib);
  const std::string_view digits = text;
  const size_t point = std::min(digits.find('.'), digits.size());
  return GroupDigits(std::string(digits.substr(0, point))) + std::string(digits.substr(point));
}

// "75.45 GiB"; what GiB would round to little or nothing in MiB.
std::string Amount(double gib) {
  constexpr double kLeast = 0.1;
  if (gib >= kLeast || gib <= 0) return Gib(gib) + " GiB";
  return Gib(gib * 1024) + " MiB";
}

// "2.06 MiB of 79.19 GiB", "13.17 of 139.80 GiB"
std::string PartOf(double part, double whole) {
  const std::string all = Amount(whole), some = Amount(part);
  return (some.ends_with(" GiB") && all.ends_with(" GiB") ? Gib(part) : some) + " of " + all;
}

// Each holds little more than CUDA itself takes: most likely other ranks that touched this GPU.
bool AreContexts(const GpuMemoryUse& use) {
  constexpr double kContext = 1.5;  // GiB: what a process takes that only initialized CUDA, NCCL's buffers included
  return use.others.size() >= 2 && std::all_of(use.others.begin(), use.others.end(),
                                               [](const GpuMemoryHolder& one) { return one.gib < kContext; });
}

// "process 51833", "processes 51833 and 2 others"
std::string HolderNames(const GpuMemoryUse& use) {
  const std::string first = std::to_string(use.others.front().pid);
  if (use.others.size() == 1) return "process " + first;
  if (use.others.size() == 2) return "processes " + first + " and " + std::to_string(use.others.back().pid);
  return "process " + first + " and " + std::to_string(use.others.size() - 1) + " others";
}

std::string WordsForGpu(const GpuMemoryUse& use, bool named) {
  return named ? " there" : use.device >= 0 ? " of GPU " + std::to_string(use.device) : " of that GPU";
}

// PyTorch's settings and calls are of no use for another framework's allocator.
std::vector<std::string> StepsOfLibrary(Library library) {
  switch (library) {
    case Library::jax:
      return {
          "Lower the batch per device or the sequence length, recompute activations (jax.checkpoint, remat), or shard "
          "the model over more devices.",
          "Look at what else holds memory there (nvidia-smi): JAX takes 75 % of each GPU when it starts "
          "(XLA_PYTHON_CLIENT_MEM_FRACTION), so two programs on one GPU do not fit.",
          "See which arrays are large: jax.profiler.save_device_memory_profile, or the allocation list that XLA prints "
          "with the error."};
    case Library::tensorflow:
      return {"Lower the batch or input size, or use mixed precision (tf.keras.mixed_precision).",
              "Look at what else holds memory there (nvidia-smi): TensorFlow takes nearly all of a GPU unless "
              "tf.config.experimental.set_memory_growth is set.",
              "To reduce fragmentation, set TF_GPU_ALLOCATOR=cuda_malloc_async."};
    case Library::paddle:
      return {"Lower the batch size or the sequence length, or recompute activations (recompute in the strategy).",
              "Look at what else holds memory there: nvidia-smi.",
              "To reduce fragmentation, set FLAGS_allocator_strategy=auto_growth."};
    default: return {};
  }
}

std::vector<std::string> StepsByActivity(const GpuMemoryCase& facts) {
  constexpr std::string_view kOthers =
      "Check with nvidia-smi what else is using the GPUs: an earlier server that did not end, another job.";
  if (facts.server && facts.during == Activity::loading)
    return {
        "The memory ran out while the model was loaded: spread it over more GPUs (--tensor-parallel-size), or use a "
        "quantized or smaller one.",
        std::string(kOthers)};
  if (facts.server)
    return {
        "Lower the share of GPU memory that the server takes (vLLM: --gpu-memory-utilization, SGLang: "
        "--mem-fraction-static), --max-num-seqs or --max-model-len.",
        std::string(kOthers), "Spread the model over more GPUs (--tensor-parallel-size), or use a quantized one."};
  if (facts.during == Activity::saving)
    return {
        "Do not gather the whole state on the GPU: save a sharded state dict, or a full one with offload to the CPU on "
        "rank 0 only (FSDP: SHARDED_STATE_DICT, or FullStateDictConfig(offload_to_cpu=True, rank0_only=True)).",
        "Call torch.cuda.empty_cache() before saving, and save copies (EMA, optimizer) one after the other.",
        "If that is not enough: leave more room in training (smaller batch)."};
  if (facts.during == Activity::loading)
    return {"Load on the CPU first (torch.load(..., map_location='cpu')), and release the copy after load_state_dict.",
            "Load a sharded checkpoint shard by shard (torch.distributed.checkpoint, low_cpu_mem_usage, device_map).",
            "Check with nvidia-smi what else is using the GPU."};
  std::vector<std::string> steps = {
      facts.use.IsBeyondTheGpu()
          ? "This one tensor (" + Gib(facts.use.tried) + " GiB) is larger than the whole GPU (" + Gib(facts.use.total) +
                " GiB): neither recomputing activations nor sharding helps. Make it smaller: a smaller batch, a cap on "
                "the length of samples, or work in pieces (for attention scaled_dot_product_attention, which does not "
                "build the whole score matrix)."
          : "Lower the batch size or the sequence length, or recompute activations (torch.utils.checkpoint)."};
  switch (facts.owners) {
    case MemoryOwners::one:
      steps.push_back("Only " + facts.who +
                      " ran out of memory: check whether its pipeline stage or its batch is larger than those of the "
                      "others, and balance it.");
      break;
    case MemoryOwners::several:
      steps.push_back(
          "Several ranks ran out of memory, so the fault is not one rank's own: shard the model or its optimizer "
          "over more GPUs (FSDP, ZeRO), or offload it, if the batch cannot be smaller.");
      break;
    case MemoryOwners::not_told:
      steps.push_back(
          "If only one rank runs out of memory, its pipeline stage or its batch is larger than those of the others: "
          "balance it.");
      break;
  }
  return steps;
}

}  // namespace

std::string MemoryHolderWords(const GpuMemoryUse& use, bool named) {
  if (use.HitsOwnLimit())
    return ": it may use only " + Gib(use.allowed) + (use.total > 0 ? " of the " + Gib(use.total) : "") + " GiB" +
           WordsForGpu(use, named);
  if (!use.OthersFillIt()) return "";
  const bool one = use.others.size() == 1;
  return std::string(one ? ": another process (" : ": other processes (") +
         (one ? std::to_string(use.others.front().pid) : HolderNames(use)) + (one ? ") holds " : ") hold ") +
         Gib(use.OfOthers()) + (use.total > 0 ? " of the " + Gib(use.total) : "") + " GiB" + WordsForGpu(use, named);
}

std::string OwnLimitWords(const GpuMemoryUse& use) {
  return ": each may use only " + Gib(use.allowed) + (use.total > 0 ? " of the " + Gib(use.total) : "") +
         " GiB of its GPU";
}

std::string MemoryRequestWords(const GpuMemoryUse& use) {
  if (use.tried < 0) return "";
  const size_t others = use.others.size();
  return ": it asked for " + Amount(use.tried) +
         (use.free >= 0 ? " when " + (use.total > 0 ? PartOf(use.free, use.total) : Amount(use.free)) + " was free"
                        : "") +
         (use.own >= 0 ? ", and held " + Amount(use.own) + " itself" : "") +
         (use.allowed >= 0 ? " (it may use only " + Amount(use.allowed) + ")" : "") +
         (others == 0
              ? ""
              : "; " + std::to_string(others) + (others == 1 ? " other process holds " : " other processes hold ") +
                    Amount(use.OfOthers()) + " there");
}

std::vector<std::string> GpuMemorySteps(const GpuMemoryCase& facts) {
  const GpuMemoryUse& use = facts.use;
  std::vector<std::string> steps;
  if (use.HitsOwnLimit())
    steps.push_back(
        "Raise or remove the limit: the program, or a library it uses, calls "
        "torch.cuda.set_per_process_memory_fraction. The GPU itself has free memory.");
  if (use.OthersFillIt()) {
    steps.push_back("Find out what " + HolderNames(use) + (use.others.size() == 1 ? " is" : " are") +
                    " (nvidia-smi, ps -fp " + std::to_string(use.others.front().pid) +
                    "): a leftover of an earlier run, another user's job, or another rank of this job that uses the "
                    "wrong GPU. End it, or use another GPU.");
    steps.push_back(
        "If ranks of this job share the GPU: call torch.cuda.set_device(local_rank) before anything that "
        "uses CUDA.");
    return steps;
  }
  if (auto own = StepsOfLibrary(facts.library); !own.empty()) return own;
  if (use.IsFarBeyondTheGpu())
    return {"This one tensor (" + Gib(use.tried) +
            " GiB) is far larger than the memory of any GPU: its size is probably a " +
            "bug. Check the shape that is computed where the error is raised (an index or a product in place "
            "of a length, a value that was not initialized)."};
  if (AreContexts(use))
    steps.push_back("Find out what " + HolderNames(use) + " do on this GPU (nvidia-smi, ps -fp " +
                    std::to_string(use.others.front().pid) +
                    "): it is about as much memory as CUDA itself takes in each process that uses the GPU. If they are "
                    "other ranks of this job, call torch.cuda.set_device(local_rank) before anything that uses CUDA, "
                    "and load checkpoints with map_location.");
  if (use.of_driver && !facts.server)
    steps.push_back(std::string("Check what holds the memory of the GPUs before the job starts: ") +
                    (facts.maker == GpuMaker::amd ? "rocm-smi --showpids" : "nvidia-smi") +
                    ". The driver refused the memory, not PyTorch's allocator: a leftover of an earlier run, another "
                    "user's job, or all ranks of this job on one GPU (call torch.cuda.set_device(local_rank) before "
                    "anything that uses CUDA).");
  // Each maker's allocator reads a setting of its own; Intel's has none for this.
  const std::string setting =
      std::string(facts.maker == GpuMaker::amd ? "PYTORCH_HIP_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF") +
      (use.old_form ? "=max_split_size_mb:128 (expandable_segments needs PyTorch 2.1)" : "=expandable_segments:True");
  if (use.IsFragmented() && facts.maker != GpuMaker::intel)
    steps.push_back("Set " + setting + ": " + Amount(use.unallocated) + " is reserved and unused, more than the " +
                    Amount(use.tried) + " that was asked for, but not in one piece.");
  for (std::string& step : StepsByActivity(facts)) steps.push_back(std::move(step));
  const bool general = !facts.server && facts.during != Activity::saving && facts.during != Activity::loading;
  if (general && use.unallocated < 0 && facts.maker != GpuMaker::intel)
    steps.push_back("If the memory is fragmented: set " + setting + ".");
  return steps;
}

}  // namespace tacet
