// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/nccl_profiler_abi.h"
#include "plugin/record/comm_table.h"
#include "plugin/record/group_table.h"
#include "plugin/record/name_code.h"
#include "plugin/record/op_table.h"
#include "plugin/record/proxy_table.h"

// From the events of any API version to the tables of the box. One template serves all versions: where a descriptor has
// a member, it is used. `rank` in a descriptor is not: NCCL 2.28 to 2.30 leave it 0 in most events, the context knows
// better. Every path ends with *handle set, since NCCL may keep an old one otherwise.
namespace tacet::plugin {

template <typename Descr>
inline constexpr bool kHasApiEvents = requires(Descr d) {
  d.collApi;
};
template <typename Descr>
inline constexpr bool kTellsCommInTask = requires(Descr d) {
  d.coll.commHash;
};  // v1 to v3

inline uint16_t CommOf(OpenBox& box, const void* context) {
  const uint16_t comm = FindComm(box, context);
  if (comm == box::kNoComm) CountDrop(box, box::Drop::unknown_context);
  return comm;
}

inline uint64_t AsWord(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

template <typename Api>
IssuedCall CallOf(const Api& api, const void* parent) {
  IssuedCall call;
  call.kind = KindOf(api.func);
  call.type = TypeOf(api.datatype);
  call.count = api.count;
  call.stream = AsWord(api.stream);
  if constexpr (requires { api.root; })
    if (call.kind == box::Kind::broadcast || call.kind == box::Kind::reduce || call.kind == box::Kind::gather ||
        call.kind == box::Kind::scatter)
      call.peer = api.root;
  if constexpr (requires { api.userTag; }) call.user_tag = api.userTag;
  if (HandleOf(parent).kind() == HandleKind::group) call.group = GroupSerial(HandleOf(parent));
  return call;
}

template <typename Api>
EventHandle OnApi(OpenBox& box, uint16_t comm, const Api& api, const void* parent) {
  const IssuedCall call = CallOf(api, parent);
  return api.graphCaptured ? CaptureOp(box, comm, call) : IssueOp(box, comm, call);
}

// What only the task tells.
template <typename Part>
PlannedTask PlanOf(const Part& part) {
  PlannedTask task;
  if constexpr (requires { part.seqNumber; }) task.func_seq = part.seqNumber;
  if constexpr (requires { part.algo; }) {
    task.algorithm = AlgorithmOf(part.algo);
    task.protocol = ProtocolOf(part.proto);
  }
  if constexpr (requires { part.nChannels; }) {
    task.channels = part.nChannels;
  } else if constexpr (requires { part.nMaxChannels; }) {
    task.channels = part.nMaxChannels;
    task.flags |= box::kOpChannelsAtMost;
  }
  if constexpr (requires { part.peer; }) task.peer = part.peer;
  if constexpr (requires { part.isSymColl; })
    if (part.isSymColl) task.flags |= box::kOpSymmetric, task.algorithm = box::Algorithm::symmetric;
  return task;
}

// What the API event has already told, and better, where there is one.
template <typename Part>
void AddCall(const Part& part, PlannedTask& task) {
  task.kind = KindOf(part.func);
  task.type = TypeOf(part.datatype);
  task.count = part.count;
  if constexpr (requires { part.root; })
    if (task.kind == box::Kind::broadcast || task.kind == box::Kind::reduce) task.peer = part.root;
  if constexpr (requires { part.userTag; }) task.user_tag = part.userTag;
}

template <typename Descr, typename Part>
EventHandle OnTask(OpenBox& box, const void* context, const Descr& descr, const Part& part) {
  const EventHandle parent = HandleOf(descr.parentObj);
  const uint16_t comm = CommOf(box, context);
  if (comm == box::kNoComm) return {};
  if constexpr (requires { part.commHash; }) LearnComm(box, comm, part.commHash, part.name, descr.rank);  // v1 to v3
  PlannedTask task = PlanOf(part);
  if constexpr (!requires { descr.kernelCh.pTimer; }) task.flags |= box::kOpHostClock;
  if (parent.kind() != HandleKind::api) AddCall(part, task);
  if (parent.kind() == HandleKind::group) task.group = GroupSerial(parent);
  return PlanTask(box, comm, parent, task);
}

// Under PXN the operation may belong to another process of this host: its context and parent mean nothing here.
template <typename Descr>
EventHandle OnProxyOp(OpenBox& box, const void* context, const Descr& descr) {
  ProxyFacts facts;
  facts.origin_pid = descr.proxyOp.pid;
  facts.foreign = facts.origin_pid != box.pid;
  if (!facts.foreign) {
    facts.comm = FindComm(box, context);
    facts.task = HandleOf(descr.parentObj);
  }
  facts.channel = descr.proxyOp.channelId;
  facts.send = descr.proxyOp.isSend != 0;
  facts.peer = descr.proxyOp.peer;
  facts.steps = descr.proxyOp.nSteps;
  facts.chunk_bytes = descr.proxyOp.chunkSize;
  return BeginProxy(box, facts);
}

// GroupApi, CollApi, P2pApi, KernelLaunch, CeColl: what the application's thread does.
inline constexpr uint64_t kHostEvents =
    nccl::kGroupApi | nccl::kCollApi | nccl::kP2pApi | nccl::kKernelLaunch | nccl::kCeColl;

template <typename Descr>
EventHandle OnHostEvent(OpenBox& box, const void* context, const Descr& descr) {
  if ((descr.type & kHostEvents) == 0) return {};  // ProxyCtrl, NetPlugin, CeSync, KernelPhase: not asked for
  const uint16_t comm = CommOf(box, context);
  if (comm == box::kNoComm) return {};
  switch (descr.type) {
    case nccl::kCollApi: return OnApi(box, comm, descr.collApi, descr.parentObj);
    case nccl::kP2pApi: return OnApi(box, comm, descr.p2pApi, descr.parentObj);
    case nccl::kGroupApi: return BeginGroup(box, comm, descr.groupApi.graphCaptured);
    case nccl::kKernelLaunch: return BeginLaunch(box, HandleOf(descr.parentObj), AsWord(descr.kernelLaunch.stream));
    default: break;
  }
  if constexpr (requires { descr.ceColl; }) {
    if (descr.type != nccl::kCeColl) return {};
    const EventHandle api = HandleOf(descr.parentObj);
    MarkCopyEngine(box, api, descr.ceColl.seqNumber, AsWord(descr.ceColl.stream));
    if (api.kind() == HandleKind::api) return MakeHandle(box, HandleKind::copy_engine, api.slot(), api.generation(box));
  }
  return {};
}

template <typename Descr>
EventHandle OnStart(OpenBox& box, const void* context, const Descr& descr) {
  switch (descr.type) {
    case nccl::kKernelCh:
      if constexpr (requires { descr.kernelCh.pTimer; })
        return StartChannel(box, HandleOf(descr.parentObj), descr.kernelCh.channelId, descr.kernelCh.pTimer);
      else if constexpr (requires { descr.kernelCh; })
        return StartChannel(box, HandleOf(descr.parentObj), descr.kernelCh.channelId, 0);
      else
        return {};
    case nccl::kProxyStep: return BeginStep(box, HandleOf(descr.parentObj), descr.proxyStep.step);
    case nccl::kProxyOp: return OnProxyOp(box, context, descr);
    case nccl::kColl: return OnTask(box, context, descr, descr.coll);
    case nccl::kP2p: return OnTask(box, context, descr, descr.p2p);
    case nccl::kGroup:
      // With API events the group is already known by its GroupApi.
      if constexpr (!kHasApiEvents<Descr>)
        if (const uint16_t comm = CommOf(box, context); comm != box::kNoComm) return BeginGroup(box, comm, false);
      return {};
    default:
      if constexpr (kHasApiEvents<Descr>) return OnHostEvent(box, context, descr);
      return {};
  }
}

void OnStop(OpenBox& box, EventHandle handle);

template <typename Args>
void OnState(OpenBox& box, EventHandle handle, int state, const Args* args);
extern template void OnState(OpenBox&, EventHandle, int, const nccl::ArgsV1*);
extern template void OnState(OpenBox&, EventHandle, int, const nccl::ArgsV4*);

}  // namespace tacet::plugin
