// SPDX-License-Identifier: Apache-2.0
#include "rules/words/gpu_advice.h"

#include <string_view>

#include "model/events/xid.h"
#include "rules/words/gpu_maker.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

// What the kernel log tells of the Xid is not asked for again.
std::string ProgramXidWords(const Incident& incident) {
  for (const Event& event : incident.events) {
    const int64_t number = event.kind == EventKind::xid ? event.As<Xid>().number : -1;
    if (number == 13 || number == 31 || number == 43)
      return "Xid " + std::to_string(number) +
             " in the kernel log points to the program or a library it uses, not to the hardware.";
  }
  return "Look for Xid lines in the kernel log of the host (dmesg -T | grep Xid): 13, 31 and 43 point to the "
         "program; 48, 64, 74, 79 and 95 to the hardware.";
}

// "sx2", or "that node" where no line tells its name.
std::string NodeOf(const Incident& incident, const Event& lead) {
  const std::string& host = SubjectOf(incident, lead).host;
  return host.empty() ? "that node" : host;
}

}  // namespace

bool IsOfAKernel(const Event& lead) {
  if (lead.kind == EventKind::xid) return lead.Means(Meaning::illegal_access);
  return lead.kind == EventKind::cuda_error &&
         (lead.Means(Meaning::illegal_access) || lead.As<CudaError>().words == "memory access fault");
}

std::vector<std::string> GpuAdvice(const Incident& incident, const Event& lead) {
  if (lead.kind == EventKind::xid && lead.Means(Meaning::setup_failed))
    return {"Reboot the node, or reset the GPU (nvidia-smi --gpu-reset); if that does not help, have it checked.",
            "Compare the driver's version with that of a healthy node: one that does not match the card or the kernel "
            "fails in the same way.",
            "Restart the job without that node."};
  if (lead.maker == GpuMaker::intel) return IntelSteps();
  if (lead.kind == EventKind::xid && lead.As<Xid>().number <= 0)
    return IsOfAKernel(lead) ? AmdKernelSteps() : AmdDeviceSteps();
  if (lead.kind == EventKind::xid) {
    const XidMeaning* entry = FindXid(lead.As<Xid>().number);
    if (!entry || entry->advice.empty()) return {};
    std::vector<std::string> advice = {std::string(entry->advice)};
    // Some advice says itself when the job can start again.
    if (entry->origin == XidOrigin::hardware && entry->advice.find("estart") == std::string_view::npos)
      advice.push_back("Restart the job without that node.");
    return advice;
  }
  if (lead.kind == EventKind::nvlink_error) return NvlinkSteps(NodeOf(incident, lead));
  const bool by_nccl = lead.kind == EventKind::nccl_warning;
  if (lead.kind != EventKind::cuda_error && !by_nccl) return {};
  if (lead.Means(Meaning::of_ascend))
    return {
        "Look at the device's log (ascend/log/debug/plog and device-*) and at npu-smi info for its state and for "
        "memory errors.",
        "A timeout or an exception of a core usually comes from the operator that ran: ASCEND_LAUNCH_BLOCKING=1 shows "
        "which; if different programs fail on the same device, drain the node."};
  if (MakerOfGpus(incident, lead) == GpuMaker::google) return TpuSteps();
  if (MakerOfGpus(incident, lead) == GpuMaker::amd)
    return IsOfAKernel(lead) || lead.Means(Meaning::illegal_access) ? AmdKernelSteps() : AmdDeviceSteps();
  const std::string& words = by_nccl ? lead.As<Warning>().object : lead.As<CudaError>().words;
  if (words.find("ECC") != std::string::npos)
    return {
        "Drain the node: nvidia-smi -q -d ECC,ROW_REMAPPER shows the memory errors of its GPUs, dmesg -T | grep Xid "
        "names the GPU (Xid 48, 63, 64, 94, 95).",
        "Reset the GPU (nvidia-smi --gpu-reset) or reboot; if the errors come back, replace it.",
        "Restart the job without " + NodeOf(incident, lead) +
            "; the line of code at which the error appears did not cause it."};
  for (const std::string_view link : {"NVLink", "nvlink"})
    if (words.find(link) != std::string::npos) return NvlinkSteps(NodeOf(incident, lead));
  if (const XidMeaning* lost = words.find("GPU is lost") != std::string::npos ? FindXid(79) : nullptr)
    return {std::string(lost->advice),
            "nvidia-smi and dmesg -T | grep Xid on " + NodeOf(incident, lead) + " name the GPU.",
            "Restart the job without that node."};
  // Megatron's check ran the step again: the GPU, or another one, gave another result.
  if (words.find("possible hardware error") != std::string::npos)
    return {"Drain " + NodeOf(incident, lead) +
                " and test that GPU (dcgmi diag -r 3): the same step gave another result when it was run again.",
            "Continue from the checkpoint before that step, on other GPUs."};
  if (words.find("launch timed out") != std::string::npos)
    return {
        "Check whether that GPU also drives a display (nvidia-smi -q shows 'Display Active'): there the driver ends "
        "kernels that run for more than a few seconds. Use another GPU, or stop the desktop on it; on Windows raise "
        "TdrDelay.",
        "Without a display: look for Xid 8 in dmesg -T. The kernel does not return, or waits for data over a slow PCIe "
        "link (nvidia-smi -q: 'Link Width').",
        "CUDA_LAUNCH_BLOCKING=1 shows which kernel it is; give it smaller batches."};
  for (const std::string_view hardware : {"hardware", "Contained"})
    if (words.find(hardware) != std::string::npos) return {};
  if (words == "unknown error")  // of the device or of the program alike
    return {
        "Look for Xid lines in the kernel log of the host (dmesg -T | grep Xid): 13, 31 and 43 point to the "
        "program; 48, 64, 74, 79 and 95 to the hardware.",
        "If there are none: run again with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to find the kernel.",
        "If different programs fail on the same GPU: drain the node and run dcgmi diag -r 3."};
  return {
      "Run again with CUDA_LAUNCH_BLOCKING=1 or under compute-sanitizer to find the kernel: it is usually a bug "
      "in the program or in a library it uses.",
      ProgramXidWords(incident), "If different programs fail on the same GPU: drain the node and run dcgmi diag -r 3."};
}

}  // namespace tacet
