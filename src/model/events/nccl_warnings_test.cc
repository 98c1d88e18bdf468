// SPDX-License-Identifier: Apache-2.0
#include "model/events/nccl_warnings.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "model/events/nccl_warning_table.h"

namespace tacet {
namespace {

struct Case {
  std::string_view message;
  std::string_view id;
};

TEST(NcclWarnings, KnowsTheSetupTexts) {
  for (const Case& c : {
           Case{"Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60", "duplicate-gpu"},
           Case{"Multiple Ranks are using the same GPU/Partition. Set NCCL_MULTI_RANK_GPU_ENABLE=1 to enable",
                "duplicate-gpu"},
           Case{"Mismatched NCCL version detected : rank 1 version 22809 rank 0 version 22707", "version-mismatch"},
           Case{"Bootstrap Root : mismatch in info from procs, nranks 8 vs 4, nroots 1 vs 1",
                "bootstrap-nranks-mismatch"},
           Case{"Bootstrap Root : mismatch in rank count from procs 8 : 4", "bootstrap-nranks-mismatch"},
           Case{"Bootstrap Root : rank 3 of 8 ranks has already checked in", "bootstrap-duplicate-rank"},
           Case{"Invalid rank requested : 9/8", "invalid-init-argument"},
           Case{"Invalid NCCL_COMM_ID, please use format: <ipv4>:<port>", "invalid-comm-id"},
           Case{"Detected mixed local Net device counts across ranks (min 1, max 2). Set NCCL_IGNORE_NET_MISMATCH=1 to "
                "continue.",
                "net-count-mismatch"},
           Case{"Broadcast : invalid root 9 (root should be in the 0..7 range)", "invalid-argument"},
           Case{"AllReduce : sendbuff allocated on device 0 mismatchs with NCCL device 1", "invalid-buffer"},
           Case{"Error: corrupted comm object detected", "comm-corrupted"},
           Case{"comm 0x55 has already been destroyed", "comm-corrupted"},
           Case{"Attempt to use communicator before the previous operation returned ncclSuccess", "comm-busy"},
           Case{"Trying to send to self without a matching recv", "p2p-self-unmatched"},
           Case{"ncclGroupEnd: not in a group call.", "group-misuse"},
           Case{"Fatal: host threads racing to launch NCCL on same device.", "launch-race"},
           Case{"No algorithm/protocol available for function AllReduce with datatype ncclFloat32.", "no-algorithm"},
           Case{"Error : no algorithm/protocol available", "no-algorithm"},
           Case{"nvmlDeviceGetHandleByPciBusId() failed: Not Found", "nvml-device-not-found"},
           Case{"nvmlInit_v2() failed: Driver/library version mismatch", "nvml-version-mismatch"},
           Case{"nvmlDeviceGetNvLinkState() failed: Unknown Error", "nvml-failed"},
           Case{"Unrecognized element token \"Rong\" when parsing \"Rong\"", "bad-algorithm-list"},
           Case{"FP8 reduction support begins with sm90 capable devices.", "fp8-unsupported"},
           Case{"AllReduce: communicator was revoked", "comm-revoked"},
           Case{"CUDA Driver version found is 12010. Minimum requirement is 12020", "driver-too-old"},
           Case{"Coll AllReduce size 4096 symmetric registration check failed on rank 3: sendReg 1",
                "symmetric-mismatch"},
       })
    EXPECT_EQ(ClassifyWarning(c.message).id, c.id) << c.message;
}

TEST(NcclWarnings, KnowsTheSocketTexts) {
  for (const Case& c : {
           Case{"Bootstrap : no socket interface found", "socket-no-interface"},
           Case{"NET/Socket : no interface found", "socket-no-interface"},
           Case{"NET/IB : No IP interface found.", "socket-no-interface"},
           Case{"no device found matching =ib7, verify NCCL_OOB_NET_IFNAME", "oob-no-device"},
           Case{"socketPollConnect: connect to 10.0.0.1<4> returned Connection refused, exceeded error retry count "
                "after 35 attempts",
                "connect-failed"},
           Case{"socketStartConnect: Connect to 10.0.0.1<4> failed : No route to host", "connect-failed"},
           Case{"Net : Connect to 10.0.0.1<4> failed : Connection refused", "connect-failed"},
           Case{"Connect to 10.0.0.1<4> failed : Connection refused", "connect-failed"},
           Case{"socketProgress: Connection closed by remote peer 10.0.0.1<4>", "connection-closed"},
           Case{"Net : Connection closed by remote peer", "connection-closed"},
           Case{"socketProgressOpt: Call to recv from 10.0.0.1<4> failed : Connection reset by peer",
                "connection-reset"},
           Case{"ncclOsSocketProgressOpt: Call to send to 10.0.0.1<4> failed : Broken pipe", "connection-reset"},
           Case{"Call to recv failed : Connection reset by peer", "connection-reset"},
           Case{"socketFinalizeAccept: wrong magic 1 != 2", "socket-stranger"},
           Case{"socketFinalizeAccept: wrong type 3 != 4", "network-type-mismatch"},
           Case{"Message truncated : received 1195725856 bytes instead of 256", "bootstrap-stranger"},
           Case{"Bootstrap Root : mismatch in rank count from procs 8 : 542393671", "bootstrap-stranger"},
           Case{"Bootstrap Root : mismatch in rank count from procs 8 : 4", "bootstrap-nranks-mismatch"},
           Case{"Call to bind failed : Address already in use", "port-in-use"},
           Case{"Cuda failure 802 'system not yet initialized'", "fabric-not-ready"},
           Case{"Cuda failure 217 'peer access is not supported between these two devices'", "p2p-peering-failed"},
           Case{"Cuda failure 704 'peer access is already enabled'", "cuda-failure"},
           Case{"hipIpcGetMemHandle failed : invalid argument", "ipc-export-failed"},
           Case{"hipIpcOpenMemHandle failed : invalid argument", "p2p-peering-failed"},
           Case{"Message truncated : received 1024 bytes instead of 256", "bootstrap-message-truncated"},
           Case{"Net : error encountered when getting address info : Name or service not known",
                "address-lookup-failed"},
           Case{"[Proxy Service 3] Failed to execute operation Connect from rank 3, retcode 6", "proxy-failed"},
           Case{"[Proxy Service 3] Failed to execute operation Connect from rank 3, retcode 3",
                "proxy-operation-failed"},
           Case{"[Service thread] Could not receive type from localRank 1, res=3, closed=1", "proxy-failed"},
           Case{"[Proxy service] Too many connections (64 max)", "proxy-too-many-connections"},
           Case{"UDS: Sending data over socket /tmp/x failed : Connection refused (111)", "uds-failed"},
           Case{"Call to socket failed: Too many open files", "too-many-files"},
           Case{"socketTryAccept: Accept failed: Too many open files", "too-many-files"},
       })
    EXPECT_EQ(ClassifyWarning(c.message).id, c.id) << c.message;
}

TEST(NcclWarnings, KnowsTheNetworkTexts) {
  for (const Case& c : {
           Case{"NET/Socket : peer 10.0.0.1<4> message truncated : receiving 524288 bytes instead of 65536. If you",
                "message-truncated"},
           Case{"NET/Socket : message truncated : receiving 9 bytes instead of 8", "message-truncated"},
           Case{"NET/IB : req 0/1 tag 3 peer 10.0.0.1<4> collective mismatch error, local size 4 remote size 8",
                "ib-size-mismatch"},
           Case{"NET/IB : Got completion with error 12, opcode 0, len 32, vendor err 129", "ib-completion-error"},
           Case{"NET/IB : Got completion from peer 10.0.0.1<4> with error 5, opcode 0, len 0, vendor err 249",
                "ib-completion-error"},
           Case{"NET/IB: Got completion from peer 10.0.0.1<4> with status=12 opcode=0 len=0 vendor err 129 (Send)",
                "ib-completion-error"},
           Case{"NET/IB: Got completion from peer 10.0.0.1<4> with status=IBV_WC_LOC_PROT_ERR(4) opcode=IBV_WC_SEND(0)",
                "ib-completion-error"},
           Case{"NET/IB : mlx5_0:1 async fatal event: port error", "ib-async-fatal"},
           Case{"NET/IB : Got async event : port error", "ib-async-fatal"},
           Case{"NET/IB : mlx5_4:1 Got async error event: port error", "ib-async-fatal"},
           Case{"NET/IB : mlx5_4:1 Got async error event: port active", "ib-port-active"},
           Case{"NET/IB : mlx5_0:1 Got non-fatal async event: port active(9)", "ib-async-event"},
           Case{"NET/IB : mlx5_0:1 GID table changed", "ib-gid-changed"},
           Case{"communicator encountered a fatal error (detected in ncclAllReduce)", "comm-fatal-error"},
           Case{"Call to ibv_modify_qp failed with 110 Connection timed out, on dev mlx5_0:1, curr state INIT",
                "ib-modify-qp-failed"},
           Case{"Call to ibv_reg_mr failed with error Cannot allocate memory", "ib-register-failed"},
           Case{"NET/IB : Attempted to connect incompatible devices: [0]mlx5_0:1/IB and [1]mlx5_1:1/RoCE.",
                "ib-link-types-mixed"},
           Case{"NET/IB : Unable to open device mlx5_0", "ib-open-failed"},
           Case{"NET/IB : Unable to register memory: Cannot allocate memory", "ib-register-failed"},
           Case{"NET/OFI Unable to find a protocol that worked.  Failing initialization.", "net-plugin-not-started"},
           Case{"Call to ibv_open_device failed", "ib-open-failed"},
           Case{"Call to ibv_create_qp failed with error Invalid argument", "ib-queue-failed"},
           Case{"Call to ibv_alloc_pd failed", "ib-queue-failed"},
           Case{"Broadcast : invalid root 0 (root should be in the 0..-1 range)", "comm-corrupted"},
           Case{"Broadcast : invalid root 9 (root should be in the 0..7 range)", "invalid-argument"},
           Case{"NET/IB: Device 0 marked as failed. Initiating recovery? Yes (send comm=0x7f)", "ib-failover"},
           Case{"Could not find real path of /sys/class/infiniband/mlx5_0/device", "sysfs-missing"},
       })
    EXPECT_EQ(ClassifyWarning(c.message).id, c.id) << c.message;
}

TEST(NcclWarnings, KnowsTheGpuTexts) {
  for (const Case& c : {
           Case{"Cuda failure 'out of memory'", "cuda-failure"},
           Case{"Cuda failure 700 'an illegal memory access was encountered'", "cuda-failure"},
           Case{"Failed to CUDA calloc async 4194304 bytes", "gpu-memory-exhausted"},
           Case{"Error: failed to extend /dev/shm/nccl-x to 9637892 bytes, error: No space left on device (28)",
                "shm-extend-failed"},
           Case{"Error while creating shared memory segment /dev/shm/nccl-x (size 9637888)", "shm-extend-failed"},
           Case{"Error while creating shared memory segment /dev/shm/nccl-x (size 9637888), error: File too large (27)",
                "shm-file-limit"},
           Case{"Call to posix_fallocate failed : No space left on device", "shm-extend-failed"},
           Case{
               "Error while attaching to shared memory segment /dev/shm/nccl-x (size 9637888), error: No such file (2)",
               "shm-open-failed"},
           Case{"P2P is disabled between NVLINK connected GPUs 0 and 1. This should not be the case",
                "nvlink-p2p-disabled"},
           Case{"failed to peer with device 1(=4c000): 711 peer access", "p2p-peering-failed"},
           Case{
               "Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 1 'invalid argument'.",
               "nvls-bind-failed"},
           Case{"MNNVL (cliqueSize 8) is available but not working on this system.", "mnnvl-unusable"},
           Case{"No transport found for rank 0[60] -> rank 1[60]", "no-transport"},
           Case{"Proxy append out of bounds", "inconsistent-channels"},
           Case{"Rank 3 has no transport for send peer 2 on channel 0/0", "inconsistent-channels"},
           Case{"XML Topology has wrong version 2, 1 needed", "topology-file-invalid"},
           Case{"NCCL version mismatch with remote peer 10.0.0.1<4> (local: 22809, remote 22707)",
                "ras-version-mismatch"},
           Case{"a text nobody has seen", "other"},
           Case{"", "other"},
       })
    EXPECT_EQ(ClassifyWarning(c.message).id, c.id) << c.message;
}

TEST(NcclWarnings, KnowsTheRareTexts) {
  for (const Case& c : {
           Case{"ncclCommGetUniqueId should not be called when NCCL_COMM_ID is set", "comm-id-set"},
           Case{"Net : No valid <IPv4_or_hostname>:<port> pair found", "address-malformed"},
           Case{"ncclSocketSend: socket state (11) is not ready", "socket-not-ready"},
           Case{"NET/Socket : socket progress error", "connection-reset"},
           Case{"Invalid config min/max channels attribute value 0/-3", "invalid-config"},
           Case{"minCTAs 64 is larger than #channels upper limit 32, cap it to 32", "value-capped"},
           Case{"NCCL_WORK_FIFO_BYTES=1000 is being ignored because it is not a power of 2.", "env-value-invalid"},
           Case{"NET/IB : Can't connect net devices with different link_layer. i=0 remMeta.ndevs=1",
                "ib-link-types-mixed"},
           Case{"TOPO/NET : Could not force merge NICs mlx5_0,mlx5_9. Please specify a valid", "nic-fusion-failed"},
           Case{"NET/IB: OOO RQ is force enabled but AR is not enabled, which is required", "ib-out-of-order"},
           Case{"NET/IB: Maximum number of probing attempts (10) reached for request 0x7f", "ib-device-failed"},
           Case{"Error: failed to create shared memory file /dev/shm/nccl-XXXXXX, error No space left on device (28)",
                "shm-extend-failed"},
           Case{"Error: failed to create shared memory file /dev/shm/nccl-XXXXXX, error Permission denied (13)",
                "shm-create-failed"},
           Case{"Could not find any local path from gpu 3 to net.", "topology-unusable"},
           Case{"Failed to determine local ranks rank 9 hostHash 9a3c pidHash 77 localRank -1", "hosts-told-apart"},
           Case{"Error : ring 2 does not contain rank 11", "ring-inconsistent"},
           Case{"nvmlDeviceGetHandleByPciBusId(0000:9d:00.0) failed: GPU is lost", "gpu-lost"},
           Case{"NCCL_NVLS_ENABLE has been set to \"1\" and communicator has multiple ranks", "nvls-shared-gpu"},
           Case{"MSCCL: number of channels available (16) less than required (32)", "msccl-unusable"},
           Case{"NET/OFI Request 0x7f (SEND) completed with error: err: 113, flags: 0, prov_errno: 15, strerror: x",
                "net-peer-blocked"},
           Case{"NET/OFI Request 0x7f (RECV) completed with error: err: 61, flags: 0, prov_errno: 1, strerror: x",
                "net-request-flushed"},
           Case{"NET/OFI Unable to register memory (type = 2) for device 4. RC: -12, Error: Cannot allocate memory",
                "ib-register-failed"},
       })
    EXPECT_EQ(ClassifyWarning(c.message).id, c.id) << c.message;
  EXPECT_EQ(FatalCudaError(ClassifyWarning("nvmlDeviceGetIndex() failed: GPU is lost"), "x"), "GPU is lost");
}

TEST(NcclWarnings, FindsTheInfoLinesThatWarn) {
  for (const Case& c : {
           Case{"socketPollConnect: connect to 10.0.0.1<4> returned Connection refused, retrying (1/34) after sleep "
                "for 100 msec",
                "connect-retry"},
           Case{"Rank 3 has 1 local Net devices (max 2).", "net-count-mismatch"},
           Case{"NET/IB : mlx5_0:1 speed change detected: 400000 -> 100000 Mbps", "ib-speed-change"},
           Case{"NET/IB : There are mismatched physical devices between local (a) and remote (b).", "ib-rail-mismatch"},
           Case{"fallocate: Failed to extend /dev/shm/x - retrying", "shm-extend-retry"},
           Case{"cuMem host allocations do not appear to be working; falling back", "cumem-host-fallback"},
           Case{"P2P is disabled between connected GPUs 0 and 1. You can repress this message", "p2p-disabled"},
           Case{"Comm config graphUsageMode is set to 0 but the user is capturing graphs", "graph-usage-mode"},
           Case{"Invalid value x for NCCL_IB_TIMEOUT, using default 20.", "env-value-invalid"},
           Case{"RAS declaring peer 10.0.0.1<4> as DEAD; rasDeadPeersHash 0x1", "ras-peer-dead"},
           Case{"NET/FasTrak plugin initialization failed with error 3", "net-plugin-not-started"},
           Case{"NET/Plugin: Failed to initialize AWS Libfabric", "net-plugin-not-started"},
       }) {
    const NcclWarning* warning = ClassifyInfoWarning(c.message);
    ASSERT_NE(warning, nullptr) << c.message;
    EXPECT_EQ(warning->id, c.id) << c.message;
  }
  for (const std::string_view harmless :
       {"cudaDriverVersion 13000", "Comm config Blocking set to 1", "NET/IB : Made virtual device [0]",
        "RAS client listening socket at 127.0.0.1<28028>", "Rank 3: 1 Net devices", "",
        "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin.",
        "NET/OFI Initializing aws-ofi-nccl 1.7.4-aws"})
    EXPECT_EQ(ClassifyInfoWarning(harmless), nullptr) << harmless;
}

NcclWarningNumbers NumbersOf(std::string_view message) {
  return ParseWarningNumbers(ClassifyWarning(message), message);
}

TEST(NcclWarnings, ReadsTheCompletionStatusOfEveryRelease) {
  EXPECT_EQ(NumbersOf("NET/IB : Got completion with error 12, opcode 1, len 32").value, 12);
  EXPECT_EQ(NumbersOf("NET/IB : Got completion from peer 10.0.0.1<4> with error 5, opcode 0").value, 5);
  EXPECT_EQ(NumbersOf("NET/IB: Got completion from peer 10.0.0.1<4> with status=13 opcode=0").value, 13);
  EXPECT_EQ(
      NumbersOf(
          "NET/IB: Got completion from peer 10.0.0.1<4> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0)")
          .value,
      12);
}

TEST(NcclWarnings, ReadsPairsOfNumbers) {
  EXPECT_EQ(NumbersOf("NET/Socket : peer x message truncated : receiving 524288 bytes instead of 65536. If").value,
            524288);
  EXPECT_EQ(NumbersOf("NET/Socket : peer x message truncated : receiving 524288 bytes instead of 65536. If").other,
            65536);
  EXPECT_EQ(NumbersOf("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60").value, 1);
  EXPECT_EQ(NumbersOf("Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 60").other, 0);
  EXPECT_EQ(NumbersOf("Bootstrap Root : mismatch in info from procs, nranks 8 vs 4, nroots 1 vs 1").other, 4);
  EXPECT_EQ(NumbersOf("Cuda failure 700 'x'").value, 700);
  EXPECT_EQ(NumbersOf("Cuda failure 'x'").value, -1);
}

TEST(NcclWarnings, AFlushedRequestIsAConsequence) {
  const NcclWarning& warning = *FindNcclWarning("ib-completion-error");
  EXPECT_EQ(RoleOf(warning, {5, -1}, false), NcclWarningRole::secondary);
  EXPECT_EQ(RoleOf(warning, {12, -1}, false), NcclWarningRole::cause);
}

TEST(NcclWarnings, AnInfoLineIsRarelyACause) {
  EXPECT_EQ(RoleOf(*FindNcclWarning("cuda-failure"), {}, true), NcclWarningRole::notice);
  EXPECT_EQ(RoleOf(*FindNcclWarning("ras-peer-dead"), {}, true), NcclWarningRole::cause);
  EXPECT_EQ(RoleOf(*FindNcclWarning("connection-closed"), {}, true), NcclWarningRole::secondary);
}

TEST(NcclWarnings, FindsThePeersAddress) {
  EXPECT_EQ(ParsePeerAddress("socketProgress: Connection closed by remote peer node07.cluster<41234>"),
            "node07.cluster<41234>");
  EXPECT_EQ(ParsePeerAddress("socketProgressOpt: Call to recv from 10.0.0.7<41234> failed : x"), "10.0.0.7<41234>");
  EXPECT_EQ(ParsePeerAddress("socketProgress: Connection closed by remote peer "), "");
}

TEST(NcclWarnings, EveryPatternNamesAnEntryAndIdsAreUnique) {
  std::set<std::string_view> ids;
  for (const NcclWarning& warning : AllNcclWarnings()) {
    EXPECT_TRUE(ids.insert(warning.id).second) << warning.id;
    EXPECT_FALSE(warning.meaning.empty()) << warning.id;
  }
  for (const NcclWarningPattern& pattern : kNcclWarnPatterns) EXPECT_TRUE(ids.contains(pattern.id)) << pattern.id;
  for (const NcclWarningPattern& pattern : kNcclInfoPatterns) {
    EXPECT_TRUE(ids.contains(pattern.id)) << pattern.id;
    EXPECT_FALSE(pattern.opening.empty()) << pattern.id;
  }
}

TEST(NcclWarnings, TellsTheCudaErrorsThatEndAProcess) {
  const auto fatal = [](std::string_view message) { return FatalCudaError(ClassifyWarning(message), message); };
  EXPECT_EQ(fatal("Cuda failure 'out of memory'"), "out of memory");
  EXPECT_EQ(fatal("Failed to CUDA calloc async 4194304 bytes"), "out of memory");
  EXPECT_EQ(fatal("Cuda failure 'uncorrectable NVLink error detected during the execution'"),
            "uncorrectable NVLink error detected during the execution");
  for (const std::string_view benign :
       {"Cuda failure 700 'an illegal memory access was encountered'", "Cuda failure 1 'invalid argument'",
        "Cuda failure 4 'driver shutting down'", "Cuda failure 'peer access is already enabled'", "Cuda failure 999"})
    EXPECT_TRUE(fatal(benign).empty()) << benign;
}

TEST(NcclWarnings, NamesWhatAMessageIsAbout) {
  const auto object = [](std::string_view message) { return ParseWarningObject(ClassifyWarning(message), message); };
  EXPECT_EQ(object("Error: failed to extend /dev/shm/nccl-k2 to 9637892 bytes, error: No space left on device (28)"),
            "/dev/shm/nccl-k2");
  EXPECT_EQ(object("socketStartConnect: Connect to 172.17.0.2<45678> failed : Connection refused"),
            "172.17.0.2<45678>");
  EXPECT_EQ(object("NET/IB : Unable to open device mlx5_3"), "mlx5_3");
  EXPECT_EQ(object("Call to posix_fallocate failed : No space left on device"), "");
}

TEST(NcclWarnings, TellsTheSystemsWordOfARegistrationThatFails) {
  const auto number = [](std::string_view message) {
    return ParseWarningNumbers(ClassifyWarning(message), message).value;
  };
  EXPECT_EQ(number("Call to ibv_reg_mr failed with error Cannot allocate memory"), 12);
  EXPECT_EQ(number("Call to ibv_reg_mr_iova2 failed with error Bad address"), 14);
  EXPECT_EQ(number("Call to ibv_create_cq failed with error Something else"), -1);
}

TEST(NcclWarnings, TheReadmeListsEveryIdWithItsRoleAndMeaning) {
  std::ifstream in(std::string(TACET_SOURCE_DIR) + "/src/evidence/nccl_log/README.md");
  const std::string readme(std::istreambuf_iterator<char>(in), {});
  for (const NcclWarning& warning : AllNcclWarnings()) {
    const std::string_view role = warning.role == NcclWarningRole::cause       ? "cause"
                                  : warning.role == NcclWarningRole::secondary ? "secondary"
                                                                               : "notice";
    EXPECT_NE(readme.find("| `" + std::string(warning.id) + "` | " + std::string(role) + " |"), std::string::npos)
        << warning.id;
    EXPECT_NE(readme.find(warning.meaning), std::string::npos) << warning.id;
  }
}

}  // namespace
}  // namespace tacet
