// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/torch_log_activity.h"

#include "base/text_scan.h"

namespace tacet {

Activity ActivityOfFrame(std::string_view file, std::string_view function) {
  if (ContainsAny(function, {"destroy_process_group", "_shutdown_backend", "destroy_model_parallel"}))
    return Activity::shutdown;
  if (ContainsAny(function, {"init_process_group", "init_distributed", "initialize_model_parallel", "init_device_mesh",
                             "_env_rendezvous_handler", "_tcp_rendezvous_handler", "_create_c10d_store"}))
    return Activity::setup;
  if (ContainsAny(file, {"torch/utils/data/", "torch\\utils\\data\\"})) return Activity::data;
  const bool serialization = ContainsAny(file, {"torch/serialization.py", "torch\\serialization.py"});
  // "load_state_dict", "_load_from_state_dict": before those that save
  if (ContainsAny(function, {"load_checkpoint", "load_ckpt", "load_state_dict", "load_from_state_dict",
                             "from_pretrained", "load_from_checkpoint", "load_model", "load_weights"}) ||
      (serialization && ContainsAny(function, {"load"})))
    return Activity::loading;
  if (ContainsAny(function, {"save_checkpoint", "save_ckpt", "save_pretrained", "save_model", "save_state",
                             "state_dict_hook", "sharded_state_dict", "full_state_dict"}) ||
      function == "state_dict" || (serialization && ContainsAny(function, {"save"})))
    return Activity::saving;
  if (function == "backward") return Activity::backward;
  return function == "forward" || function == "_call_impl" ? Activity::forward : Activity::not_told;
}

Activity JoinActivities(Activity outer, Activity inner) {
  const bool weak = outer == Activity::forward || outer == Activity::backward || outer == Activity::not_told;
  if (!weak) return outer;
  const bool inner_weak = inner == Activity::forward || inner == Activity::backward || inner == Activity::not_told;
  return inner_weak && outer != Activity::not_told ? outer : inner;
}

bool IsServersFile(std::string_view file) { return ContainsAny(file, {"/vllm/", "/sglang/", "/tensorrt_llm/"}); }

bool IsServersLabel(std::string_view label) {
  return ContainsAny(label, {"VllmWorker", "RayWorkerVllm", "EngineCore", "SGLang"});
}

}  // namespace tacet
