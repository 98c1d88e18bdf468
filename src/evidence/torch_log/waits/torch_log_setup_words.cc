// SPDX-License-Identifier: Apache-2.0
// What loaders, drivers and containers say of a program that cannot run here; none of it is an exception of Python's.
#include <array>
#include <string_view>

#include "base/text_scan.h"
#include "evidence/torch_log/errors/torch_log_failures.h"

namespace tacet {
namespace {

struct SetupWords {
  std::string_view words;  // somewhere in the line
  std::string_view name;   // of what the line is
};
constexpr std::array<SetupWords, 20> kSetupWords{
    {{"Error initializing torch.distributed using env:// rendezvous", "an error of process-group setup"},
     {"\"hipErrorNoBinaryForGpu: ", "a HIP error"},
     // glibc, before it ends the process with SIGABRT
     {"double free or corruption", "an error of the C library"},
     {"free(): double free detected", "an error of the C library"},
     {"free(): invalid ", "an error of the C library"},
     {"malloc(): ", "an error of the C library"},
     {"corrupted size vs. prev_size", "an error of the C library"},
     {"munmap_chunk(): invalid pointer", "an error of the C library"},
     {"*** stack smashing detected ***", "an error of the C library"},
     {"is not a recognized processor for this target", "an error of Triton's compiler"},
     {"NVML: Driver/library version mismatch", "an NVML error"},
     {"Failed to initialize NVML: ", "an NVML error"},
     {"NVIDIA-SMI has failed because", "an NVML error"},
     {"blas_thread_init: pthread_create failed", "an error of OpenBLAS"},
     {"Batch job submission failed: ", "an error of sbatch"},
     {"Job submit/allocate failed: ", "an error of salloc"},
     {"is not compatible with the current PyTorch installation", "a PyTorch warning"},
     {"could not select device driver", "an error of the container runtime"},
     {"exec format error", "an error of the container runtime"},
     {"error while loading shared libraries: ", "an error of the loader"}}};

// Could not load library libcudnn_cnn_train.so.8. Error: ...
// libcudnn_ops_infer.so.8: cannot open shared object file: No such file or directory
// TensorFlow and NCCL try libraries that they can do without, and quote the loader: "dlerror: libnvinfer.so.7: cannot
// open ...".
bool NamesMissingLibrary(std::string_view text) {
  // libibverbs: Warning: couldn't load driver 'libbnxt_re-rdmav34.so': ...: one for each adapter that a host may have
  if (Contains(text, "dlerror") || text.starts_with("libibverbs: Warning: ")) return false;
  return text.starts_with("Could not load library lib") ||
         (text.starts_with("lib") && Contains(text, ".so") && Contains(text, ": cannot open shared object file"));
}

}  // namespace

LineUse ReadSetupWords(const LogLine& line, RecordList& out) {
  const std::string_view text = Trim(line.text);
  std::string_view name = NamesMissingLibrary(text) ? "an error of the loader" : "";
  for (const SetupWords& one : kSetupWords)
    if (name.empty() && Contains(text, one.words)) name = one.name;
  if (name.empty()) return LineUse::not_understood;
  const auto [record, is_new] = out.AddOnce(TorchLogKind::exception, line, name);
  if (!is_new) return LineUse::understood;
  record->subject = name;
  record->text = Capped(text, 300);
  record->value2 = out.highest_step();
  return LineUse::understood;
}

}  // namespace tacet
