// SPDX-License-Identifier: Apache-2.0
#include "model/events/xid.h"

#include <algorithm>

namespace tacet {
namespace {

constexpr auto kApplication = XidOrigin::application;
constexpr auto kHardware = XidOrigin::hardware;
constexpr auto kDriver = XidOrigin::driver;
constexpr auto kEither = XidOrigin::either;
constexpr auto kConsequence = XidOrigin::consequence;

constexpr std::string_view kDebugKernel =
    "Run the program under compute-sanitizer, or with CUDA_LAUNCH_BLOCKING=1 to find the kernel. If different programs "
    "fail on the same GPU, "
    "suspect the GPU and run its diagnostics (dcgmi diag -r 3).";
constexpr std::string_view kResetGpu =
    "Drain the node and reset the GPU (nvidia-smi --gpu-reset) or reboot. If the fault returns, have the GPU checked.";
constexpr std::string_view kReplace =
    "Take the node out of service, reboot it, run the field diagnostics, and have the GPU replaced if it fails.";
constexpr std::string_view kReport =
    "Reset the GPU, update driver and firmware, and report it with the output of nvidia-bug-report.sh if it comes "
    "back.";
constexpr std::string_view kNvlink =
    "Reset the GPUs of this NVLink domain together. If the same link fails again, have the GPU, the baseboard or the "
    "switch checked "
    "(nvidia-smi nvlink -e, the fabric manager's log).";

// Sorted by code. After NVIDIA's public Xid catalog, in our words.
constexpr XidMeaning kXids[] = {
    {8, "GPU stopped processing", "A channel made no progress for too long and was stopped.", kEither, true, kResetGpu},
    {11, "invalid push buffer stream", "The GPU received commands it cannot read.", kDriver, true, kReport},
    {13, "graphics engine exception",
     "A kernel did something that the SM does not allow: an address out of range, an illegal instruction, a misaligned "
     "access.",
     kEither, true, kDebugKernel},
    {31, "GPU memory page fault",
     "A kernel or a copy touched an address that is not mapped: usually a bug in the program.", kEither, true,
     kDebugKernel},
    {32, "corrupted push buffer",
     "The command stream was damaged on its way to the GPU: the PCIe link, the driver, or memory.", kEither, true,
     "Look for PCIe errors at the same time, reseat or test the GPU, and update the driver."},
    {38, "driver firmware error", "The firmware of the GPU failed.", kDriver, true, kReport},
    {39, "copy engine exception", "A copy engine rejected its work.", kEither, true, kDebugKernel},
    {40, "copy engine exception", "A copy engine rejected its work.", kEither, true, kDebugKernel},
    {41, "copy engine exception", "A copy engine rejected its work.", kEither, true, kDebugKernel},
    {42, "video processor exception", "The video engine rejected its work.", kEither, true, kDebugKernel},
    {43, "GPU stopped processing",
     "The driver ended the channel of one program after that program's own error. The GPU itself stays usable.",
     kApplication, true,
     "Look for the first Xid before this one; it names the error. This one only shows which program was stopped."},
    {44, "graphics engine fault", "The context switch of the graphics engine failed.", kHardware, true, kResetGpu},
    {45, "channel torn down",
     "The driver removed the channels of a process that ended, was killed, or met another error: a consequence.",
     kConsequence, true, "Look for what came before: another Xid on this GPU, a killed process, an aborted job."},
    {46, "GPU stopped processing", "The GPU no longer answers its driver.", kHardware, true, kResetGpu},
    {47, "video processor exception", "The video engine rejected its work.", kEither, true, kDebugKernel},
    {48, "double-bit ECC error",
     "Memory on the GPU returned data that error correction could not repair. Programs using that page are ended.",
     kHardware, true,
     "Reset the GPU (nvidia-smi --gpu-reset -i N) so that the bad row or page is retired; nvidia-smi -q -d "
     "ROW_REMAPPER shows whether that worked. If remapping fails or the error returns, replace the GPU."},
    {56, "display engine error", "The display part of the GPU failed.", kHardware, false, kResetGpu},
    {57, "memory interface error", "Training or programming the link to the GPU's memory failed.", kHardware, true,
     kReplace},
    {58, "unstable memory interface", "The clock of the GPU's memory is unstable, or its memory failed a test.",
     kHardware, true, kReplace},
    {59, "internal microcontroller error", "A controller inside the GPU failed (older drivers).", kDriver, true,
     kReport},
    {60, "video processor exception", "The video engine rejected its work.", kEither, true, kDebugKernel},
    {61, "internal microcontroller warning", "The power controller of the GPU stopped at a breakpoint or a warning.",
     kDriver, false, kResetGpu},
    {62, "internal microcontroller halt",
     "The power controller of the GPU stopped. The GPU is not usable until it is reset.", kHardware, true, kResetGpu},
    {63, "row remapping or page retirement recorded",
     "A bad location in the GPU's memory was recorded and will be retired at the next reset. No data is lost by this "
     "event itself.",
     kHardware, false, "Reset the GPU when the job is over. Watch whether the number of remapped rows grows."},
    {64, "row remapping or page retirement failed",
     "A bad location in the GPU's memory could not be retired: no spare rows are left, or the record could not be "
     "written.",
     kHardware, true, kReplace},
    {65, "video processor exception", "The video engine rejected its work.", kEither, true, kDebugKernel},
    {66, "illegal access by the driver", "The driver itself accessed memory that it must not access.", kDriver, true,
     kReport},
    {68, "video decoder exception", "The video decoder rejected its work: a damaged stream, or a faulty decoder.",
     kEither, true, "Try the same input elsewhere; if only this GPU fails, have it checked."},
    {69, "graphics engine class error", "The graphics engine received an unknown method.", kEither, true, kDebugKernel},
    {70, "copy engine unknown error", "A copy engine failed without a known reason.", kEither, true, kResetGpu},
    {71, "copy engine unknown error", "A copy engine failed without a known reason.", kEither, true, kResetGpu},
    {72, "copy engine unknown error", "A copy engine failed without a known reason.", kEither, true, kResetGpu},
    {73, "video encoder error", "The video encoder failed.", kEither, true, kResetGpu},
    {74, "NVLink error",
     "A link between this GPU and another GPU or a switch failed. Collectives that cross it stop or end with an error.",
     kHardware, true, kNvlink},
    {75, "copy engine unknown error", "A copy engine failed without a known reason.", kEither, true, kResetGpu},
    {76, "copy engine unknown error", "A copy engine failed without a known reason.", kEither, true, kResetGpu},
    {78, "vGPU start error",
     "A virtual GPU could not be started: host and guest driver differ, or the license is missing.", kDriver, true,
     "Compare the driver versions of host and guest."},
    {79, "GPU has fallen off the bus",
     "The GPU no longer answers over PCIe: power, heat, the slot, the link or the GPU itself. Everything on it is "
     "lost.",
     kHardware, true,
     "Reboot the node (a reset is usually not enough), then check power, temperature, PCIe errors in the kernel log "
     "and the BMC's log. If "
     "the fault returns, have the GPU and its slot checked."},
    {80, "corrupted data sent to the GPU", "Commands arrived damaged at the GPU.", kHardware, true, kReplace},
    {81, "VGA subsystem error", "The display part of the GPU failed.", kHardware, false, kResetGpu},
    {82, "JPEG decoder error", "The JPEG engine failed.", kEither, true, kResetGpu},
    {92, "many corrected ECC errors",
     "Corrected errors in the GPU's memory occur at a high rate. Results are right, but the memory is likely to fail.",
     kHardware, false, "Let the job end, then run the diagnostics; replace the GPU if the rate stays high."},
    {93, "non-fatal violation of the InfoROM", "The GPU's own record could not be written.", kHardware, false,
     kReplace},
    {94, "contained ECC error",
     "Memory returned data that could not be repaired; the driver confined it to the program that used it, which was "
     "ended.",
     kHardware, true,
     "Restart the job. Reset the GPU when it is free, so that the row is remapped; replace it if this recurs."},
    {95, "uncontained ECC error",
     "Memory returned data that could not be repaired, and the damage could not be confined: every program on the GPU "
     "is affected.",
     kHardware, true, "Drain the node and reset the GPU before anything else runs on it. Replace it if this recurs."},
    {96, "video decoder error", "The video decoder failed.", kEither, true, kResetGpu},
    {97, "video decoder error", "The video decoder failed.", kEither, true, kResetGpu},
    {109, "context switch timeout", "The GPU could not switch away from a running kernel in time.", kEither, true,
     kReport},
    {110, "security fault", "A unit of the GPU that guards its firmware reported an error.", kHardware, true, kReplace},
    {111, "display error", "The display part of the GPU failed.", kHardware, false, kResetGpu},
    {112, "display error", "The display part of the GPU failed.", kHardware, false, kResetGpu},
    {113, "display error", "The display part of the GPU failed.", kHardware, false, kResetGpu},
    {118, "display error", "The display part of the GPU failed.", kHardware, false, kResetGpu},
    {119, "GSP does not answer",
     "The GPU's system processor (GSP), which runs a part of the driver, did not answer in time. Calls into the driver "
     "hang or "
     "fail from now on.",
     kDriver, true,
     "Reset the GPU, or reboot if that hangs. Update the driver; if the error returns, have the GPU checked."},
    {120, "GSP error", "The firmware on the GPU's system processor (GSP) crashed.", kDriver, true,
     "Reset the GPU, or reboot if that hangs. Update the driver; if the error returns, have the GPU checked."},
    {121, "chip-to-chip link error", "The link between CPU and GPU of a Grace superchip reported an error.", kHardware,
     false, "The link was retrained; watch whether the error returns, and have the board checked if it does."},
    {122, "GPU flash read error", "The GPU's flash memory could not be read.", kHardware, false, kReplace},
    {123, "GPU flash write error", "The GPU's flash memory could not be written.", kHardware, false, kResetGpu},
    {124, "GPU flash erase error", "The GPU's flash memory could not be erased.", kHardware, false, kReplace},
    {125, "InfoROM error", "The GPU's own record is damaged.", kHardware, false, kReplace},
    {136, "link training failure", "The PCIe or NVLink link could not be brought up.", kHardware, true, kReplace},
    {137, "NVLink access fault",
     "A GPU read or wrote memory of another GPU over NVLink that does not exist: usually an illegal address in a "
     "program, like Xid 31 on its own memory.",
     kEither, true, kDebugKernel},
    {140, "unrecovered ECC error", "Memory errors on the GPU could not be handled; they may or may not be confined.",
     kHardware, true, "Drain the node and reset the GPU. Replace it if this recurs."},
    {143, "GPU initialization failure", "The GPU did not start.", kHardware, true, kReplace},
    {144, "NVLink error (SAW)",
     "A part of the fifth-generation NVLink failed; the message says which link and how badly.", kHardware, true,
     kNvlink},
    {145, "NVLink error (RLW)",
     "A part of the fifth-generation NVLink failed; the message says which link and how badly.", kHardware, true,
     kNvlink},
    {146, "NVLink error (TLW)",
     "A part of the fifth-generation NVLink failed; the message says which link and how badly.", kHardware, true,
     kNvlink},
    {147, "NVLink error (TREX)",
     "A part of the fifth-generation NVLink failed; the message says which link and how badly.", kHardware, true,
     kNvlink},
    {148, "NVLink error (NVLPW)",
     "A part of the fifth-generation NVLink failed; the message says which link and how badly.", kHardware, true,
     kNvlink},
    {149, "NVLink error (NETIR)",
     "A part of the fifth-generation NVLink failed; the message says which link and how badly.", kHardware, true,
     kNvlink},
    {150, "NVLink error (MSE)",
     "A part of the fifth-generation NVLink failed; the message says which link and how badly.", kHardware, true,
     kNvlink},
    {151, "key rotation error", "The keys of confidential computing could not be changed in time.", kDriver, true,
     kReport},
    {154, "GPU recovery action changed",
     "The driver says what this GPU needs now: nothing, a reset, a node reboot, or a drain. It accompanies another "
     "Xid.",
     kConsequence, false, "Do what the message says (it names the action), and look for the Xid before it."},
    {155, "NVLink software-defined error", "The links went down for a reason that the software reports.", kHardware,
     true, kNvlink},
    {156, "resource retirement", "A part of the GPU was retired.", kHardware, false,
     "Reset the GPU when the job is over. Watch whether the error returns."},
    {157, "resource retirement failed", "A part of the GPU could not be retired.", kHardware, true, kReplace},
    {158, "GPU fatal timeout", "A unit inside the GPU did not answer.", kHardware, true, kResetGpu},
    {159, "chip interconnect error", "An access between units of the GPU failed.", kHardware, true, kResetGpu},
    {160, "channel retirement", "A channel of the GPU's memory was marked to be retired.", kHardware, false,
     "Reset the GPU when the job is over."},
    {161, "channel retirement failed", "A channel of the GPU's memory could not be retired.", kHardware, true,
     kReplace},
    {167, "PCIe fatal timeout", "The PCIe link of the GPU did not answer in time.", kHardware, true,
     "Reboot the node and look for PCIe errors in the kernel log. If the fault returns, have the GPU and its slot "
     "checked."},
    {168, "reduced memory capacity",
     "The GPU started with less memory than it has: a bad part of it was taken out of use.", kHardware, false,
     "Check that the job fits into what is left (nvidia-smi -q -d MEMORY); have the GPU replaced if it grows."},
    {169, "internal microcontroller halt", "The security controller of the GPU stopped.", kHardware, true, kResetGpu},
    {171, "uncorrectable memory error", "Comes with Xid 48 and says that the fault is in the GPU's DRAM.", kHardware,
     true, "Reset the GPU so that the row is remapped; replace it if remapping fails or this recurs."},
    {172, "uncorrectable SRAM error", "Comes with Xid 48 and says that the fault is in the GPU's caches or registers.",
     kHardware, true, kReplace},
};

}  // namespace

std::span<const XidMeaning> AllXids() { return kXids; }

const XidMeaning* FindXid(int64_t code) {
  const auto found = std::lower_bound(std::begin(kXids), std::end(kXids), code,
                                      [](const XidMeaning& meaning, int64_t wanted) { return meaning.code < wanted; });
  return found != std::end(kXids) && found->code == code ? found : nullptr;
}

std::string_view Name(XidOrigin origin) {
  switch (origin) {
    case XidOrigin::application: return "application";
    case XidOrigin::hardware: return "hardware";
    case XidOrigin::driver: return "driver or firmware";
    case XidOrigin::either: return "application or hardware";
    case XidOrigin::consequence: return "consequence";
  }
  return "";
}

}  // namespace tacet
