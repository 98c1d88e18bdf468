// SPDX-License-Identifier: Apache-2.0
#include "plugin/box_identity.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "plugin/process_stat.h"
#include "plugin/settings.h"

namespace tacet::plugin {
namespace {

int32_t NumberIn(const char* const* names) {
  for (; *names != nullptr; ++names) {
    const char* value = getenv(*names);
    if (value == nullptr || *value == 0) continue;
    char* end = nullptr;
    const long number = strtol(value, &end, 10);
    if (*end == 0 && number >= 0 && number <= INT32_MAX) return static_cast<int32_t>(number);
  }
  return -1;
}

// The first that names the rank wins. A launcher that starts one process per rank sets one of these.
constexpr const char* kRank[] = {
    "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID", nullptr};

void FillRank(box::Header& header) {
  static const char* const kSize[] = {"WORLD_SIZE",          "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                      "MV2_COMM_WORLD_SIZE", "SLURM_NTASKS",         nullptr};
  static const char* const kLocal[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_RANK",
                                       "SLURM_LOCALID", nullptr};
  static const char* const kRestart[] = {"TORCHELASTIC_RESTART_COUNT", nullptr};
  header.rank = NumberIn(kRank);
  header.world_size = NumberIn(kSize);
  header.local_rank = NumberIn(kLocal);
  header.restart_count = NumberIn(kRestart);
  header.rank_source = header.rank >= 0 ? box::RankSource::environment : box::RankSource::unknown;
}

void FillSchedulerIds(box::Header& header) {
  CopyText(header.slurm_job_id, sizeof header.slurm_job_id, getenv("SLURM_JOB_ID"));
  CopyText(header.slurm_step_id, sizeof header.slurm_step_id, getenv("SLURM_STEP_ID"));
  CopyText(header.torchelastic_run_id, sizeof header.torchelastic_run_id, getenv("TORCHELASTIC_RUN_ID"));
  if (getenv("KUBERNETES_SERVICE_HOST") == nullptr) return;
  const char* pod = getenv("POD_NAME");
  CopyText(header.kubernetes_pod, sizeof header.kubernetes_pod, pod != nullptr ? pod : getenv("HOSTNAME"));
  const char* space = getenv("POD_NAMESPACE");
  if (space != nullptr) {
    CopyText(header.kubernetes_namespace, sizeof header.kubernetes_namespace, space);
  } else {
    ReadSmallFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace", header.kubernetes_namespace,
                  sizeof header.kubernetes_namespace);
  }
}

template <typename Function>
bool FindSymbol(void* library, const char* name, Function* function) {
  void* symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != nullptr;
}

}  // namespace

bool IsRankOfSlurm() {
  for (const char* const* name = kRank; *name != nullptr; ++name)
    if (getenv(*name) != nullptr) return strcmp(*name, "SLURM_PROCID") == 0;
  return false;
}

void FillIdentity(box::Header& header, const char* job) {
  header.pid = getpid();
  gethostname(header.host, sizeof header.host - 1);
  CopyText(header.job, sizeof header.job, job);
  ReadSmallFile("/proc/self/comm", header.program, sizeof header.program);
  header.program[strcspn(header.program, "\n")] = 0;
  ReadSmallFile("/proc/sys/kernel/random/boot_id", header.boot_id, sizeof header.boot_id);
  header.boot_id[strcspn(header.boot_id, "\n")] = 0;
  header.process_start_jiffies = ReadProcessStat("self").start_jiffies;
  header.pid_namespace = PidNamespace();
  FillRank(header);
  FillSchedulerIds(header);
  int (*version)(int*) = nullptr;
  int code = 0;
  if (FindSymbol(RTLD_DEFAULT, "ncclGetVersion", &version) && version(&code) == 0)
    header.nccl_version = static_cast<uint32_t>(code);
}

GpuDevice CurrentGpu() {
  GpuDevice gpu;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  int (*get_device)(int*) = nullptr;
  int (*get_uuid)(unsigned char*, int) = nullptr;
  if (driver != nullptr && FindSymbol(driver, "cuCtxGetDevice", &get_device)) {
    int device = -1;
    if (get_device(&device) == 0) gpu.ordinal = device;
  } else if (FindSymbol(RTLD_DEFAULT, "cudaGetDevice", &get_device)) {
    int device = -1;
    if (get_device(&device) == 0) gpu.ordinal = device;
  }
  unsigned char id[16] = {};
  if (driver != nullptr && gpu.ordinal >= 0 &&
      (FindSymbol(driver, "cuDeviceGetUuid_v2", &get_uuid) || FindSymbol(driver, "cuDeviceGetUuid", &get_uuid)) &&
      get_uuid(id, gpu.ordinal) == 0) {
    snprintf(gpu.uuid, sizeof gpu.uuid, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11], id[12], id[13],
             id[14], id[15]);
  }
  if (driver != nullptr) dlclose(driver);
  return gpu;
}

}  // namespace tacet::plugin
