// SPDX-License-Identifier: Apache-2.0
#include "plugin/output/keeper.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "plugin/box_file.h"
#include "plugin/output/json_lines.h"
#include "plugin/output/prom_textfile.h"
#include "plugin/output/sibling_watch.h"
#include "plugin/record/op_table.h"

namespace tacet::plugin {
namespace {

constexpr int64_t kSweepAgeS = 3600;
constexpr uint64_t kQuietMs = 1000;  // an operation left alone this long will hear no more of its channels

pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t g_wake;
pthread_cond_t g_flushed;
bool g_running = false;
uint64_t g_asked = 0, g_served = 0;  // flushes
OpenBox* g_kept = nullptr;
Settings g_settings;

timespec InMs(uint32_t ms) {
  timespec when{};
  clock_gettime(CLOCK_MONOTONIC, &when);
  when.tv_sec += ms / 1000;
  when.tv_nsec += static_cast<long>(ms % 1000) * 1'000'000;
  if (when.tv_nsec >= 1'000'000'000) when.tv_sec += 1, when.tv_nsec -= 1'000'000'000;
  return when;
}

void SettleQuietOps(OpenBox& box) {
  const uint64_t quiet = box.header->tick_hz / 1000 * kQuietMs;
  const uint64_t now = Ticks();
  for (uint32_t slot = 0; slot <= box.op_mask; ++slot)
    if ((Load(box.ops[slot].word) & box::kWordLive) != 0) Settle(box, slot, now - quiet, false);
}

RingReader g_ring;
JsonLines g_json;
PromTextfile g_prom;
SiblingWatch g_siblings;
bool g_closing = false;

void WriteOutputs(OpenBox& box, bool at_once) {
  if (Load(g_closing) || (!g_json.asked() && !g_prom.asked())) return;
  g_ring.Drain(box, [&](const box::Op& op) {
    FinishedOp finished;
    if (!DescribeOp(box, op, &finished)) return;
    if (g_json.asked()) g_json.Add(box, finished);
    if (g_prom.asked()) g_prom.Add(box, finished);
  });
  g_json.Flush(box);
  if (g_prom.asked()) g_prom.Write(box, at_once);
}

// One sentence for NCCL's log about both folders.
char g_trouble[400];
bool g_prepared = false;

void TryFolder(const char* variable, const char* dir) {
  struct statvfs room {};
  char inside[520];
  snprintf(inside, sizeof inside, "%s/.", dir);
  int error = access(inside, W_OK | X_OK) == 0 ? 0 : errno;
  if (error == 0 && statvfs(dir, &room) == 0 && room.f_blocks != 0 && room.f_bavail == 0) error = ENOSPC;
  if (error == 0) return;
  const size_t used = strlen(g_trouble);
  snprintf(g_trouble + used, sizeof g_trouble - used, "%s%s=%.100s: %s, so nothing is written there until that changes",
           used > 0 ? "; " : "", variable, dir, strerror(error));
}

void PrepareOutputs() {
  if (g_json.asked()) {
    MakeFolders(g_settings.json_dir);
    TryFolder("TACET_JSON_DIR", g_settings.json_dir);
  }
  if (g_prom.asked()) {
    g_prom.Prepare(*g_kept, g_settings);
    TryFolder("TACET_PROM_DIR", g_settings.prom_dir);
  }
}

void* Keep(void*) {
  pthread_setname_np(pthread_self(), "tacet-keeper");
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 10);
  if (g_settings.keep_box) SweepEndedBoxes(g_settings.box_dir, kSweepAgeS);
  PrepareOutputs();
  pthread_mutex_lock(&g_lock);
  g_prepared = true;
  pthread_cond_broadcast(&g_flushed);
  for (;;) {
    const timespec next = InMs(g_settings.heartbeat_ms);
    while (g_asked == g_served)
      if (pthread_cond_timedwait(&g_wake, &g_lock, &next) == ETIMEDOUT) break;
    const uint64_t asked = g_asked;
    const bool flush = g_asked != g_served;
    pthread_mutex_unlock(&g_lock);
    BeatHeart(*g_kept);
    SettleQuietOps(*g_kept);
    WriteOutputs(*g_kept, flush);
    g_siblings.Look(*g_kept);
    pthread_mutex_lock(&g_lock);
    g_served = asked;
    pthread_cond_broadcast(&g_flushed);
  }
  return nullptr;
}

void InitConditions() {
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&g_wake, &monotonic);
  pthread_cond_init(&g_flushed, &monotonic);
  pthread_condattr_destroy(&monotonic);
}

}  // namespace

void BeatHeart(OpenBox& box) {
  box::Header& header = *box.header;
  const box::ClockPair clocks = ReadClocks();
  const uint64_t updates = Load(header.clock_updates) + 1;
  StoreWords(header.latest[updates % 2], clocks);
  StoreRelease(header.clock_updates, updates);
  Store(header.heartbeat_ticks, clocks.ticks);
  Add(header.heartbeats, 1);
}

void StartKeeper(OpenBox& box, const Settings& settings, const char* box_path) {
  const bool outputs = settings.json_dir[0] != 0 || settings.prom_dir[0] != 0;
  if (g_running || (settings.heartbeat_ms == 0 && !outputs)) return;
  InitConditions();
  g_kept = &box;
  g_settings = settings;
  if (g_settings.heartbeat_ms == 0) g_settings.heartbeat_ms = 500;
  g_ring = RingReader();
  g_json.Open(box, g_settings);
  g_prom.Open(box, g_settings);
  g_siblings.Open(box, box_path);
  sigset_t all, before;
  sigfillset(&all);
  sigdelset(&all, SIGBUS);  // a thread that blocks what its own store raised is ended, with its process
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, 512 * 1024);
  pthread_t thread;
  g_running = pthread_create(&thread, &attributes, Keep, nullptr) == 0;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (g_running) Store(box.header->heartbeat_ms, g_settings.heartbeat_ms);
}

void FlushKeeper(uint32_t limit_ms) {
  if (!g_running || (g_settings.json_dir[0] == 0 && g_settings.prom_dir[0] == 0)) return;
  const timespec limit = InMs(limit_ms);
  pthread_mutex_lock(&g_lock);  // the keeper holds it for moments only, never while it works
  const uint64_t mine = ++g_asked;
  pthread_cond_signal(&g_wake);
  while (g_served < mine)
    if (pthread_cond_timedwait(&g_flushed, &g_lock, &limit) == ETIMEDOUT) break;
  pthread_mutex_unlock(&g_lock);
}

const char* OutputTrouble(uint32_t limit_ms) {
  if (!g_running || (g_settings.json_dir[0] == 0 && g_settings.prom_dir[0] == 0)) return nullptr;
  const timespec limit = InMs(limit_ms);
  pthread_mutex_lock(&g_lock);
  while (!g_prepared)
    if (pthread_cond_timedwait(&g_flushed, &g_lock, &limit) == ETIMEDOUT) break;
  const bool trouble = g_prepared && g_trouble[0] != 0;
  pthread_mutex_unlock(&g_lock);
  return trouble ? g_trouble : nullptr;
}

void RemovePromFile() {
  Store(g_closing, true);
  if (g_running) g_prom.Remove();
}

void ForgetKeeper() {
  g_running = false;
  g_kept = nullptr;
  g_closing = g_prepared = false;
  g_trouble[0] = 0;
  g_asked = g_served = 0;
  pthread_mutex_init(&g_lock, nullptr);
}

}  // namespace tacet::plugin
