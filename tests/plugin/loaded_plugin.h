// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tests/plugin/event_descriptor.h"

// A profiler plugin as NCCL holds it: found by symbol, newest version first, called through its table.
namespace tacet::fake {

struct CommIdentity {
  uint64_t hash = 0;
  const char* name = nullptr;
  int nodes = 1, size = 1, rank = 0;
};

class LoadedPlugin {
 public:
  // `api` 0 takes the newest symbol up to `newest`; otherwise exactly that version.
  static LoadedPlugin Open(const std::string& path, int api = 0, int newest = 7);
  // A table linked into this program.
  static LoadedPlugin Linked(const void* table, int api);
  bool ok() const { return table_ != nullptr; }
  int api() const { return api_; }
  const std::string& error() const { return error_; }
  void Close();  // dlclose

  int Init(void** context, int* mask, const CommIdentity& comm) const;
  int Start(void* context, void** handle, EventDescriptor& descr) const {
    return table_->start(context, handle, descr.data());
  }
  int Stop(void* handle) const { return table_->stop(handle); }
  int Record(void* handle, int state, void* args) const { return table_->record(handle, state, args); }
  int Finalize(void* context) const { return table_->finalize(context); }

  // State arguments in the layout of this version.
  int RecordChannelStop(void* handle, uint64_t gpu_ns) const;
  int RecordStep(void* handle, int state, uint64_t bytes) const;
  int RecordProxyOp(void* handle, int state, uint64_t bytes, int steps) const;

 private:
  struct Table {
    const char* name;
    void* init;
    int (*start)(void*, void**, void*);
    int (*stop)(void*);
    int (*record)(void*, int, void*);
    int (*finalize)(void*);
  };
  void* library_ = nullptr;
  const Table* table_ = nullptr;
  int api_ = 0;
  std::string error_;
};

}  // namespace tacet::fake
