// SPDX-License-Identifier: Apache-2.0
#include "plugin/plugin_life.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "plugin/box_file.h"
#include "plugin/box_identity.h"
#include "plugin/bus_guard.h"
#include "plugin/output/keeper.h"
#include "plugin/record/tick_clock.h"

#ifndef TACET_VERSION
#define TACET_VERSION "0.1.0"
#endif

namespace tacet::plugin {
namespace {

pthread_mutex_t g_life = PTHREAD_MUTEX_INITIALIZER;
OpenBox g_storage;  // what g_box points to once it is whole
Settings g_settings;
bool g_tried = false;       // to make a box in this process
bool g_hooked = false;      // fork handlers are set
bool g_world_seen = false;  // a communicator of all ranks
int g_communicators = 0;

constexpr uint64_t kMostPrivateBytes = uint64_t{8} << 20;

// A thread that is cancelled inside open() or a wait would leave a lock behind for ever.
class NoCancel {
 public:
  NoCancel() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancel() { pthread_setcancelstate(before_, nullptr); }

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

void Log(nccl::Logger logger, int level, const char* text) {
  if (logger != nullptr) logger(level, nccl::kLogInit, "tacet", 0, "PROFILER/Tacet: %s", text);
}

// NCCL closes the library with its last communicator and may open it again. The keeper thread and the fork handlers
// need the code to stay, and the box goes on.
void PinLibrary() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<void*>(&PinLibrary), &self) != 0 && self.dli_fname != nullptr)
    dlopen(self.dli_fname, RTLD_NOW | RTLD_NODELETE | RTLD_NOLOAD);
}

// A forked child shares the mapping but is another process: it must not write into its parent's box. If it makes
// communicators of its own, it gets a box of its own.
void BeforeFork() { pthread_mutex_lock(&g_life); }
void AfterForkInParent() { pthread_mutex_unlock(&g_life); }
void AfterForkInChild() {
  StoreRelease(g_box, static_cast<OpenBox*>(nullptr));
  ForgetKeeper();
  g_tried = false;
  g_world_seen = false;
  g_communicators = 0;
  pthread_mutex_init(&g_life, nullptr);
}

void FillHeader(OpenBox& box, int api_version) {
  box::Header& header = *box.header;
  memcpy(header.magic, box::kMagic, sizeof header.magic);
  header.version = box::kVersion;
  header.byte_order = box::kByteOrder;
  header.header_bytes = sizeof header;
  header.tick_source = ChooseTicks();
  header.tick_hz = MeasureTickRate(header.tick_source);
  header.first = header.latest[0] = ReadClocks();
  header.heartbeat_ticks = header.first.ticks;
  header.api_version = static_cast<uint32_t>(api_version);
  header.event_mask = g_settings.event_mask;
  FillIdentity(header, g_settings.job);
  CopyText(header.plugin_version, sizeof header.plugin_version, TACET_VERSION);
  // Differs between processes of a host and between runs; it need not be secret.
  header.handle_salt = static_cast<uint32_t>(
      (header.first.wall_ns ^ (uint64_t{static_cast<uint32_t>(header.pid)} << 32)) * 0x9e3779b97f4a7c15u >> 32);
  box.salt = header.handle_salt;
  box.pid = header.pid;
  box.first_ticks = header.first.ticks;
  box.kernel_events = api_version >= 3 && (g_settings.event_mask & nccl::kKernelCh) != 0;
  StoreRelease(header.ready, 1u);
}

