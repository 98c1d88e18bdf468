// SPDX-License-Identifier: Apache-2.0
#include "launch/run_settings.h"

#include <algorithm>
#include <array>

#include "base/text_scan.h"

namespace tacet {
namespace {

const std::string* FindVariable(const Environment& environment, std::string_view name) {
  for (const auto& [key, value] : environment)
    if (key == name) return &value;
  return nullptr;
}

class SettingList {
 public:
  explicit SettingList(const Environment& inherited) : inherited_(inherited) {}

  void Set(std::string name, std::string value, std::string why, std::string cost = "") {
    RunSetting setting{std::move(name), std::move(value), std::move(why), std::move(cost), false, ""};
    if (const std::string* own = FindVariable(inherited_, setting.name)) {
      setting.kept = true;
      setting.users_value = *own;
    }
    list_.push_back(std::move(setting));
  }
  // A variable with two names, one of which the user has set: the other would win over it or lose against it.
  void SetPair(const std::string& name, const std::string& newer, const std::string& value, const std::string& why,
               const std::string& cost = "") {
    if (Has(name) == Has(newer)) {
      Set(newer, value, why, cost);
      Set(name, value, "the name before PyTorch 2.8");
    } else {
      Set(Has(name) ? name : newer, value, why, cost);
    }
  }
  // Ours is one part of a list that the user may have, too.
  void Prepend(std::string name, const std::string& part, std::string why) {
    const std::string* own = FindVariable(inherited_, name);
    list_.push_back(
        {std::move(name), own != nullptr && !own->empty() ? part + ":" + *own : part, std::move(why), "", false, ""});
  }
  bool Has(std::string_view name) const { return FindVariable(inherited_, name) != nullptr; }
  std::vector<RunSetting> Take() { return std::move(list_); }

