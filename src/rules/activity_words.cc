// SPDX-License-Identifier: Apache-2.0
#include "rules/activity_words.h"

#include <algorithm>

namespace tacet {

std::string DuringWords(Activity during) {
  switch (during) {
    case Activity::setup: return " while setting up the process group";
    case Activity::loading: return " while loading a checkpoint or a model";
    case Activity::saving: return " while saving a checkpoint";
    case Activity::shutdown: return " while shutting down the process group";
    case Activity::data: return " while loading data";
    case Activity::forward:
    case Activity::backward:
    case Activity::not_told: break;
  }
  return "";
}

const Event* ExceptionAround(const Incident& incident, const Event& error) {
  constexpr uint32_t kLinesOfAMessage = 12;
  for (const Event& event : incident.events)
    if (event.kind == EventKind::exception && event.rank == error.rank && event.source.file == error.source.file &&
        event.source.line <= error.source.line && error.source.line <= event.source.line + kLinesOfAMessage)
      return &event;
  return nullptr;
}

bool IsServer(const Incident& incident) {
  return std::any_of(incident.events.begin(), incident.events.end(),
                     [](const Event& event) { return event.library == Library::server; });
}

std::vector<std::string> GpuMemorySteps(Activity during, bool server, GpuMaker maker) {
  if (server)
    return {
        "Lower the share of GPU memory that the server takes (vLLM: --gpu-memory-utilization, SGLang: "
        "--mem-fraction-static), --max-num-seqs or --max-model-len.",
        "Look with nvidia-smi what else uses the GPUs: an earlier server that did not end, another job.",
        "Spread the model over more GPUs (--tensor-parallel-size), or use a quantized one."};
  if (during == Activity::saving)
    return {
        "Do not gather the whole state on the GPU: save a sharded state dict, or a full one with offload to the CPU on "
        "rank 0 only (FSDP: SHARDED_STATE_DICT, or FullStateDictConfig(offload_to_cpu=True, rank0_only=True)).",
        "Call torch.cuda.empty_cache() before saving, and save copies (EMA, optimizer) one after the other.",
        "If that does not suffice: leave more room in training (smaller batch)."};
  if (during == Activity::loading)
    return {"Load on the CPU first (torch.load(..., map_location='cpu')), and release the copy after load_state_dict.",
            "Load a sharded checkpoint shard by shard (torch.distributed.checkpoint, low_cpu_mem_usage, device_map).",
            "Look with nvidia-smi what else uses the GPU."};
  std::vector<std::string> steps = {
      "Lower the batch size or the sequence length, or recompute activations (torch.utils.checkpoint).",
      "If only one rank runs out of memory, its pipeline stage or its batch is larger than those of the others: "
      "balance it."};
  // Each maker's allocator reads a setting of its own; Intel's has none for this.
  if (maker != GpuMaker::intel)
    steps.push_back(
        "Fragmentation: " + std::string(maker == GpuMaker::amd ? "PYTORCH_HIP_ALLOC_CONF" : "PYTORCH_CUDA_ALLOC_CONF") +
        "=expandable_segments:True.");
  return steps;
}

}  // namespace tacet
