// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/loaded_plugin.h"

#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

namespace tacet::fake {

// What ncclDebugLog does with NCCL_DEBUG=INFO.
static void Log(int level, unsigned long, const char*, int, const char* format, ...) {
  if (getenv("FAKE_NCCL_DEBUG") == nullptr) return;
  va_list args;
  va_start(args, format);
  std::fprintf(stderr, "NCCL %s ", level == 2 ? "WARN" : "INFO");
  std::vfprintf(stderr, format, args);
  std::fputc('\n', stderr);
  va_end(args);
}

LoadedPlugin LoadedPlugin::Open(const std::string& path, int api, int newest) {
  LoadedPlugin plugin;
  plugin.library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin.library_ == nullptr) {
    plugin.error_ = dlerror();
    return plugin;
  }
  for (int version = api != 0 ? api : newest; version >= (api != 0 ? api : 1) && plugin.table_ == nullptr; --version) {
    plugin.table_ =
        static_cast<const Table*>(dlsym(plugin.library_, ("ncclProfiler_v" + std::to_string(version)).c_str()));
    plugin.api_ = version;
  }
  if (plugin.table_ == nullptr) plugin.error_ = "no ncclProfiler_v symbol in " + path;
  return plugin;
}

LoadedPlugin LoadedPlugin::Linked(const void* table, int api) {
  LoadedPlugin plugin;
  plugin.table_ = static_cast<const Table*>(table);
  plugin.api_ = api;
  return plugin;
}

void LoadedPlugin::Close() {
  if (library_ != nullptr) dlclose(library_);
  library_ = nullptr;
  table_ = nullptr;
}

int LoadedPlugin::Init(void** context, int* mask, const CommIdentity& comm) const {
  using InitV1 = int (*)(void**, int*);
  using InitV4 = int (*)(void**, int*, const char*, uint64_t, int, int, int, decltype(&Log));
  using InitV5 = int (*)(void**, uint64_t, int*, const char*, int, int, int, decltype(&Log));
  if (api_ <= 3) return reinterpret_cast<InitV1>(table_->init)(context, mask);
  if (api_ == 4)
    return reinterpret_cast<InitV4>(table_->init)(context, mask, comm.name, comm.hash, comm.nodes, comm.size, comm.rank,
                                                  Log);
  return reinterpret_cast<InitV5>(table_->init)(context, comm.hash, mask, comm.name, comm.nodes, comm.size, comm.rank,
                                                Log);
}

int LoadedPlugin::RecordChannelStop(void* handle, uint64_t gpu_ns) const {
  return api_ >= 4 ? Record(handle, 22, &gpu_ns) : 0;
}

int LoadedPlugin::RecordStep(void* handle, int state, uint64_t bytes) const {
  if (api_ <= 3) return state == 20 ? 0 : Record(handle, state, nullptr);
  return Record(handle, state, &bytes);
}

int LoadedPlugin::RecordProxyOp(void* handle, int state, uint64_t bytes, int steps) const {
  if (api_ >= 4) return 0;
  struct {
    uint64_t bytes;
    int steps;
  } args{bytes, steps};
  return Record(handle, state, &args);
}

}  // namespace tacet::fake
