// SPDX-License-Identifier: Apache-2.0
// What NCCL looks up: ncclProfiler_v1 to ncclProfiler_v7. It takes the newest it knows. Nothing here ever fails: the
// job comes first, a missing record second.
#include "plugin/plugin_life.h"
#include "plugin/record/event_dispatch.h"

namespace tacet::plugin {
namespace {

template <typename Descr>
nccl::Result StartEvent(void* context, void** handle, Descr* descr) {
  if (handle == nullptr) return nccl::kSuccess;
  OpenBox* box = CurrentBox();
  *handle = box == nullptr || descr == nullptr ? nullptr : OnStart(*box, context, *descr).opaque();
  return nccl::kSuccess;
}

nccl::Result StopEvent(void* handle) {
  OpenBox* box = CurrentBox();
  if (box != nullptr && handle != nullptr) OnStop(*box, HandleOf(handle));
  return nccl::kSuccess;
}

template <typename Args>
nccl::Result RecordEventState(void* handle, int state, Args* args) {
  OpenBox* box = CurrentBox();
  if (box != nullptr && handle != nullptr) OnState<Args>(*box, HandleOf(handle), state, args);
  return nccl::kSuccess;
}

nccl::Result Finalize(void* context) {
  EndCommunicator(context);
  return nccl::kSuccess;
}

template <int version>
nccl::Result InitBare(void** context, int* mask) {
  BeginCommunicator(context, mask, {.api_version = version, .comm = {}, .logger = nullptr});
  return nccl::kSuccess;
}

nccl::Result InitV4(void** context, int* mask, const char* name, uint64_t hash, int nodes, int size, int rank,
                    nccl::Logger logger) {
  BeginCommunicator(context, mask,
                    {.api_version = 4,
                     .comm = {.comm_id = hash, .rank = rank, .size = size, .nodes = nodes, .name = name},
                     .logger = logger});
  return nccl::kSuccess;
}

template <int version>
nccl::Result Init(void** context, uint64_t id, int* mask, const char* name, int nodes, int size, int rank,
                  nccl::Logger logger) {
  BeginCommunicator(context, mask,
                    {.api_version = version,
                     .comm = {.comm_id = id, .rank = rank, .size = size, .nodes = nodes, .name = name},
                     .logger = logger});
  return nccl::kSuccess;
}

template <typename Init, typename Descr, typename Args>
constexpr nccl::Profiler<Init, Descr, Args> MakeProfiler(Init init) {
  return {"Tacet", init, StartEvent<Descr>, StopEvent, RecordEventState<Args>, Finalize};
}

}  // namespace
}  // namespace tacet::plugin

namespace nccl = tacet::nccl;
using tacet::plugin::MakeProfiler;

#define TACET_EXPORT __attribute__((visibility("default"))) constinit

extern "C" {
TACET_EXPORT auto ncclProfiler_v1 = MakeProfiler<nccl::InitV1, nccl::DescrV1, nccl::ArgsV1>(tacet::plugin::InitBare<1>);
TACET_EXPORT auto ncclProfiler_v2 = MakeProfiler<nccl::InitV1, nccl::DescrV2, nccl::ArgsV1>(tacet::plugin::InitBare<2>);
TACET_EXPORT auto ncclProfiler_v3 = MakeProfiler<nccl::InitV1, nccl::DescrV3, nccl::ArgsV1>(tacet::plugin::InitBare<3>);
TACET_EXPORT auto ncclProfiler_v4 = MakeProfiler<nccl::InitV4, nccl::DescrV4, nccl::ArgsV4>(tacet::plugin::InitV4);
TACET_EXPORT auto ncclProfiler_v5 = MakeProfiler<nccl::InitV5, nccl::DescrV5, nccl::ArgsV4>(tacet::plugin::Init<5>);
TACET_EXPORT auto ncclProfiler_v6 = MakeProfiler<nccl::InitV5, nccl::DescrV6, nccl::ArgsV4>(tacet::plugin::Init<6>);
TACET_EXPORT auto ncclProfiler_v7 = MakeProfiler<nccl::InitV5, nccl::DescrV7, nccl::ArgsV4>(tacet::plugin::Init<7>);
}
