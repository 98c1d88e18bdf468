// SPDX-License-Identifier: Apache-2.0
// Nothing but proofs: the declarations have the layout that NCCL's binaries use.
#include "plugin/nccl_profiler_abi.h"

namespace tacet::nccl {

static_assert(sizeof(void*) == 8, "NCCL runs on 64-bit hosts only");
static_assert(sizeof(DescrV1) == 120 && sizeof(DescrV2) == 128 && sizeof(DescrV3) == 120 && sizeof(DescrV4) == 104);
static_assert(sizeof(DescrV5) == 112 && sizeof(DescrV6) == 112 && sizeof(DescrV7) == 136);
static_assert(sizeof(ArgsV1) == 16 && sizeof(ArgsV4) == 8);
static_assert(sizeof(Profiler<InitV1, DescrV1, ArgsV1>) == 48);

template <typename Descr>
constexpr bool HeadFits() {
  return offsetof(Descr, type) == 0 && offsetof(Descr, parentObj) == 8 && offsetof(Descr, rank) == 16 &&
         offsetof(Descr, proxyOp) == 24;
}
static_assert(HeadFits<DescrV1>() && HeadFits<DescrV2>() && HeadFits<DescrV3>() && HeadFits<DescrV4>());
static_assert(HeadFits<DescrV5>() && HeadFits<DescrV6>() && HeadFits<DescrV7>());
static_assert(offsetof(DescrV6, proxyOp.channelId) == 28 && offsetof(DescrV6, proxyOp.peer) == 32 &&
              offsetof(DescrV6, proxyOp.nSteps) == 36 && offsetof(DescrV6, proxyOp.chunkSize) == 40 &&
              offsetof(DescrV6, proxyOp.isSend) == 44 && offsetof(DescrV6, proxyStep.step) == 24);
static_assert(offsetof(DescrV6, kernelCh.channelId) == 24 && offsetof(DescrV6, kernelCh.pTimer) == 32 &&
              offsetof(DescrV6, netPlugin.id) == 24 && offsetof(DescrV6, netPlugin.data) == 32);
static_assert(offsetof(DescrV6, groupApi.graphCaptured) == 24 && offsetof(DescrV6, groupApi.groupDepth) == 28 &&
              offsetof(DescrV6, kernelLaunch.stream) == 24);

// v5, v6 and v7 agree on these.
template <typename Descr>
constexpr bool ApiPartsFit() {
  return offsetof(Descr, collApi.func) == 24 && offsetof(Descr, collApi.count) == 32 &&
         offsetof(Descr, collApi.datatype) == 40 && offsetof(Descr, collApi.root) == 48 &&
         offsetof(Descr, collApi.stream) == 56 && offsetof(Descr, collApi.graphCaptured) == 64 &&
         offsetof(Descr, p2pApi.func) == 24 && offsetof(Descr, p2pApi.count) == 32 &&
         offsetof(Descr, p2pApi.datatype) == 40 && offsetof(Descr, p2pApi.stream) == 48 &&
         offsetof(Descr, p2pApi.graphCaptured) == 56;
}
template <typename Descr>
constexpr bool TaskPartsFit() {
  return offsetof(Descr, coll.seqNumber) == 24 && offsetof(Descr, coll.func) == 32 &&
         offsetof(Descr, coll.sendBuff) == 40 && offsetof(Descr, coll.recvBuff) == 48 &&
         offsetof(Descr, coll.count) == 56 && offsetof(Descr, coll.root) == 64 &&
         offsetof(Descr, coll.datatype) == 72 && offsetof(Descr, coll.nChannels) == 80 &&
         offsetof(Descr, coll.nWarps) == 81 && offsetof(Descr, coll.algo) == 88 && offsetof(Descr, coll.proto) == 96 &&
         offsetof(Descr, p2p.func) == 24 && offsetof(Descr, p2p.buff) == 32 && offsetof(Descr, p2p.datatype) == 40 &&
         offsetof(Descr, p2p.count) == 48 && offsetof(Descr, p2p.peer) == 56 && offsetof(Descr, p2p.nChannels) == 60;
}
static_assert(ApiPartsFit<DescrV5>() && ApiPartsFit<DescrV6>() && ApiPartsFit<DescrV7>());
static_assert(TaskPartsFit<DescrV4>() && TaskPartsFit<DescrV5>() && TaskPartsFit<DescrV6>() && TaskPartsFit<DescrV7>());
static_assert(offsetof(DescrV6, coll.parentGroup) == 104 && offsetof(DescrV6, p2p.parentGroup) == 64);
static_assert(offsetof(DescrV6, ceColl.syncStrategy) == 80 && offsetof(DescrV6, ceColl.intraBatchSync) == 88 &&
              offsetof(DescrV6, ceColl.batchSize) == 92 && offsetof(DescrV6, ceColl.numBatches) == 96 &&
              offsetof(DescrV6, ceColl.ceSeqNum) == 100 && offsetof(DescrV6, ceColl.stream) == 104);
static_assert(offsetof(DescrV7, collApi.userTag) == 72 && offsetof(DescrV7, p2pApi.userTag) == 64 &&
              offsetof(DescrV7, p2p.userTag) == 72 && offsetof(DescrV7, ceColl.userTag) == 112 &&
              offsetof(DescrV7, coll.kernelVariant) == 112 && offsetof(DescrV7, coll.isSymColl) == 120 &&
              offsetof(DescrV7, coll.userTag) == 128);
static_assert(offsetof(DescrV7, kernelPhase.phaseId) == 25 && offsetof(DescrV7, kernelPhase.phaseName) == 32 &&
              offsetof(DescrV7, kernelPhase.pTimer) == 40);

}  // namespace tacet::nccl