void MakeBox(int api_version, nccl::Logger logger) {
  g_tried = true;
  g_settings = ReadSettings(api_version);
  if (g_settings.trouble[0] != 0) Log(logger, nccl::kLogWarn, g_settings.trouble);
  char host[64] = {}, file_host[64];
  gethostname(host, sizeof host - 1);
  CopyFileName(file_host, sizeof file_host, host);
  BoxMemory memory;
  if (g_settings.keep_box) memory = MakeBoxFile(g_settings, file_host, getpid());
  if (memory.trouble[0] != 0) Log(logger, nccl::kLogWarn, memory.trouble);
  if (memory.memory == nullptr && (g_settings.json_dir[0] != 0 || g_settings.prom_dir[0] != 0))
    memory = MakeBoxMemory(g_settings.box_bytes < kMostPrivateBytes ? g_settings.box_bytes : kMostPrivateBytes);
  if (memory.memory == nullptr) return;
  g_storage = OpenBox{};
  LayOut(memory, g_storage);
  FillHeader(g_storage, api_version);
  if (memory.in_file) {
    GuardBox(memory.memory, memory.bytes);
    char line[sizeof memory.path + 32];
    snprintf(line, sizeof line, "black box %s", memory.path);
    Log(logger, nccl::kLogInfo, line);
  }
  StoreRelease(g_box, &g_storage);
  StartKeeper(g_storage, g_settings, memory.in_file ? memory.path : "");
  if (const char* trouble = OutputTrouble(200)) Log(logger, nccl::kLogWarn, trouble);
}

// Where no launcher told the rank, a communicator as large as the world does. Slurm's word counts for what srun
// started; a batch script that runs `python train.py`, which then makes its ranks itself, leaves SLURM_PROCID=0 to all
// of them, and SLURM_NTASKS=1 or whatever was asked for. A communicator that does not fit into such a world tells
// better.
void LearnRank(box::Header& header, const CommFacts& comm) {
  if (comm.rank < 0 || header.world_size < 0 || comm.size < header.world_size) return;
  if (comm.size == header.world_size && g_world_seen) return;
  if (header.rank >= 0 && !IsRankOfSlurm()) return;
  if (header.rank < 0 && comm.size != header.world_size) return;
  g_world_seen = true;
  if (header.rank == comm.rank && header.world_size == comm.size) return;
  Store(header.world_size, comm.size);
  Store(header.rank, comm.rank);
  Store(header.rank_source, box::RankSource::communicator);
}

// Runs at exit() only, since the library is never unloaded. A kill leaves the box as it was.
__attribute__((destructor)) void OnExit() {
  OpenBox* box = CurrentBox();
  if (box == nullptr || box->pid != getpid()) return;
  FlushKeeper(1000);
  RemovePromFile();
  BeatHeart(*box);
  Store(box->header->end_ticks, Ticks());
  StoreRelease(box->header->end_state, box::EndState::exited);
}

}  // namespace

void BeginCommunicator(void** context, int* mask, const CommBirth& birth) {
  if (context == nullptr) return;
  *context = nullptr;
  const NoCancel no_cancel;
  pthread_mutex_lock(&g_life);
  if (!g_hooked) {
    PinLibrary();
    pthread_atfork(BeforeFork, AfterForkInParent, AfterForkInChild);
    g_hooked = true;
  }
  if (!g_tried) MakeBox(birth.api_version, birth.logger);
  OpenBox* box = CurrentBox();
  if (box != nullptr) {
    CommFacts facts = birth.comm;
    const GpuDevice gpu = CurrentGpu();
    facts.device = gpu.ordinal;
    if (box->header->gpu_uuid[0] == 0) CopyText(box->header->gpu_uuid, sizeof box->header->gpu_uuid, gpu.uuid);
    LearnRank(*box->header, facts);
    *context = OpenComm(*box, facts).opaque();
    if (*context != nullptr) ++g_communicators;
  }
  // One mask serves all communicators of the process, so it must be the same from every one of them.
  if (mask != nullptr)
    __atomic_store_n(mask, box == nullptr ? 0 : static_cast<int>(g_settings.event_mask), __ATOMIC_RELAXED);
  pthread_mutex_unlock(&g_life);
}

void EndCommunicator(void* context) {
  OpenBox* box = CurrentBox();
  if (box == nullptr || FindComm(*box, context) == box::kNoComm) return;
  const NoCancel no_cancel;
  pthread_mutex_lock(&g_life);
  CloseComm(*box, HandleOf(context));
  const bool last = --g_communicators == 0;
  pthread_mutex_unlock(&g_life);
  if (last) FlushKeeper(500);
}

}  // namespace tacet::plugin
