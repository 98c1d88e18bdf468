// SPDX-License-Identifier: Apache-2.0
// Whose code a frame of a traceback is in.
#include "base/text_scan.h"
#include "evidence/torch_log/torch_log_traceback.h"

namespace tacet {

bool IsUserFile(std::string_view file) {
  if (file.empty() || file[0] == '<') return false;
  for (const std::string_view part : {"/site-packages/", "/dist-packages/", "lib/python", "lib64/python"})
    if (Contains(file, part)) return false;
  // A checkout of PyTorch that is used where it was built, and paths that somebody shortened.
  if (file.starts_with("torch/")) return false;
  for (const std::string_view part : {"/torch/nn/", "/torch/_dynamo/", "/torch/_inductor/", "/torch/autograd/",
                                      "/torch/distributed/", "/torch/multiprocessing/", "/torch/optim/",
                                      "/torch/utils/data/", "/torch/_tensor.py", "/torch/serialization.py"})
    if (Contains(file, part)) return false;
  return !Contains(file, "/bin/") || file.ends_with(".py");  // /usr/bin/torchrun
}

bool IsLaunchersFile(std::string_view file) {
  return ContainsAny(file, {"/horovod/run/", "/horovod/runner/", "/bin/horovodrun", "/torch/distributed/run.py",
                            "/torch/distributed/launcher/", "/deepspeed/launcher/", "/accelerate/commands/launch.py",
                            "/paddle/distributed/launch", "/paddle/distributed/utils"});
}

}  // namespace tacet
