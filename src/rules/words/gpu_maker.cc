// SPDX-License-Identifier: Apache-2.0
#include "rules/words/gpu_maker.h"

#include <algorithm>

namespace tacet {

GpuMaker MakerOfGpus(const Incident& incident, const Event& event) {
  if (event.maker != GpuMaker::not_told) return event.maker;
  const auto told = std::find_if(incident.events.begin(), incident.events.end(),
                                 [](const Event& other) { return other.maker != GpuMaker::not_told; });
  return told == incident.events.end() ? GpuMaker::not_told : told->maker;
}

std::vector<std::string> AmdKernelSteps() {
  return {
      "Run again with AMD_SERIALIZE_KERNEL=3 to find the kernel: it is usually a bug in the program or in a library "
      "it uses.",
      "Look at the kernel log of the host (dmesg -T | grep amdgpu) and at rocm-smi --showras for memory errors.",
      "If different programs fail on the same GPU: drain the node and have the GPU checked."};
}

std::vector<std::string> AmdDeviceSteps() {
  return {
      "Read what the kernel log says before the GPU reset (dmesg -T | grep amdgpu), and look at rocm-smi --showras.",
      "Drain the node and reboot it; if the fault returns, have the GPU checked.",
      "If one program always ends like this: update ROCm and the GPU's firmware, and find the kernel with "
      "AMD_SERIALIZE_KERNEL=3."};
}

std::vector<std::string> IntelSteps() {
  return {
      "Read what the kernel log says before it (dmesg -T | grep -E 'xe |i915 '), and look at xpu-smi diag and xpu-smi "
      "health for the state of the GPU.",
      "If every run stops at the same collective or kernel: test with another release of oneCCL and of the driver, and "
      "with another algorithm (CCL_ALLREDUCE=ring).",
      "Reboot the node, since the GPU may not come back by itself; if different programs fail on the same GPU, have it "
      "checked."};
}

std::vector<std::string> TpuSteps() {
  return {
      "Find the first worker that reports it (the logs of all workers, by time): the chip is named as host and place "
      "(tpu31:pe4:3); the other workers fail because of it.",
      "Start the job again; if the same host fails again, recreate the slice or the node, so that the job gets other "
      "hardware, and report it to the provider.",
      "If the same program halts on different hosts: check that all workers run the same code and the same versions of "
      "libtpu and of jax or torch_xla, and look at the operation (HLO) that the message names."};
}

std::string DeviceWord(GpuMaker maker) { return maker == GpuMaker::google ? "TPU" : "GPU"; }

void SayOfTpu(Finding& finding) {
  finding.explanation =
      "The TPU's runtime reports that the chip halted or that its driver failed: a fault of the hardware, a check in "
      "the program that runs on it, or workers that run different programs. All other workers of the slice fail or "
      "wait because of it.";
  finding.prevent = {
      "Save checkpoints often and restart automatically: one faulty chip ends the job of a whole slice."};
}

void SayOfAmd(Finding& finding) {
  finding.explanation =
      "The driver (amdgpu) or HIP reports a device error: a memory error, a broken link between GPUs, a device that "
      "had "
      "to be reset, or an illegal access by some kernel. The rank's collectives never finish and its peers wait or "
      "crash. An illegal memory access is usually a bug in an earlier kernel, not in RCCL, although a collective "
      "reports it. A stalled GPU shows no error at all.";
  finding.prevent = {"Watch amdgpu messages of the kernel and the RAS counters of all nodes (rocm-smi --showras).",
                     "Run a short diagnostic on every node before long jobs."};
}

std::vector<std::string> AmdPeerSteps() {
  return {"Test: run with NCCL_P2P_DISABLE=1. If that helps, direct access between GPUs is the part that fails.",
          "On that host: rocm-smi --showtopo; rocm-bandwidth-test; dmesg | grep -iE 'amdgpu|amd-vi|iommu'.",
          "Bare metal: boot with iommu=pt, or turn ACS off on the PCIe switches (setpci ... ECAP_ACS+0x6.w=0000).",
          "Containers: one IPC namespace (--ipc=host), with /dev/kfd and /dev/dri of all GPUs.",
          "Infinity Fabric (XGMI): rocm-smi --showxgmierr; drain the node if it counts errors."};
}

std::vector<std::string> NvlinkSteps(const std::string& node) {
  return {
      "Look for the link that failed on " + node +
          ": dmesg -T | grep -E 'Xid.*74|SXid|NVLink'; nvidia-smi nvlink -s (state) and nvidia-smi nvlink -e (error "
          "counters).",
      "Drain " + node + " and reset its GPUs (and the NVSwitches, where it has them); if the errors come back, " +
          "have the link, the bridge or the board checked (dcgmi diag -r 3).",
      "Restart the job without " + node + "; the line of code at which the error appears did not cause it."};
}

}  // namespace tacet