 private:
  const Environment& inherited_;
  std::vector<RunSetting> list_;
};

void AddNccl(RunLevel level, const RunPlaces& places, SettingList& list) {
  const std::string folder = places.folder + "/nccl";
  const bool own_debug = list.Has("NCCL_DEBUG");
  list.Set("NCCL_DEBUG", "INFO", "NCCL logs which communicators, rings, transports and devices it uses",
           "several hundred lines per rank when a communicator is created, nothing per step");
  // What NCCL logs by itself is INIT, BOOTSTRAP and ENV; COLL is one line per call and rank.
  list.Set("NCCL_DEBUG_SUBSYS",
           level == RunLevel::light    ? "INIT,BOOTSTRAP,ENV"
           : level == RunLevel::normal ? "INIT,BOOTSTRAP,ENV,GRAPH,NET,TUNING"
                                       : "INIT,BOOTSTRAP,ENV,GRAPH,NET,TUNING,COLL,P2P",
           level == RunLevel::full ? "... and every call" : "... with INIT always",
           level == RunLevel::full ? "one line per call and rank" : "");
  // Who asked for NCCL's lines expects them where they were: in the output, which is kept as well.
  if (!own_debug)
    list.Set("NCCL_DEBUG_FILE", folder + "/nccl.%h.%p.log", "one file per process instead of mixed lines");
  list.Set("NCCL_SET_THREAD_NAME", "1", "tells NCCL's threads from the program's");
  list.Set("NCCL_TOPO_DUMP_FILE", folder + "/topology.xml", "the machine as NCCL sees it");
  list.Set("NCCL_GRAPH_DUMP_FILE", folder + "/graph.xml", "the rings and trees it chose");
  if (!places.plugin.empty()) {
    list.Set("NCCL_PROFILER_PLUGIN", places.plugin, "black boxes: what is in flight, readable after any kind of exit",
             "below the variation of a step (docs/measurements.md); some MB of shared memory per rank");
    list.Set("TACET_BOX_DIR", places.box_folder, "where the black boxes are");
  }
}

void AddTorch(RunLevel level, const RunPlaces& places, SettingList& list) {
  const std::string prefix = places.folder + "/flight/nccl_trace_rank_";
  list.SetPair("TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_FR_BUFFER_SIZE", level == RunLevel::full ? "20000" : "2000",
               "PyTorch's flight recorder keeps the latest calls of every rank", "one record per call in host memory");
  list.SetPair("TORCH_NCCL_DEBUG_INFO_TEMP_FILE", "TORCH_FR_DUMP_TEMP_FILE", prefix, "where it is written");
  list.Set("TORCH_NCCL_DUMP_ON_TIMEOUT", "1", "written when the watchdog ends the job (the default since 2.7)");
  if (!places.pipe_prefix.empty())
    list.Set("TORCH_NCCL_DEBUG_INFO_PIPE_FILE", places.pipe_prefix,
             "written when a hang is detected, before anything exits");
  if (level != RunLevel::light)
    list.Set("TORCH_NCCL_ENABLE_TIMING", "1", "shows which calls started, and how long they took",
             "one more CUDA event per call");
  if (level != RunLevel::full) return;
  list.Set("TORCH_NCCL_TRACE_CPP_STACK", "1", "C++ stacks of every call", "unwinds the stack in every call");
  list.Set("TORCH_DISTRIBUTED_DEBUG", "DETAIL", "checks shapes and types of every collective before it runs",
           "one more small collective per call: steps may take twice as long");
  list.Set("TORCH_CPP_LOG_LEVEL", "INFO", "PyTorch's own messages about groups and watchdogs", "a few lines per group");
}

void AddPython(RunLevel level, const RunPlaces& places, SettingList& list) {
  list.Set("PYTHONFAULTHANDLER", "1", "a crash inside C code prints the Python stack");
  if (!places.python_folder.empty())
    list.Prepend("PYTHONPATH", places.python_folder, "Python stacks on a signal (SIGRTMAX-3), without ptrace or root");
  if (!places.profile_steps.empty())
    list.Set("TACET_PROFILE_STEPS", places.profile_steps, "torch.profiler runs during these optimizer steps",
             "these steps may take several times as long");
  // torchrun reads PET_* as defaults of its options: what the command line says wins.
  if (places.per_rank_output || level == RunLevel::full) {
    list.Set("PET_TEE", "3", "torchrun prefixes every line with its rank and writes a file per rank",
             "lines on the terminal begin with [default0]:");
    list.Set("PET_LOG_DIR", places.folder + "/ranks", "where these files are");
  }
}

}  // namespace

std::string_view Name(RunLevel level) {
  switch (level) {
    case RunLevel::light: return "light";
    case RunLevel::normal: return "default";
    case RunLevel::full: return "full";
  }
  return "";
}

std::vector<RunSetting> ChooseSettings(RunLevel level, const RunPlaces& places, const Environment& inherited) {
  SettingList list(inherited);
  AddNccl(level, places, list);
  AddTorch(level, places, list);
  AddPython(level, places, list);
  list.Set("TACET_RUN_DIR", places.folder, "the run folder");
  return list.Take();
}

bool IsRelevantVariable(std::string_view name) {
  static constexpr std::array<std::string_view, 21> kPrefixes = {
      "NCCL_", "TORCH", "PYTORCH_", "CUDA_", "NVIDIA_", "UCX_",        "FI_",
      "OMPI_", "PMI",   "PRTE_",    "SLURM", "TACET_",  "GLOO_",       "TP_SOCKET",
      "PET_",  "OMP_",  "MASTER_",  "IBV_",  "RDMAV_",  "ACCELERATE_", "DEEPSPEED_"};
  static constexpr std::array<std::string_view, 12> kNames = {
      "RANK",          "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",         "NODE_RANK",
      "NODE_HOSTNAME", "HOSTNAME",   "PYTHONPATH", "LD_LIBRARY_PATH",  "PYTHONFAULTHANDLER", "PYTHONUNBUFFERED"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() ||
         std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](auto prefix) { return name.starts_with(prefix); });
}

std::string DescribeSettings(const std::vector<RunSetting>& settings, bool whole) {
  std::string text;
  for (const RunSetting& setting : settings) {
    if (setting.kept) {
      if (setting.users_value != setting.value || whole)
        text += "  " + setting.name + "=" + setting.users_value + " is kept" +
                (setting.users_value == setting.value ? "" : ", not " + setting.value + ": " + setting.why) + "\n";
      continue;
    }
    if (!whole && setting.cost.empty()) continue;
    text += "  " + setting.name + "=" + setting.value + ": " + setting.why;
    if (!setting.cost.empty()) text += " [" + setting.cost + "]";
    text += "\n";
  }
  return text;
}

}  // namespace tacet
