// SPDX-License-Identifier: Apache-2.0
#include "plugin/settings.h"

#include <cstdio>
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
  bool lost = value != nullptr && strlen(value) >= room;
  for (char* c = to; *c != 0; ++c) {
    const bool plain = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '-' ||
                       *c == '_' || (*c == '.' && c != to);
    lost |= static_cast<unsigned char>(*c) >= 0x80;
    if (!plain) *c = '_';
  }
  if (!lost || room < 16) return;
  uint32_t hash = 2166136261u;  // FNV-1a
  for (const char* c = value; *c != 0; ++c) hash = (hash ^ static_cast<unsigned char>(*c)) * 16777619u;
  const uint64_t length = strlen(to);
  const uint64_t at = length < room - 10 ? length : room - 10;
  snprintf(to + at, room - at, "-%08x", hash);
}

// torchrun without a run id calls it "none".
static const char* FirstSet(const char* const* names) {
  for (; *names != nullptr; ++names)
    if (const char* value = getenv(*names); value != nullptr && *value != 0 && strcmp(value, "none") != 0) return value;
  return nullptr;
}

// What the user asked for and does not get. Kept short: the whole of it is one line of NCCL's log.
static void Complain(Settings& settings, const char* name, const char* value, const char* instead) {
  const uint64_t used = strlen(settings.trouble);
  snprintf(settings.trouble + used, sizeof settings.trouble - used, "%s%s=%.40s %s", used > 0 ? "; " : "", name, value,
           instead);
}

struct Range {
  uint64_t least, most;
};

// 0 stands for "none" wherever it is taken, so it is never out of range.
static uint64_t NumberOf(Settings& settings, const char* name, uint64_t otherwise, Range range) {
  const char* value = getenv(name);
  if (value == nullptr || *value == 0) return otherwise;
  char* end = nullptr;
  char instead[48];
  const uint64_t number = strtoull(value, &end, 0);  // takes "-1" for a large number
  if (*end != 0 || end == value || strchr(value, '-') != nullptr) {
    snprintf(instead, sizeof instead, "is not a number, %llu is used", static_cast<unsigned long long>(otherwise));
    Complain(settings, name, value, instead);
    return otherwise;
  }
  if (number == 0 || (number >= range.least && number <= range.most)) return number;
  const uint64_t nearest = number < range.least ? range.least : range.most;
  snprintf(instead, sizeof instead, "is too %s, %llu is used", number < range.least ? "small" : "large",
           static_cast<unsigned long long>(nearest));
  Complain(settings, name, value, instead);
  return nearest;
}

// "coll,p2p,kernel,proxy,step,launch,ce", or a number as NCCL defines the bits.
static uint32_t MaskOf(Settings& settings, const char* text, uint32_t otherwise) {
  if (text == nullptr || *text == 0) return otherwise;
  const char* whole = text;
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
    bool known = length == 0;
    for (const auto& name : kNames) {
      if (strlen(name.name) != length || strncmp(name.name, text, length) != 0) continue;
      mask |= name.bits;
      known = true;
    }
    if (!known && settings.trouble[0] == 0)
      Complain(settings, "TACET_EVENTS", whole, "has unknown names; coll,p2p,kernel,proxy,step,launch,ce are known");
    text += length;
    text += strspn(text, ", ");
  }
  return mask == 0 ? otherwise : static_cast<uint32_t>(mask);
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

// Every process of a node has a box, and boxes are memory.
static constexpr uint64_t kMostBoxMb = 256;

static uint64_t BoxBytes(Settings& settings, bool* keep) {
  const uint64_t mb = NumberOf(settings, "TACET_BOX_MB", 8, {1, kMostBoxMb});
  const uint64_t kb = NumberOf(settings, "TACET_BOX_KB", mb * 1024, {48, kMostBoxMb * 1024});
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
  settings.box_bytes = BoxBytes(settings, &settings.keep_box);
  settings.heartbeat_ms = static_cast<uint32_t>(NumberOf(settings, "TACET_HEARTBEAT_MS", 500, {10, 60'000}));
  settings.event_mask = MaskOf(settings, getenv("TACET_EVENTS"), DefaultMask()) & KnownTo(api_version);
  CopyText(settings.json_dir, sizeof settings.json_dir, getenv("TACET_JSON_DIR"));
  settings.json_min_bytes = NumberOf(settings, "TACET_JSON_MIN_BYTES", 0, {0, UINT64_MAX});
  CopyText(settings.prom_dir, sizeof settings.prom_dir, getenv("TACET_PROM_DIR"));
  settings.prom_interval_ms =
      static_cast<uint32_t>(NumberOf(settings, "TACET_PROM_INTERVAL_MS", 15000, {100, 24 * 3'600'000}));
  if (settings.prom_interval_ms == 0) settings.prom_interval_ms = 100;
  return settings;
}

}  // namespace tacet::plugin
