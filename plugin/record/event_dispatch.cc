// SPDX-License-Identifier: Apache-2.0
#include "plugin/record/event_dispatch.h"

namespace tacet::plugin {

OpenBox* g_box = nullptr;

void OnStop(OpenBox& box, EventHandle handle) {
  switch (handle.kind()) {
    case HandleKind::channel: return StopChannel(box, handle);
    case HandleKind::proxy_step: return EndStep(box, handle);
    case HandleKind::proxy_op: return EndProxy(box, handle);
    case HandleKind::task:
    case HandleKind::copy_engine: return EnqueueTask(box, handle);
    case HandleKind::group: return MoveGroup(box, handle, box::GroupState::done);
    case HandleKind::launch: return EndLaunch(box, handle);
    default: return;  // an API call, which goes on in its group; NULL (NetPlugin), captured, dropped, none of ours
  }
}

static bool WaitOf(int state, box::Wait* wait) {
  switch (state) {
    case nccl::kStepSendGpuWait: *wait = box::Wait::send_gpu; return true;
    case nccl::kStepSendPeerWait: *wait = box::Wait::send_credit; return true;
    case nccl::kStepSendWait: *wait = box::Wait::send_network; return true;
    case nccl::kStepRecvWait: *wait = box::Wait::recv_data; return true;
    case nccl::kStepRecvFlushWait: *wait = box::Wait::recv_flush; return true;
    case nccl::kStepRecvGpuWait: *wait = box::Wait::recv_gpu; return true;
    default: return false;
  }
}

// How many bytes a step state tells. From v4 on it is the size of this transfer, right from the state in which it is
// known.
static uint64_t StepBytes(const nccl::ArgsV4* args, int state) {
  const bool told = state == nccl::kStepSendWait || state == nccl::kStepRecvFlushWait;
  return told && args != nullptr ? args->proxyStep.transSize : 0;
}
static uint64_t StepBytes(const nccl::ArgsV1*, int) { return 0; }

template <typename Args>
void OnState(OpenBox& box, EventHandle handle, int state, const Args* args) {
  switch (handle.kind()) {
    case HandleKind::proxy_step:
      if (box::Wait wait{}; WaitOf(state, &wait)) MoveStep(box, handle, wait, StepBytes(args, state));
      return;
    case HandleKind::channel:
      if constexpr (requires { args->kernelCh; })
        if (state == nccl::kKernelChStop && args != nullptr) TimeChannelStop(box, handle, args->kernelCh.pTimer);
      return;
    case HandleKind::proxy_op:
      if constexpr (requires { args->proxyOp; })
        if (state <= nccl::kProxyOpRecvDone && args != nullptr) NoteProxyBytes(box, handle, args->proxyOp.transSize);
      return;
    case HandleKind::group:  // `args` is NULL here
      if (state == nccl::kGroupStartApiStop) MoveGroup(box, handle, box::GroupState::filled);
      if (state == nccl::kGroupEndApiStart) MoveGroup(box, handle, box::GroupState::ending);
      return;
    default: return;
  }
}
template void OnState(OpenBox&, EventHandle, int, const nccl::ArgsV1*);
template void OnState(OpenBox&, EventHandle, int, const nccl::ArgsV4*);

}  // namespace tacet::plugin
