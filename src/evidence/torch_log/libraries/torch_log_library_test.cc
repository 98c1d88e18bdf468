// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_library.h"

#include "evidence/torch_log/libraries/torch_log_library_table.h"
#include "evidence/torch_log/torch_log_test_file.h"
#include "model/events/nccl_warnings.h"

namespace tacet {
namespace {

Event Only(std::string_view line, EventKind kind) {
  return OneEvent(ReadText(std::string(line) + "\n", "out.txt"), kind);
}

TEST(LibraryLines, EveryMarkCanBeFoundAndEveryWarningIsKnown) {
  for (const LibraryLine& row : kLibraryLines) {
    EXPECT_GE(row.mark.size(), 4u) << row.mark;
    EXPECT_TRUE(FindKeywords(row.mark).has(Keyword::library_line)) << row.mark;
    if (row.tell == LibraryTell::warning) {
      EXPECT_NE(FindNcclWarning(row.what), nullptr) << row.what;
    }
  }
}

TEST(LibraryLines, UcxTellsTheStatusOfVerbsInWords) {
  const Event access = Only(
      "[cn7:551:0:551] ib_mlx5_log.c:177  UCX  ERROR Remote access error on mlx5_1:1/IB (synd 0x13 vend 0x88 hw_synd "
      "0/0)",
      EventKind::nccl_warning);
  EXPECT_EQ(access.As<Warning>().id, "ib-completion-error");
  EXPECT_EQ(access.As<Warning>().number, 10);
  const Event local = Only(
      "[cn7:551:0:551] ib_mlx5_log.c:177  UCX  ERROR Local protection error on mlx5_1:1/IB (synd 0x4 vend 0x51 hw_synd "
      "0/0)",
      EventKind::nccl_warning);
  EXPECT_EQ(local.As<Warning>().number, 4);
  const Event mvapich =
      Only("[cn4:mpi_rank_2][handle_cqe] cm.c:548: [] Got completion with error 12, vendor code=0x81, dest rank=5",
           EventKind::nccl_warning);
  EXPECT_EQ(mvapich.As<Warning>().number, 12);
  EXPECT_EQ(mvapich.rank.value, 2);
}

TEST(LibraryLines, AConnectionThatIsRefusedIsNoFaultOfTheNetwork) {
  const Event refused =
      Only("[cn7:551:0] sock.c:334  UCX  ERROR connect(fd=71, dest_addr=172.17.0.1:43012) failed: Connection refused",
           EventKind::connect_failed);
  EXPECT_EQ(refused.As<ConnectFailure>().address, "172.17.0.1:43012");
  EXPECT_EQ(refused.As<ConnectFailure>().words, "Connection refused");
  const Event late =
      Only("[cn7:551:0] sock.c:334  UCX  ERROR connect(fd=71, dest_addr=10.0.0.1:43012) failed: Connection timed out",
           EventKind::nccl_warning);
  EXPECT_EQ(late.As<Warning>().id, "ucx-failed");
}

TEST(LibraryLines, TheResourcesOfAnAdapterAreNoDisk) {
  const Fragment full = ReadText(
      "libfabric:9001:1719999300::cxi:core:cxip_evtq_init():210<warn> ac[1]: cxil_alloc_evtq failed: -28:No space left "
      "on device\n",
      "out.txt");
  EXPECT_TRUE(EventsOf(full, EventKind::disk_full).empty());
  EXPECT_EQ(OneEvent(full, EventKind::nccl_warning).As<Warning>().id, "fabric-resources");
}

TEST(LibraryLines, AnExceptionThatCarriesSuchWordsOnlyPassesThemOn) {
  const Fragment late = ReadText(
      "mscclpp._mscclpp.Error: pollSendCq timed out: waited for 10 seconds. Expected 4 signals (Mscclpp failure: "
      "Timeout)\n",
      "out.txt");
  EXPECT_EQ(EventsOf(late, EventKind::watchdog_timeout).size(), 1u);
  const Event raised = Only("ValueError: shapes do not match (Mscclpp failure: InvalidUsage)", EventKind::exception);
  EXPECT_FALSE(raised.Means(Meaning::consequence));
}

TEST(LibraryLines, AKernelThatGaveUpWaitingStopsItself) {
  const Fragment waited = ReadText(
      "DeepEP dispatch NVL receiver timeout, channel: 3, RDMA: 1, nvl: 4, src NVL: 2, head: 0, tail: 0\n"
      "RuntimeError: CUDA error: unspecified launch failure\n",
      "out.txt");
  EXPECT_EQ(EventsOf(waited, EventKind::watchdog_timeout).size(), 1u);
  EXPECT_TRUE(EventsOf(waited, EventKind::cuda_error).empty());
  const Fragment alone = ReadText("RuntimeError: CUDA error: unspecified launch failure\n", "out.txt");
  EXPECT_FALSE(EventsOf(alone, EventKind::cuda_error).empty());
}

TEST(LibraryLines, TheOneValueUnlikeAllOthersIsOfThePeerThatIsMissing) {
  const auto table = [](int32_t rank, const std::vector<int>& values) {
    std::string text;
    for (size_t i = 0; i < values.size(); ++i)
      text += "DeepEP timeout check failed: rank = " + std::to_string(rank) + ", thread = " + std::to_string(i) +
              ", value = " + std::to_string(values[i]) + ")\n";
    return OneEvent(ReadText(text, "out.txt"), EventKind::watchdog_timeout).peer;
  };
  EXPECT_EQ(table(0, {0, 0, 0, 512}), Rank{3});
  EXPECT_EQ(table(2, {512, 0, 0, 0, 0}), Rank{0});
  EXPECT_FALSE(table(0, {0, 512, 512, 0}).known()) << "two are missing";
  EXPECT_FALSE(table(3, {0, 0, 0, 512}).known()) << "itself";
  EXPECT_FALSE(table(0, {0, 0, 512}).known()) << "too few to tell which value is the usual one";
  EXPECT_FALSE(table(0, {0, 0, 0, 0}).known());
}

TEST(LibraryLines, NotesOfOpenMpiThatEndNothingAreNone) {
  const Fragment note = ReadText(
      "The library attempted to open the following supporting CUDA libraries,\n"
      "but each of them failed.  CUDA-aware support is disabled.\n"
      "libcuda.so.1: cannot open shared object file: No such file or directory\n"
      "--------------------------------------------------------------------------\n",
      "out.txt");
  EXPECT_TRUE(EventsOf(note, EventKind::exception).empty());
  const Event map = Only("Your job failed to map. Either no mapper was available, or none", EventKind::exception);
  EXPECT_EQ(map.As<Raised>().type, "an error of mpirun");
}

}  // namespace
}  // namespace tacet
