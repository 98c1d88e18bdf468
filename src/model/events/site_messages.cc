// SPDX-License-Identifier: Apache-2.0
#include "model/events/site_messages.h"

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "base/text_scan.h"
#include "model/events/site_message_table.h"

namespace tacet {
namespace {

// A first word that begins with '^' stands at the beginning of the line. Where the subject stands: the first PCI
// address of the line, or what follows `from` up to one of the characters of `to`.
struct SiteWords {
  std::string_view id;
  std::string_view all[2];  // both stand in the line; the second may be empty
  std::string_view from = {}, to = {};
};

constexpr std::string_view kPci = "PCI";

// As the programs word it. The first that fits counts.
constexpr SiteWords kSiteWords[] = {
    // NVIDIA's driver
    {"gpu-lost", {"osHandleGpuLost", ""}, kPci},
    {"gpu-lost", {"NV_ERR_GPU_IS_LOST", ""}, kPci},
    {"gpu-needs-reset", {"NVRM: ", "NV_ERR_RESET_REQUIRED"}, kPci},
    {"gpu-needs-reset", {"NVRM: ", "NV_ERR_GPU_IN_FULLCHIP_RESET"}, kPci},
    {"uvm-fatal", {"uvm encountered global fatal error", ""}},
    {"uvm-fatal", {"Encountered a global fatal error: ", ""}},
    {"fabric-manager-ended", {"nvidia-fabricmanager daemon shutdown detected", ""}},
    {"fabric-recovery", {"nvidia-fabricmanager daemon has invoked robust channel recovery", ""}},
    {"imex-recovery", {"nvidia-imex daemon has invoked robust channel recovery", ""}},
    {"no-gpu-found", {"NVRM: No NVIDIA GPU found", ""}},
    {"no-gpu-found", {"NVRM: No NVIDIA devices probed", ""}},
    {"no-gpu-found", {"^No devices were found", ""}},
    {"driver-no-devices", {"nvidia-persistenced", "Failed to query NVIDIA devices"}},
    {"peermem-not-loaded", {"symbol ib_register_peer_memory_client", ""}},
    {"peermem-not-loaded", {"could not insert 'nvidia_peermem'", ""}},
    {"peermem-not-loaded", {"could not insert 'nv_peer_mem'", ""}},
    {"gpu-xid-seen", {"Detected XID ", " for GPU "}, "Detected XID ", " "},
    {"driver-assertion", {"nvAssertFailedNoLog: Assertion failed", ""}},
    {"driver-assertion", {"nvAssertOkFailedNoLog: Assertion failed", ""}},
    {"driver-assertion", {"nvCheckOkFailedNoLog: Check failed", ""}},
    {"driver-assertion", {"nvCheckFailedNoLog: Check failed", ""}},
    {"gpu-held-by-nouveau", {"NVRM: ", "is already bound to "}, kPci},
    {"gpu-held-by-nouveau", {"NVRM: The NVIDIA probe routine was not called for ", ""}},
    {"copied-data-wrong", {"Invalid value when checking the pattern at ", ""}},  // nvbandwidth
    {"copied-data-wrong", {"^Verification error @ element ", ": val = "}},       // simpleP2P of CUDA's samples
    {"gpu-bar-unassigned", {"PCI I/O region assigned to your NVIDIA device is invalid", ""}},
    {"gpu-needs-other-module", {"installed in this system is not supported by open", ""}},
    {"gpu-needs-other-module", {"NVRM: installed in this system is not supported by open", ""}},
    {"driver-api-mismatch", {"NVRM: API mismatch: ", ""}},
    {"driver-probe-failed", {"nvidia: probe of ", " failed with error"}, kPci},
    {"driver-probe-failed", {"NVRM: The NVIDIA probe routine failed", ""}},
    {"driver-probe-failed", {"NVRM: None of the NVIDIA devices were initialized", ""}},
    {"driver-not-built", {"Module nvidia not found in directory", ""}},
    {"driver-not-built", {"could not insert 'nvidia': ", ""}},
    {"driver-not-built", {"could not insert 'nvidia_uvm': ", ""}},
    // nvidia-smi
    {"smi-error-fields", {"ERR! ", "|"}},
    {"gpu-needs-reset", {"GPU requires reset", "|"}, kPci},
    {"remap-failed", {"Remapping Failure Occurred", ": Yes"}},
    {"no-memory-errors", {"Correctable Error ", ": 0"}},
    {"no-memory-errors", {"Uncorrectable Error ", ": 0"}},
    {"rows-remapped", {"orrectable Error     ", " : "}},
    {"gpu-needs-reset", {"GPU Recovery Action ", ": Reset"}},
    {"gpu-needs-reboot", {"GPU Recovery Action ", ": Reboot"}},
    {"gpu-reduced", {"GPU Recovery Action ", ": Drain"}},
    {"gpu-recovered", {"GPU recovery action changed from ", "to 0x0 (None)"}, kPci},
    {"gpu-needs-reset", {"GPU recovery action changed from ", "to 0x1 "}, kPci},
    {"gpu-needs-reboot", {"GPU recovery action changed from ", "to 0x2 "}, kPci},
    {"gpu-reduced", {"GPU recovery action changed from ", "to 0x3 "}, kPci},
    {"gpu-reduced", {"GPU recovery action changed from ", "to 0x4 "}, kPci},
    {"fabric-in-progress", {"State  ", ": In Progress"}},
    {"slowdown-off", {"Slowdown ", ": Not Active"}},
    // the fabric manager, IMEX
    {"fabric-service-failed", {"ExecStart=/usr/bin/nv-fabricmanager", "(code=exited, status=1"}},
    {"fabric-service-failed", {"nvidia-fabricmanager.service: Failed with result", ""}},
    {"fabric-service-failed", {"nvidia-fabricmanager.service: Main process exited", ""}},
    {"fabric-not-trained", {"failed to initialize all the available NVSwitch", ""}},
    {"fabric-not-trained", {"NVLinks are not trained", ""}},
    {"fabric-not-trained", {"failed to configure all the available NVSwitches", ""}},
    {"fabric-not-trained", {"failed to enable all the NVSwitch", ""}},
    {"imex-broken", {"Connection to node ", "is broken and not recovered"}, "with ip address ", " "},
    {"imex-broken", {"[ERROR] [tid ", "Disconnected from node "}, "Disconnected from node ", " "},
    {"imex-broken", {"Domain State: DEGRADED", ""}},
    {"imex-broken", {"Domain State: DOWN", ""}},
    {"imex-channel", {"/dev/nvidia-caps-imex-channels/", "failed"}, "/dev/nvidia-caps-imex-channels/", ": "},
    // DCGM: dcgmi health, dcgmi diag, its exporters
    {"remap-failed", {" had uncorrectable memory errors and row remapping", ""}, "GPU ", " "},
    {"gpu-memory-bad", {" had uncorrectable memory errors and ", ""}, "GPU ", " "},
    {"remap-pending", {" had memory errors and row remappings are pending", ""}, "GPU ", " "},
    {"remap-failed", {" exceeded uncorrectable row remap limit", ""}, "GPU ", " "},
    {"gpu-memory-bad", {" faulty memory elements on GPU ", ""}, "on GPU ", " "},
    {"gpu-memory-bad", {" NaN-value memory elements on GPU ", ""}, "on GPU ", " "},
    {"gpu-memory-bad", {"A memory mismatch was detected on GPU ", ""}, "on GPU ", " ,"},
    {"gpu-memory-bad", {"Detected a miscompare failure in the L1 cache", ""}},
    {"gpu-memory-bad", {" volatile double-bit ECC error", "in GPU "}, "in GPU ", " ."},
    {"gpu-memory-bad", {"GPU had an uncontained error", ""}},
    {"gpu-memory-bad", {"GPU had a contained error", ""}},
    {"gpu-memory-bad", {"that a double-bit ECC error has", "on GPU "}, "on GPU ", " ."},
    {"gpu-memory-bad", {"SRAM Threshold Count exceeded on GPU ", ""}, "on GPU ", ": "},
    {"remap-pending", {"A pending retired page has been detected in GPU ", ""}, "in GPU ", " ."},
    {"gpu-memory-bad", {" or more retired pages have been detected in GPU ", ""}, "in GPU ", " ."},
    {"gpu-inforom", {"A corrupt InfoROM has been detected in GPU ", ""}, "in GPU ", " ."},
    {"gpu-inforom", {"WARNING: infoROM is corrupted at gpu ", ""}, "at gpu ", " "},
    {"gpu-fell-off", {"GPU ", " has fallen off the bus"}, "GPU ", " "},
    {"gpu-hot", {"Detected clocks event due to thermal violation in GPU ", ""}, "in GPU ", " ."},
    {"gpu-hot", {"There were thermal violations totaling ", "for GPU "}, "for GPU ", " "},
    {"pcie-replays", {" PCIe replays per minute for GPU ", ""}, "for GPU ", " :"},
    {"pcie-narrow", {" is running at PCI link width ", ""}, "GPU ", " "},
    {"pcie-narrow", {" is running at PCI link generation ", ""}, "GPU ", " "},
    {"gpu-below-test", {" only achieved a memory bandwidth of ", ""}, "GPU ", " "},
    {"gpu-below-test", {" did not reach desired stress level of ", ""}, "for GPU ", " "},
    {"gpu-below-test", {" did not reach desired power minimum", ""}, "for GPU ", " "},
    {"gpu-below-test", {" did not exceed minimum required bandwidth", ""}, "of GPU ", " "},
    {"gpu-below-test", {" exceeded maximum allowed latency", ""}, "of GPU ", " "},
    {"nvlink-down", {"'s NvLink link ", " is currently down"}, "GPU ", "'"},
    {"nvlink-down", {"Only ", " NvLinks are up out of the expected "}},
    {"nvlink-down", {"NVSwitch ", "'s NvLink "}},
    {"nvlink-down", {"'s NvLink port ", " is currently down"}},
    {"nvswitch-errors", {"Detected fatal errors on NvSwitch ", ""}, "NvSwitch ", " "},
    {"nvswitch-errors", {"Detected fatal NvSwitch SXID ", ""}},
    {"nvswitch-errors", {"detected NVSwitch fatal error", ""}},
    {"nvswitch-errors", {"etected NVLink fatal error", ""}},
    {"gpu-needs-reset", {" requires a reset to recover from a fault", ""}, "GPU ", " "},
    {"gpu-needs-reboot", {" fault may have left the OS in an inconsistent state", ""}, "GPU ", " "},
    {"gpu-reduced", {" requires peer-to-peer traffic to be quiesced", ""}, "GPU ", " "},
    {"gpu-reduced", {" operating at reduced capacity due to a fault", ""}, "GPU ", " "},
    {"dcgm-unreachable", {"unable to establish a connection to the specified host", ""}},
    {"dcgm-unreachable", {"Unable to connect to host engine", ""}},
    {"dcgm-unreachable", {"Host engine connection invalid/disconnected", ""}},
    // AMD's driver and tools
    {"amd-queues-stuck", {"amdgpu: ", "qcm fence wait loop timeout"}, kPci},
    {"amd-queues-stuck", {"The cp might be in an unrecoverable state", ""}, kPci},
    {"amd-queues-stuck", {"amdgpu: ", "Failed to evict process queues"}, kPci},
    {"amd-queues-stuck", {"amdgpu: ", "failed to remove hardware queue from MES"}, kPci},
    {"amd-queues-stuck", {"amdgpu: ", "GPU hang detected"}, kPci},
    {"amd-pages-exhausted", {"RAS records:", "exceed threshold:"}, kPci},
    {"amd-firmware-silent", {"SMU: I'm not done with your ", ""}, kPci},
    {"amd-firmware-silent", {"Msg issuing pre-check failed and SMU may be not in the right state", ""}, kPci},
    {"amd-driver-missing", {"Driver not initialized (amdgpu not found in modules)", ""}},
    {"amd-driver-missing", {"ROCk module is NOT loaded", ""}},
    {"amd-no-access", {"Unable to open /dev/kfd read-write", ""}},
    // drivers of network adapters
    {"module-hot", {"Port module event[error]", "High Temperature"}, kPci},
    {"cable-bad", {"Port module event[error]", ""}, kPci},
    {"cable-bad", {"Port module event: ", "Cable error"}, kPci},
    {"adapter-fatal", {"mlx5_core", "Fatal error "}, kPci},
    {"adapter-fatal", {"Health issue observed", "ERROR"}, kPci},
    {"adapter-fatal", {"Health issue observed", "CRITICAL"}, kPci},
    {"adapter-fatal", {"Health issue observed", "ALERT"}, kPci},
    {"adapter-fatal", {"Health issue observed", "EMERGENCY"}, kPci},
    {"adapter-fatal", {"mlx5_core", "health recovery flow aborted"}, kPci},
    {"adapter-fatal", {"mlx5_core", "handling bad device here"}, kPci},
    {"adapter-fatal", {"mlx5_core", "device's health compromised"}, kPci},
    {"adapter-fatal", {"mlx5_core", "health recovery failed"}, kPci},
    {"adapter-fatal", {"mlx4_core", "Internal error detected"}, kPci},
    {"adapter-fatal", {"mlx4_core", "device is going to be reset"}, kPci},
    {"adapter-fatal", {"bnxt_en", "starting fatal error recovery"}, kPci},
    {"adapter-fatal", {"bnxt_en", "Firmware not responding"}, kPci},
    {"adapter-fatal", {"ionic", "FW heartbeat stalled"}, kPci},
    {"adapter-fatal", {"ionic", "FW down"}, kPci},
    {"adapter-fatal", {"ice ", "Detected MDD event"}, kPci},
    {"adapter-fatal", {"EMP reset detected", ""}, kPci},
    {"adapter-command", {"mlx5_core", "timeout. Will cause a leak of a command resource"}, kPci},
    {"adapter-command", {"bnxt_en", "Error (timeout: "}, kPci},
    {"adapter-command", {"QPLIB: cmdq", "timedout"}, kPci},
    {"adapter-command", {"efa ", "Wait for completion (polling) timeout"}, kPci},
    {"adapter-command", {"ena ", "Wait for completion (polling) timeout"}, kPci},
    {"adapter-command", {"The device sent a completion but the driver didn't receive", ""}, kPci},
    {"adapter-command", {"hns3 ", "cmdq reset"}, kPci},
    {"adapter-queue-stuck", {"TX timeout detected", ""}, kPci},
    {"adapter-queue-stuck", {"TX timeout on queue", ""}, kPci},
    {"adapter-queue-stuck", {"TX timeout for queue", ""}, kPci},
    {"adapter-queue-stuck", {"tx_timeout: ", "VSI_"}, kPci},
    {"adapter-queue-stuck", {"NETDEV WATCHDOG: ", "transmit queue "}, "NETDEV WATCHDOG: ", " ("},
    {"adapter-reset", {"hns3 ", "Reset requested"}, kPci},
    {"adapter-reset", {"ena ", "Keep alive watchdog timeout"}, kPci},
    {"adapter-reset", {"ena ", "Trigger reset is on"}, kPci},
    {"adapter-power", {"Detected insufficient power on the PCIe slot", ""}, kPci},
    {"adapter-pci-error", {"mlx5_pci_err_detected", ""}, kPci},
    {"adapter-pci-error", {"mlx5_error_sw_reset", ""}, kPci},
    {"rdma-event", {"irdma ", "abnormal ae_id"}},
    {"port-misconfigured", {"Possible mis-configuration of the Ethernet port detected", ""}, kPci},
    // perftest, rdma-core, infiniband-diags, OpenSM, ethtool
    {"rdma-retries", {"Failed status 12: wr_id ", ""}},
    {"rdma-retries", {"Failed status transport retry counter exceeded", ""}},
    {"rdma-retries", {"Failed status RNR retry counter exceeded", ""}},
    {"rdma-retries", {"Completion with error at client", ""}},
    {"rdma-retries", {"Completion with error at server", ""}},
    {"rdma-retries", {"send completion failed with status ", ""}},
    {"no-rdma-device", {"No IB devices found", ""}},
    {"no-rdma-device", {"No RDMA devices were detected", ""}},
    {"no-rdma-device", {"Did not detect devices", ""}},
    {"no-rdma-device", {"IB device ", " not found"}},
    {"no-rdma-device", {"IB device ", " wasn't found"}},
    {"no-rdma-device", {"Failed to get IB devices list: ", ""}},
    {"rdma-connect", {"Failed to modify QP", " to RTR"}},
    {"rdma-connect", {"Invalid GID index ", " for port "}},
    {"rdma-connect", {"Failed to modify QP", " to RTS"}},
    {"rdma-connect", {"Unable to Connect the HCA's through the link", ""}},
    {"rdma-connect", {"Couldn't connect to remote QP", ""}},
    {"rdma-address", {"RDMA_CM_EVENT_ADDR_ERROR", ""}},
    {"rdma-address", {"RDMA_CM_EVENT_ROUTE_ERROR", ""}},
    {"rdma-address", {"RDMA_CM_EVENT_UNREACHABLE", ""}},
    {"rdma-address", {"rdma_resolve_addr failed", ""}},
    {"rdma-address", {"rdma_resolve_route failed", ""}},
    {"rdma-rejected", {"RDMA_CM_EVENT_REJECTED", ""}},
    {"rdma-rejected", {"RDMA_CM_EVENT_CONNECT_ERROR", ""}},
    {"fabric-no-port", {"can't open UMAD port", ""}},
    {"fabric-no-port", {"an't open SMI UMAD port", ""}},
    {"fabric-no-port", {"an't open GSI UMAD port", ""}},
    {"fabric-no-answer", {"_do_madrpc failed", ""}},
    {"fabric-no-answer", {"_do_madrpc: recv failed", ""}},
    {"fabric-no-answer", {"No SM/SA found on port ", ""}},
    {"port-counters", {" [SymbolErrorCounter == ", ""}, "GUID ", ":"},
    {"port-counters", {" [LinkErrorRecoveryCounter == ", ""}, "GUID ", ":"},
    {"port-counters", {" [LinkDownedCounter == ", ""}, "GUID ", ":"},
    {"port-counters", {" [PortRcvErrors == ", ""}, "GUID ", ":"},
    {"port-counters", {" [LocalLinkIntegrityErrors == ", ""}, "GUID ", ":"},
    {"subnet-sweep", {"MAD completed in error (IB_TIMEOUT)", ""}},
    {"subnet-sweep", {"Received MAD with error status = ", ""}},
    {"no-carrier", {"Link detected: no", ""}},
    {"conntrack-full", {"nf_conntrack: table full, dropping packet", ""}},
    {"conntrack-full", {"nf_conntrack: ", "table full, dropping packet"}},
    {"neighbor-table-full", {": neighbor table overflow", ""}},
    {"neighbor-table-full", {"eighbour table overflow", ""}},
    // the kernel
    {"host-memory-bad", {"Uncorrected hardware memory error in user-access", ""}},
    {"host-memory-bad", {"due to hardware memory corruption", "Memory failure: "}},
    {"host-memory-bad", {"UE memory read error on ", "EDAC "}},
    {"machine-check", {"[Hardware Error]: ", "Machine Check Exception: "}},
    {"machine-check", {"Kernel panic - not syncing: Fatal machine check", ""}},
    {"kernel-panic", {"Kernel panic - not syncing", ""}},
    {"kernel-bug", {"BUG: unable to handle ", ""}},
    {"kernel-bug", {"BUG: kernel NULL pointer dereference", ""}},
    {"kernel-bug", {"general protection fault, probably for non-canonical address", ""}},
    {"cpu-stalled", {"detected hard LOCKUP on cpu", ""}},
    {"cpu-stalled", {"detected stalls on CPUs/tasks", ""}},
    {"cpu-stalled", {"self-detected stall on CPU", ""}},
    {"device-lost", {"config space inaccessible", "an't change power state"}, kPci},
    {"device-lost", {"Unable to change power state from D3cold to D0, device inaccessible", ""}, kPci},
    {"host-too-hot", {"critical temperature reached", ""}},
    {"kernel-memory-short", {"page allocation failure: order:", ""}},
    {"kernel-memory-short", {"TCP: out of memory -- consider tuning tcp_mem", ""}},
    {"kernel-memory-short", {"Out of socket memory", ""}},
    {"adapter-queue-stuck", {"transmit timeout: latency ", ""}},
    {"rdma-event", {"dump error cqe", "mlx5"}, kPci},
    {"local-disk", {"critical medium error, dev ", ""}, ", dev ", ", "},
    {"local-disk", {"critical target error, dev ", ""}, ", dev ", ", "},
    {"disk-retried", {"nvme nvme", "timeout, completion polled"}},
    {"local-disk", {"nvme nvme", "timeout, reset controller"}, "nvme ", ":"},
    {"local-disk", {"nvme nvme", "Removing after probe failure"}, "nvme ", ":"},
    {"local-disk", {"nvme nvme", "Device not ready; aborting"}, "nvme ", ":"},
    {"local-disk", {"nvme nvme", "Disabling device after reset failure"}, "nvme ", ":"},
    {"local-disk", {"nvme nvme", "controller is down; will reset"}, "nvme ", ":"},
    {"local-disk", {"EXT4-fs error (device ", ""}, "(device ", ")"},
    {"local-disk", {"EXT4-fs (", "Remounting filesystem read-only"}, "EXT4-fs (", ")"},
    {"local-disk", {"Aborting journal on device ", ""}, "on device ", " ."},
    {"local-disk", {"XFS (", "Shutting down filesystem"}, "XFS (", ")"},
    {"local-disk", {"XFS (", "Filesystem has been shut down"}, "XFS (", ")"},
    {"local-disk", {"XFS (", "metadata I/O error"}, "XFS (", ")"},
    {"local-disk", {"Buffer I/O error on dev ", ""}, "on dev ", ", "},
    {"local-disk", {"I/O error, dev ", ", sector "}, ", dev ", ", "},
    {"local-disk", {"md/raid", "Disk failure on "}, "Disk failure on ", ", "},
    {"local-disk", {"no available path - failing I/O", ""}},
    {"local-disk", {"BTRFS", "forced readonly"}, "(device ", ")"},
    {"local-disk", {"BTRFS error (device ", "errs: wr "}, "(device ", ")"},
    {"file-handles", {"VFS: file-max limit ", " reached"}},
    {"process-limit", {"cgroup: fork rejected by pids controller in ", ""}},
    {"process-limit", {"libgomp: Thread creation failed", ""}},
    {"process-limit", {"fork: retry: Resource temporarily unavailable", ""}},
    {"process-limit", {"fork: Resource temporarily unavailable", ""}},
    // file systems
    {"storage-slow", {"ptlrpc_expire_one_request", "Request sent has timed out"}},
    {"storage-slow", {"ptlrpc_expire_one_request", "Request sent has failed"}},
    {"storage-slow", {"LNetError: ", "Timed out tx"}},
    {"storage-slow", {"LNetError: ", "Timed out RDMA with "}, "Timed out RDMA with ", " "},
    {"storage-slow", {"LNet: ", "Timed out tx"}},
    {"storage-slow", {"beegfs: ", "Receive timed out from "}, "Receive timed out from ", "["},
    {"storage-slow", {"beegfs: ", "Unable to connect to "}},
    {"storage-slow", {"beegfs: ", "Communication error"}},
    {"storage-slow", {"BeeGFS: ", "Communication error"}},
    {"storage-slow", {"weka", " is stuck"}},
    {"storage-slow", {"WEKA", "hung for "}},
    {"storage-slow", {"CIFS: ", "has not responded in "}},
    {"storage-expelled", {"This node is being expelled from the cluster", ""}},
    {"storage-expelled", {"Lost membership in cluster", ""}},
    {"storage-lock-lost", {"nfs4_reclaim_open_state: Lock reclaim failed", ""}},
    {"storage-lock-lost", {"NFS: ", "lost lock"}},
    {"mount-failed", {"automount[", "no hosts available"}},
    {"mount-failed", {"automount[", "lookup failed for "}, "lookup failed for ", " "},
    {"mount-failed", {"automount[", "mount failure"}},
    {"mount-failed", {"mount.nfs: access denied by server", ""}, "while mounting ", " "},
    {"mount-failed", {"^mount.nfs: Connection timed out", ""}},
    {"mount-failed", {"^mount.nfs: No route to host", ""}},
    {"mount-failed", {"^mount.nfs: Connection refused", ""}},
    {"mount-failed", {"^mount.nfs: Stale file handle", ""}},
    {"mount-failed", {"^mount.nfs: Failed to resolve server", ""}},
    {"mount-failed", {"mount.lustre: mount ", " failed: "}},
    {"storage-back", {"Connection restored to ", ""}},
    // Kubernetes
    {"pod-started", {"Started container ", ""}},
    {"pod-assigned", {"Successfully assigned ", " to "}},
    {"queue-admitted", {"Admitted by ClusterQueue ", ""}},
    {"queue-admitted", {"Quota reserved in ClusterQueue ", ""}},
    {"pod-started", {" Started ", "Container started"}},
    {"pod-volume", {"FailedMount", "MountVolume.SetUp failed for volume "}, "for volume \"", "\""},
    {"pod-volume", {"FailedMount", "Unable to attach or mount volumes"}},
    {"pod-volume", {"FailedAttachVolume", ""}},
    {"pod-volume", {"FailedMapVolume", ""}},
    {"pod-sandbox", {"FailedCreatePodSandBox", ""}},
    {"pod-sandbox", {"Failed to create pod sandbox: ", ""}},
    {"pod-image", {"Failed to pull image \"", ""}, "Failed to pull image \"", "\""},
    {"pod-image", {"Error: ErrImagePull", ""}},
    {"pod-image", {"Error: ImagePullBackOff", ""}},
    {"pod-image", {"Back-off pulling image \"", ""}, "pulling image \"", "\""},
    {"pod-image", {"Error: InvalidImageName", ""}},
    {"pod-config", {"kubelet", "Error: secret \""}},
    {"pod-config", {"kubelet", "Error: configmap \""}},
    {"pod-config", {"CreateContainerConfigError", ""}},
    {"pod-image", {"is waiting to start: trying and failing to pull image", ""}},
    {"pod-waits", {"is waiting to start: ContainerCreating", ""}},
    {"pod-waits", {"is waiting to start: PodInitializing", ""}},
    {"kubelet-unreachable", {"Error from server: Get \"https://", "/containerLogs/"}},
    {"pod-devices", {"Allocate failed due to ", "which is unexpected"}},
    {"pod-devices", {"UnexpectedAdmissionError", ""}},
    {"pod-node-lost", {"which was running pod ", "is unresponsive"}, "Node ", " "},
    {"pod-node-lost", {"Reason: ", "NodeLost"}},
    {"node-not-ready", {"status is now: NodeNotReady", ""}, "Node ", " "},
    {"node-not-ready", {"KubeletNotReady", "Ready "}},
    {"node-not-ready", {"Kubelet stopped posting node status", ""}},
    {"pod-noise", {"Nameserver limits were exceeded", ""}},
    {"pod-noise", {"Nameserver limits exceeded", ""}},
    {"pod-noise", {"Search Line limits were exceeded", ""}},
    {"pod-noise", {"CheckLimitsForResolvConf", ""}},
    {"pod-noise", {"Unable to retrieve some image pull secrets", ""}},
    {"pod-noise", {"InvalidDiskCapacity", ""}},
    {"node-pressure", {"EvictionThresholdMet", ""}},
    {"node-pressure", {"FreeDiskSpaceFailed", ""}},
    {"node-oom", {"System OOM encountered, victim process: ", ""}},
    {"node-rebooted", {" has been rebooted, boot id: ", ""}, "Node ", " "},
    {"pod-devices", {"TopologyAffinityError", ""}},
    {"pod-devices", {"FailedPrepareDynamicResources", ""}},
    {"pod-devices", {"Failed to prepare dynamic resources", ""}},
    {"pod-node-lost", {"ContainerStatusUnknown", ""}},
    {"liveness-kill", {"failed liveness probe, will be restarted", ""}},
    {"liveness-kill", {"failed startup probe, will be restarted", ""}},
    {"probe-failed", {"Readiness probe failed: ", ""}},
    {"probe-failed", {"Liveness probe failed: ", ""}},
    {"probe-failed", {"Startup probe failed: ", ""}},
    {"controller-gave-up", {"JobFailed ", "is failed because "}, "Job ", " "},
    {"controller-gave-up", {"BackoffLimitExceeded", ""}},
    {"controller-gave-up", {"Job has reached the specified backoff limit", ""}},
    {"controller-gave-up", {"jobset failed due to ", ""}},
    {"controller-gave-up", {"PodFailurePolicy", "Container "}},
    {"quota-waits", {"couldn't assign flavors to pod set", ""}},
    {"quota-waits", {"insufficient unused quota", ""}},
    {"quota-waits", {"insufficient quota for ", ""}},
    {"quota-waits", {"Workload no longer fits after processing another workload", ""}},
    {"queue-evicted", {"EvictedDueTo", ""}},
    {"queue-evicted", {"Exceeded the PodsReady timeout", ""}},
    {"queue-evicted", {"Preempted to accommodate a workload", ""}},
    {"gang-waits", {"tasks in gang unschedulable", ""}},
    {"gang-waits", {"FailedScheduling", "all nodes are unavailable"}},
    {"gang-waits", {"pod group is not ready, ", " minAvailable"}},
    {"gang-waits", {"Not enough valid tasks for gang-scheduling", ""}},
    {"gang-waits", {"resource in cluster is overused", ""}},
    {"gang-waits", {"queue resource quota insufficient", ""}},
    {"gpu-marked-unhealthy", {"device marked unhealthy: ", ""}, "device marked unhealthy: ", " "},
    {"gpu-marked-unhealthy", {"XidCriticalError: Xid=", ""}, " on Device=", "; "},
    {"gpu-marked-unhealthy", {"marking device as unhealthy", ""}},
    {"plugin-no-gpu", {"Incompatible strategy detected auto", ""}},
    {"plugin-no-gpu", {"did you configure the NVIDIA Container Toolkit?", ""}},
    {"plugin-no-gpu", {"No devices found. Waiting indefinitely.", ""}},
    // containers
    {"container-driver-old", {"requirement error: unsatisfied condition: ", ""}},
    {"container-no-device", {"nvidia-container-cli: device error: ", "unknown device"}, "device error: ", ":"},
    {"container-gpu-lost", {"nvidia-container-cli: detection error: nvml error: unknown error", ""}},
    {"container-gpu-lost", {"nvidia-container-cli: detection error: nvml error: gpu is lost", ""}},
    {"container-no-driver", {"nvidia-container-cli: initialization error: ", ""}},
    {"container-no-driver", {"nvidia-container-cli: detection error: ", ""}},
    {"container-no-driver", {"nvidia-container-cli: ", "error: "}},
    {"container-runtime", {"unknown or invalid runtime name: nvidia", ""}},
    {"container-runtime", {"CDI device injection failed", ""}},
    {"container-runtime", {"unresolvable CDI devices", ""}},
    {"container-image", {"[ERROR] URL http", " returned error code: "}},
    {"container-image", {"Error response from daemon: pull access denied", ""}},
    {"container-image", {"Error response from daemon: manifest ", "not found"}},
    {"container-image", {"Error response from daemon: ", "manifest unknown"}},
    {"container-daemon", {"Cannot connect to the Docker daemon at ", ""}},
    {"container-daemon", {"permission denied while trying to connect to the Docker daemon", ""}},
    {"container-space", {"[ERROR] Not enough space left in ", ""}, "left in ", " "},
    {"container-namespace", {"Failed to create user namespace", ""}},
    {"container-namespace", {"failed to create user namespace", ""}},
    {"container-namespace", {"maximum number of user namespaces exceeded", ""}},
    {"container-error", {"^Reason:       Error", ""}},
    {"container-error", {"ExitedWithCode ", "exited with code "}},
    {"container-enroot", {"error: pyxis: ", ""}},
    {"container-start", {"failed to create shim task: OCI runtime create failed", ""}},
    {"container-start", {"OCI runtime exec failed", ""}},
    {"container-start", {"container creation failed: ", ""}},
    {"container-start", {"Error response from daemon: ", ""}},
    {"container-start", {"failed to create containerd task: ", ""}},
    // Slurm
    {"slurm-memory-limit", {"exceeded memory limit (", "being killed"}},
    {"slurm-memory-limit", {"error: Exceeded job memory limit", ""}},
    {"slurm-memory-limit", {"error: Exceeded step memory limit", ""}},
    {"slurm-revoked", {"error: Job allocation ", " has been revoked"}},
    {"slurm-revoked", {"Allocation was revoked for ", "before command could be run"}},
    {"slurm-node-killed", {"Killing JobId=", " on failed node "}, "on failed node ", " "},
    {"slurm-node-killed", {"requeue JobId=", " due to failure of node "}, "of node ", " "},
    {"slurm-node-killed", {"requeue JobId=", " due to node failure"}},
    {"slurm-node-back", {"now responding", "Node "}},
    {"slurm-node-back", {"returned to service", ""}},
    {"slurm-node-down", {"not responding, setting DOWN", ""}, "error: Nodes ", " "},
    {"slurm-node-drained", {"epilog error on ", "draining the node"}, "epilog error on ", ","},
    {"slurm-node-drained", {"Prolog or job env setup failure on node ", ""}, "on node ", ","},
    {"slurm-node-drained", {"setting state DRAIN", ""}},
    {"slurm-gpus-missing", {"count reported lower than configured", ""}, "Setting node ", " "},
    {"slurm-device-missing", {"can't stat gres.conf file ", ""}},
    {"slurm-device-missing", {"Waiting for gres.conf file ", ""}},
    {"slurm-not-launched", {"aborted before step completely launched", ""}},
    {"slurm-script", {"sbatch: error: This does not look like a batch script", ""}},
    {"slurm-script", {"sbatch: error: Batch script ", ""}},
    {"slurm-script", {"Invalid directive found in batch script", ""}},
    {"slurm-plugin", {"spank: Failed to load plugin ", ""}},
    {"slurm-plugin", {"error: Failed to initialize plugin stack", ""}},
    {"slurm-plugin", {"spank: required plugin ", " failed with rc"}},
    {"slurm-multi-prog", {"of configuration file ", " is invalid"}},
    {"slurm-multi-prog", {"of configuration file ", "not executable"}},
    {"slurm-task-prolog", {"--task-prolog failed status=", ""}},
    {"slurm-task-prolog", {"TaskProlog failed status=", ""}},
    {"slurm-busy", {"Unable to allocate resources: Socket timed out", ""}},
    {"slurm-no-allocation", {"error: Unable to allocate resources: ", ""}},
    {"step-created", {"Step created for ", ""}},
    {"step-waits", {"step creation temporarily disabled, retrying", ""}},
    {"step-waits", {"step creation still disabled, retrying", ""}},
    {"slurm-output", {"Could not open stdout file ", ""}},
    {"slurm-output", {"Could not open stderr file ", ""}},
    {"slurm-task-left", {"First task exited ", "s ago"}},
    {"slurm-busy", {"slurm_load_", " error: "}},
    {"slurm-busy", {"submission failed: Socket timed out", ""}},
    {"step-node-silent", {"Communication connection failure", ""}},
    {"step-node-silent", {"Socket timed out on send/recv operation", ""}},
    {"step-node-silent", {"Zero Bytes were transmitted or received", ""}},
    {"step-binding", {"Unable to satisfy cpu bind request", ""}},
    {"step-binding", {"CPU binding outside of job step allocation", ""}},
    {"step-memory", {"Memory required by task is not available", ""}},
    {"slurm-job-unknown", {"Unable to confirm allocation for job", ""}},
    {"slurm-job-unknown", {"Expired or invalid job ", ""}},
    {"slurm-node-rebooted", {" unexpectedly rebooted", "Node "}, "Node ", " "},
    {"slurm-node-drained", {"Reason=Kill task failed", ""}},
    {"slurm-node-drained", {"Reason=Not responding", ""}},
    {"slurm-node-drained", {"Reason=Prolog error", ""}},
    {"slurm-node-drained", {"Reason=Epilog error", ""}},
    {"slurm-node-drained", {"Reason=Low RealMemory", ""}},
    {"slurm-node-drained", {"Reason=batch job complete failure", ""}},
    {"slurm-node-drained", {"Reason=NHC", ""}},
    {"script-line-ends", {"Batch script contains DOS line breaks", ""}},
    {"munge-down", {"munge", "Failed to access \"/run/munge/munge.socket"}},
    {"munge-down", {"munge", "Failed to access \"/var/run/munge/munge.socket"}},
    {"clock-differs", {"Munge decode failed: ", ""}},
    {"clock-differs", {"unge", ": Rewound credential"}},
    {"clock-differs", {"unge", ": Expired credential"}},
    {"clock-differs", {"unge", ": Invalid credential"}},
    // LSF, PBS, Grid Engine, HTCondor
    {"lsf-pending", {"Job's requirements for ", "not satisfied"}},
    {"lsf-pending", {"PENDING REASONS:", ""}},
    {"lsf-pending", {"There are no suitable hosts for the job", ""}},
    {"lsf-lost", {"TERM_ZOMBIE: ", ""}},
    {"lsf-lost", {"TERM_UNKNOWN: ", ""}},
    {"cgroup-memory", {"Cgroup memory limit exceeded: Killed process", ""}},
    {"cgroup-memory", {"Cgroup mem limit exceeded", ""}},
    {"pbs-node-lost", {"pbs_mom", "node EOF "}, "(", ")"},
    {"pbs-pending", {"comment = Not Running: ", ""}},
    {"pbs-pending", {"comment = Can Never Run: ", ""}},
    {"batch-refused", {"^qsub: ", ""}},
    {"batch-refused", {"^Unable to run job: ", ""}},
    {"batch-refused", {"Request aborted by esub", ""}},
    {"batch-refused", {"Job not submitted.", ""}},
    {"time-over", {"Pod was active on the node longer than the specified deadline", ""}},
    {"time-over", {"Job was active longer than specified deadline", ""}},
    {"time-over", {" exceeded hard wallclock time", ""}},
    {"time-over", {" exceeded soft wallclock time", ""}},
    {"memory-hold", {"exceeds job hard limit \"h_vmem\"", ""}},
    {"memory-hold", {"exceeds job master hard limit \"h_vmem\"", ""}},
    {"memory-hold", {"Job has gone over ", "memory limit of "}},
    {"memory-hold", {"memory usage exceeded request_memory", ""}},
    {"sge-error-state", {"error reason ", "error: "}},
    {"condor-lost", {"Job disconnected too long: ", ""}},
    {"condor-lost", {"Can not reconnect to ", ", rescheduling job"}},
    {"condor-back", {"Job reconnected to ", ""}},
    {"condor-evicted", {"^004 (", "Job was evicted"}},
    {"condor-held", {"012 (", "Job was held."}},
    {"condor-no-match", {"are rejected by your job's requirements", ""}},
    {"condor-no-match", {"No machines matched the jobs's constraints", ""}},
    // access
    {"ssh-dropped", {"client_loop: send disconnect: Broken pipe", ""}},
    {"ssh-dropped", {"packet_write_wait: Connection to ", "Broken pipe"}},
    {"ssh-denied", {"Permission denied (publickey", ""}},
    {"ssh-host-key", {"Host key verification failed", ""}},
    {"ssh-closed-early", {"kex_exchange_identification: ", ""}},
    {"ssh-closed-early", {"ssh_exchange_identification: ", ""}},
    {"library-too-old", {"version `GLIBC", "' not found"}},
    {"library-too-old", {"version `CXXABI", "' not found"}},
    {"ssh-timeout", {"pdsh@", "connect: timed out"}, ": ", ":"},
    {"ssh-timeout", {"pdsh@", "command timeout"}, ": ", ":"},
    {"ssh-banned", {"Access denied by pam_slurm_adopt", ""}},
    {"ssh-banned", {"Access denied: user ", "has no active jobs"}},
    {"module-unknown", {"Lmod has detected the following error:", ""}},
    {"module-unknown", {"ERROR: Unable to locate a modulefile for '", ""}, "modulefile for '", "'"},
};

bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

// "0000:5e:00.0", "00000000:9B:00.0", "0000:5e:00"
std::string_view FirstPciAddress(std::string_view line) {
  const auto is_hex = [&](size_t at) { return at < line.size() && IsHexDigit(line[at]); };
  for (size_t colon = line.find(':'); colon != std::string_view::npos; colon = line.find(':', colon + 1)) {
    size_t begin = colon;
    while (begin > 0 && IsHexDigit(line[begin - 1])) --begin;
    const size_t domain = colon - begin;
    if ((domain != 4 && domain != 8) || !is_hex(colon + 1) || !is_hex(colon + 2) || !is_hex(colon + 4) ||
        !is_hex(colon + 5) || line[colon + 3] != ':')
      continue;
    size_t end = colon + 6;
    if (end + 1 < line.size() && line[end] == '.' && IsDigit(line[end + 1])) end += 2;
    return line.substr(begin, end - begin);
  }
  return {};
}

// Four characters as a number of 16 bits: few positions of a text have one that a message begins with.
constexpr size_t kKey = 4;

uint16_t KeyOf(const char* text) {
  uint32_t word = 0;
  for (size_t i = 0; i < kKey; ++i) word = word << 8 | static_cast<unsigned char>(text[i]);
  return static_cast<uint16_t>((word * 0x9e3779b1u) >> 16);
}

// The longer of the two is the rarer one.
std::string_view AnchorOf(const SiteWords& words) {
  std::string_view first = words.all[0];
  if (first.starts_with('^')) first.remove_prefix(1);
  return words.all[1].size() > first.size() ? words.all[1] : first;
}

struct SiteIndex {
  std::bitset<65536> present;
  std::unordered_multimap<uint16_t, uint16_t> by_key;
};

const SiteIndex& Index() {
  static const SiteIndex kIndex = [] {
    SiteIndex index;
    for (size_t i = 0; i < std::size(kSiteWords); ++i) {
      const uint16_t key = KeyOf(AnchorOf(kSiteWords[i]).data());
      index.present.set(key);
      index.by_key.emplace(key, static_cast<uint16_t>(i));
    }
    return index;
  }();
  return kIndex;
}

bool Fits(const SiteWords& words, std::string_view line) {
  const bool first =
      words.all[0].starts_with('^') ? Trim(line).starts_with(words.all[0].substr(1)) : Contains(line, words.all[0]);
  return first && (words.all[1].empty() || Contains(line, words.all[1]));
}

std::string SubjectIn(const SiteWords& words, std::string_view line) {
  constexpr size_t kLongest = 64;
  if (words.from == kPci) return std::string(FirstPciAddress(line));
  if (words.from.empty()) return "";
  const auto rest = After(line, words.from);
  if (!rest) return "";
  const std::string_view subject = Trim(rest->substr(0, rest->find_first_of(words.to)));
  return subject.size() > kLongest ? "" : std::string(subject);
}

}  // namespace

std::span<const SiteMessage> AllSiteMessages() { return kSiteMessages; }

const SiteMessage* FindSiteMessage(std::string_view id) {
  const auto* found = std::find_if(std::begin(kSiteMessages), std::end(kSiteMessages),
                                   [&](const SiteMessage& one) { return one.id == id; });
  return found == std::end(kSiteMessages) ? nullptr : found;
}

// blaunch: task 3: could not start the task: Slave LIM configuration is not ready yet
// pbsdsh: error from tm_poll() 17002: spawn failed on node gpu-b12
// flux-shell[2]: FATAL: doom: rank 2 on host gpu-b12: failed to launch: No such file or directory
// Whatever launcher says so: a word for a start beside one for a failure, and a task or a node that it is about.
static SiteMatch ClassifyRefusedStart(std::string_view line) {
  static constexpr std::string_view kStarts[] = {"start", "launch", "spawn"};
  static constexpr std::string_view kFails[] = {"fail", "could not ", "cannot ", "unable to ", "refused to "};
  line = line.substr(0, 400);
  if (!ContainsAny(line, {"start", "launch", "spawn"}) || !ContainsAny(line, {": ", "]: "})) return {};
  std::string low = LowerCase(line);
  constexpr size_t kBeside = 12;
  bool beside = false;
  for (const std::string_view start : kStarts)
    for (size_t at = low.find(start); at != std::string::npos && !beside; at = low.find(start, at + 1)) {
      const size_t from = at < kBeside ? 0 : at - kBeside;
      const std::string_view around = std::string_view(low).substr(from, at - from + start.size() + kBeside);
      beside = std::any_of(std::begin(kFails), std::end(kFails),
                           [&](std::string_view word) { return Contains(around, word); });
    }
  if (!beside || ContainsAny(low, {"retry", "will try", "trying again"})) return {};
  std::string_view node;
  for (const std::string_view words : {" on node ", " on host "})
    if (const auto rest = After(line, words)) node = rest->substr(0, rest->find_first_of(" :,;"));
  if (node.empty() && !ContainsAny(low, {" the task", " task "})) return {};
  return {FindSiteMessage("task-not-started"), node.size() > 64 ? "" : std::string(node)};
}

// "cuda:0 -> cuda:2", "GPU0 to GPU1": two devices and the way between them.
static bool NamesPairOfGpus(std::string_view lower) {
  for (const std::string_view name : {"cuda:", "gpu", "device "})
    for (size_t at = lower.find(name); at != std::string_view::npos; at = lower.find(name, at + 1)) {
      std::string_view rest = lower.substr(at + name.size());
      SkipBlanks(rest);
      int64_t first = 0, second = 0;
      if (!TakeNumber(rest, &first)) continue;
      SkipBlanks(rest);
      if (!TakeLiteral(rest, "->") && !TakeLiteral(rest, "to ") && !TakeLiteral(rest, "and ")) continue;
      SkipBlanks(rest);
      if (TakeLiteral(rest, name) && (SkipBlanks(rest), TakeNumber(rest, &second)) && first != second) return true;
    }
  return false;
}

// A check of somebody's own: "cuda:0 -> cuda:2: p2p test failed, values differ". Shapes and versions that differ are
// another matter.
static bool TellsWrongCopy(std::string_view line) {
  const std::string lower = LowerCase(line);
  if (!ContainsAny(lower, {"differ", "mismatch", "wrong", "incorrect", "corrupt", "not equal"})) return false;
  return ContainsAny(lower, {"value", "data", "element", "content", "checksum", "pattern"}) &&
         !ContainsAny(lower,
                      {"shape", "size", "type", "version", "rank", "no mismatch", "no error", "not differ", " 0 wrong",
                       " 0 mismatch", " 0 differ", " 0 incorrect", "data loader", "dataloader", "dataset"}) &&
         (ContainsAny(lower, {"p2p", "peer-to-peer", "peer to peer", "device-to-device", "device to device"}) ||
          (ContainsAny(lower, {"copy", "copied", "transfer"}) && NamesPairOfGpus(lower)));
}

SiteMatch ClassifySiteMessage(std::string_view line) {
  constexpr size_t kLongestLine = 2000;
  line = line.substr(0, kLongestLine);
  const SiteWords* best = nullptr;
  for (size_t at = 0; at + kKey <= line.size(); ++at) {
    const uint16_t key = KeyOf(line.data() + at);
    if (!Index().present[key]) continue;
    for (auto [one, end] = Index().by_key.equal_range(key); one != end; ++one) {
      const SiteWords* words = &kSiteWords[one->second];
      if ((best && words >= best) || !line.substr(at).starts_with(AnchorOf(*words)) || !Fits(*words, line)) continue;
      best = words;
    }
  }
  if (best) return {FindSiteMessage(best->id), SubjectIn(*best, line)};
  return TellsWrongCopy(line) ? SiteMatch{FindSiteMessage("copied-data-wrong"), ""} : ClassifyRefusedStart(line);
}

// "{a GPU|GPU %} has ...": the first where no subject is told, else the second with it.
std::string SiteSentence(const SiteMessage& message, std::string_view subject) {
  std::string sentence(message.sentence);
  const size_t open = sentence.find('{'), bar = sentence.find('|', open), close = sentence.find('}', bar);
  if (open == std::string::npos || bar == std::string::npos || close == std::string::npos) return sentence;
  std::string with = sentence.substr(bar + 1, close - bar - 1);
  if (const size_t at = with.find('%'); at != std::string::npos) with.replace(at, 1, subject);
  return sentence.replace(open, close + 1 - open, subject.empty() ? sentence.substr(open + 1, bar - open - 1) : with);
}

}  // namespace tacet
