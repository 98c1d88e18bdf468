// SPDX-License-Identifier: Apache-2.0
#include "rules/unexplained/told_remedy.h"

#include <algorithm>
#include <string>
#include <vector>

#include "rules/unexplained/told_trouble.h"
#include "rules/words/gpu_maker.h"
#include "rules/words/words.h"

namespace tacet {
namespace {

struct RemedyCause {
  RemedyOf of;
  std::string_view cause, suspect;
  Confidence confidence;
  std::string_view steps[3];
};

constexpr RemedyCause kCauses[] = {
    {RemedyOf::peer_access,
     "p2p-broken",
     "the direct path between the GPUs does not work",
     Confidence::likely,
     {"Test the path: nvidia-smi topo -p2p r; p2pBandwidthLatencyTest or nvbandwidth for each pair of GPUs.",
      "ACS and the IOMMU of the host break it: lspci -vvv | grep ACSCtl (SrcValid+ or ReqRedir+ above a GPU); boot "
      "with "
      "iommu=pt, turn ACS off. Some cards and drivers report peer access that they do not support.",
      "Keep the setting until that path is repaired; data then goes through host memory, which is slower."}},
    {RemedyOf::infiniband,
     "rdma-broken",
     "the InfiniBand or RoCE path does not work",
     Confidence::likely,
     {"Test the path without NCCL: ib_write_bw between the two hosts, first with host memory, then with --use_cuda=0.",
      "RoCE: NCCL_IB_GID_INDEX (show_gids: the RoCE v2 entry with an IPv4 address), the same MTU and flow control on "
      "all "
      "switches. Several adapters: NCCL_IB_HCA names the ones that are connected.",
      "Keep the setting until then: NCCL uses TCP sockets, which is slower."}},
    {RemedyOf::gpu_direct,
     "rdma-broken",
     "the adapter's direct access to GPU memory (GPUDirect RDMA) does not work",
     Confidence::likely,
     {"On each host: lsmod | grep peermem; lspci -vvv | grep ACSCtl; boot with iommu=pt.",
      "The driver, nvidia_peermem and the OFED must match each other: ofed_info -s, nvidia-smi, uname -r on all hosts.",
      "Keep the setting until then: data goes through host memory, which is slower."}},
    {RemedyOf::shared_memory,
     "shared-memory-full",
     "shared memory between the processes of a host does not work",
     Confidence::possible,
     {"Inside the container: df -h /dev/shm; start it with --shm-size=16g or --ipc=host.",
      "Processes of one host that are in different containers cannot share memory: one container, or one IPC "
      "namespace."}},
    {RemedyOf::interface,
     "wrong-interface",
     "without the setting a process chooses an interface that its peers cannot reach",
     Confidence::likely,
     {"Keep the setting, the same on all hosts: in the image, in the job script or in /etc/nccl.conf.",
      "On each host: ip -br addr shows the interfaces that must not be chosen (docker, bridges, tunnels)."}},
};

const RemedyCause& CauseOf(RemedyOf of) {
  return *std::find_if(std::begin(kCauses), std::end(kCauses), [&](const RemedyCause& one) { return one.of == of; });
}

// NVIDIA's tools and samples are of no use on other GPUs.
void AddSteps(const Case& facts, const Event& told, const RemedyCause& cause, std::vector<std::string>& steps) {
  if (cause.of == RemedyOf::peer_access && MakerOfGpus(facts.incident, told) == GpuMaker::amd) {
    const std::vector<std::string> amd = AmdPeerSteps();
    steps.insert(steps.end(), amd.begin() + 1, amd.end());  // the test of the first has been made
    steps.emplace_back(cause.steps[2]);
    return;
  }
  for (const std::string_view step : cause.steps)
    if (!step.empty()) steps.emplace_back(step);
}

// lspci shows access control above some device: what goes between GPUs is then sent up to the CPU, and may be lost.
std::optional<Finding> AccessControlFinding(const Case& facts) {
  const Event* hang = FindToldWords(facts.incident, EventKind::told_hang);
  if (!hang || !hang->As<ToldPlace>().acs_on) return std::nullopt;
  Finding finding;
  finding.cause = "p2p-broken";
  finding.status = Status::hang;
  finding.severity = Severity::critical;
  finding.confidence = Confidence::possible;
  finding.headline =
      "the job hangs, and lspci shows PCIe access control (ACS) that is on: it breaks direct access between GPUs";
  finding.evidence.push_back(CiteEvent(*hang, "the text around the log says that the job hangs"));
  finding.fix = {
      "Test: run with NCCL_P2P_DISABLE=1 before the command. If that helps, the direct path between the GPUs is at "
      "fault.",
      "Find the bridges above the GPUs (lspci -t, nvidia-smi topo -m) and turn ACS off there: setpci -s BRIDGE "
      "ECAP_ACS+0x6.w=0000, or in the BIOS; a virtual machine needs it on, and ATS instead.",
      "Find the pair: CUDA_VISIBLE_DEVICES=0,1 and so on with two GPUs each, or p2pBandwidthLatencyTest."};
  return finding;
}

}  // namespace

std::optional<Finding> RemedyFinding(const Case& facts, std::string_view cause) {
  if (facts.analyses.end.kind != JobEnding::hung || facts.analyses.outcome.ended_in_order) return std::nullopt;
  for (const Event& event : facts.incident.events) {
    if (event.kind != EventKind::told_remedy) continue;
    const auto& remedy = event.As<ToldRemedy>();
    const RemedyCause& known = CauseOf(remedy.of);
    if (known.cause != cause) continue;
    Finding finding;
    finding.cause = cause;
    finding.status = Status::hang;
    finding.severity = Severity::critical;
    finding.confidence = known.confidence;
    finding.headline = "the job hangs, and " + remedy.setting +
                       " helps, as the text around the log says: " + std::string(known.suspect);
    finding.evidence.push_back(CiteEvent(event, "said in the text around the log"));
    AddSteps(facts, event, known, finding.fix);
    return finding;
  }
  return cause == "p2p-broken" ? AccessControlFinding(facts) : std::nullopt;
}

void TellRemedy(const Case& facts, Finding& finding) {
  const Event* told = FindToldWords(facts.incident, EventKind::told_remedy);
  if (!told) return;
  const auto& remedy = told->As<ToldRemedy>();
  const RemedyCause& known = CauseOf(remedy.of);
  finding.headline += ", and that " + remedy.setting + " helps: " + std::string(known.suspect);
  finding.evidence.push_back(CiteEvent(*told, "said in the text around the log"));
  AddSteps(facts, *told, known, finding.fix);
}

}  // namespace tacet
