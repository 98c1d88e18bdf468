// SPDX-License-Identifier: Apache-2.0
// Whose code a frame of a traceback is in.
#include <algorithm>
#include <string>

#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_traceback.h"

namespace tacet {

namespace {

// "C:\\conda\\envs\\x\\lib\\multiprocessing\\spawn.py": on Windows no folder of Python's own library has its version in
// it.
bool IsWindowsLibrary(std::string path) {
  std::replace(path.begin(), path.end(), '\\', '/');
  if (ContainsAny(path, {"/site-packages/", "/dist-packages/"})) return true;
  for (const std::string_view folder : {"/lib/", "/Lib/"})
    if (const auto behind = After(path, folder))
      for (const std::string_view name :
           {"multiprocessing/", "concurrent/", "asyncio/", "importlib/", "json/", "threading.py", "queue.py",
            "pickle.py", "socket.py", "subprocess.py", "runpy.py", "contextlib.py", "codeop.py", "codecs.py"})
        if (behind->starts_with(name)) return true;
  return false;
}

}  // namespace

bool IsUserFile(std::string_view file) {
  if (file.empty() || file[0] == '<') return false;
  if (Contains(file, "\\") && IsWindowsLibrary(std::string(file))) return false;
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
  return ContainsAny(file,
                     {"/horovod/run/", "/horovod/runner/", "/bin/horovodrun", "/torch/distributed/run.py",
                      "/torch/distributed/launch.py", "/torch/distributed/launcher/", "/deepspeed/launcher/",
                      "/accelerate/commands/launch.py", "/paddle/distributed/launch", "/paddle/distributed/utils"});
}

}  // namespace tacet
