// SPDX-License-Identifier: Apache-2.0
#include "plugin/settings.h"

#include <cstdlib>
#include <cstring>

#include "plugin/nccl_profiler_abi.h"

namespace tacet::plugin {

void CopyText(char* to, uint64_t room, const char* value) {
  uint64_t n = 0;
  for (; value != nullptr && value[n] != 0 && n + 1 < room; ++n) to[n] = value[n];
  to[n] = 0;
}

void CopyFileName(char* to, uint64_t room, const char* value) {
  CopyText(to, room, value);
  for (char* c = to; *c != 0; ++c) {
    const bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '-' ||
                       *c == '_' || (*c == '.' && c != to);
    if (!plain) *c = '_';
  }
}

// torchrun without a run id calls it "none".
static const char* FirstSet(const char* const* names) {
  for (; *names != nullptr; ++names)
    if (const char* value = getenv(*names); value != nullptr && *value != 0 && strcmp(value, "none") != 0) return value;
  return nullptr;
}

static uint64_t NumberOf(const char* name, uint64_t otherwise) {
  const char* value = getenv(name);
  if (value == nullptr || *value == 0) return otherwise;
  char* end = nullptr;
  const uint64_t number = strtoull(value, &end, 0);
  return *end == 0 ? number : otherwise;
}

// "coll,p2p,kernel,proxy,step,launch,ce", or a number as NCCL defines the bits.
static uint32_t MaskOf(const char* text, uint32_t otherwise) {
  if (text == nullptr || *text == 0) return otherwise;
  char* end = nullptr;
  const unsigned long number = strtoul(text, &end, 0);
  if (*end == 0) return static_cast<uint32_t>(number);
  static constexpr struct {
    const char* name;
    uint64_t bits;
  } kNames[] = {
      {"coll", nccl::kColl | nccl::kCollApi | nccl::kGroupApi},
      {"p2p", nccl::kP2p | nccl::kP2pApi | nccl::kGroupApi},
      {"kernel", nccl::kKernelCh},
      {"proxy", nccl::kProxyOp},
      {"step", nccl::kProxyStep},
      {"launch", nccl::kKernelLaunch},
      {"ce", nccl::kCeColl},
  };
  uint64_t mask = 0;
  while (*text != 0) {
    const size_t length = strcspn(text, ", ");
    for (const auto& known : kNames)
      if (strlen(known.name) == length && strncmp(known.name, text, length) == 0) mask |= known.bits;
    text += length;
    text += strspn(text, ", ");
  }
  return static_cast<uint32_t>(mask);
}

static uint32_t DefaultMask() {
  return nccl::kColl | nccl::kP2p | nccl::kProxyOp | nccl::kProxyStep | nccl::kKernelCh | nccl::kGroupApi |
         nccl::kCollApi | nccl::kP2pApi | nccl::kKernelLaunch | nccl::kCeColl;
}

// Bits an API version does not know are not set: an old NCCL would not mind, but the log line would mislead.
static uint32_t KnownTo(int api_version) {
  if (api_version <= 2) return 0x3f;
  if (api_version <= 4) return 0xff;
  return api_version == 5 ? 0xfff : api_version == 6 ? 0x7fff : 0xffff;
}

static uint64_t BoxBytes(bool* keep) {
  const uint64_t mb = NumberOf("TACET_BOX_MB", 8);
  const uint64_t kb = NumberOf("TACET_BOX_KB", mb > 4096 ? 4096 * 1024 : mb * 1024);
  *keep = kb != 0;
  return (kb < 48 ? 48 : kb) * 1024;
}

Settings ReadSettings(int api_version) {
  static const char* const kJobNames[] = {"TACET_JOB", "SLURM_JOB_ID", "SLURM_JOBID", "TORCHELASTIC_RUN_ID", nullptr};
  Settings settings{};
  const char* dir = getenv("TACET_BOX_DIR");
  CopyText(settings.box_dir, sizeof settings.box_dir, dir != nullptr && *dir != 0 ? dir : "/dev/shm/tacet");
  const char* job = FirstSet(kJobNames);
  CopyFileName(settings.job, sizeof settings.job, job != nullptr ? job : "local");
  settings.box_bytes = BoxBytes(&settings.keep_box);
  settings.heartbeat_ms = static_cast<uint32_t>(NumberOf("TACET_HEARTBEAT_MS", 500));
  settings.event_mask = MaskOf(getenv("TACET_EVENTS"), DefaultMask()) & KnownTo(api_version);
  CopyText(settings.json_dir, sizeof settings.json_dir, getenv("TACET_JSON_DIR"));
  settings.json_min_bytes = NumberOf("TACET_JSON_MIN_BYTES", 0);
  CopyText(settings.prom_dir, sizeof settings.prom_dir, getenv("TACET_PROM_DIR"));
  settings.prom_interval_ms = static_cast<uint32_t>(NumberOf("TACET_PROM_INTERVAL_MS", 15000));
  if (settings.prom_interval_ms < 100) settings.prom_interval_ms = 100;
  return settings;
}

}  // namespace tacet::plugin
