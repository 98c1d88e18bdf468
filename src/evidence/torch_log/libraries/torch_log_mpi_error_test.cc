// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/libraries/torch_log_mpi_error.h"

#include "evidence/torch_log/torch_log_test_file.h"

namespace tacet {
namespace {

TEST(MpiError, AbortTellsItsRankAndItsCode) {
  const Event open_mpi = OneEvent(
      ReadText("MPI_ABORT was invoked on rank 12 in communicator MPI_COMM_WORLD\nwith errorcode -77.\n", "out.txt"),
      EventKind::process_exited);
  EXPECT_EQ(open_mpi.rank.value, 12);
  EXPECT_EQ(open_mpi.As<ProcessEnd>().how, "MPI_Abort");
  EXPECT_EQ(open_mpi.As<ProcessEnd>().mpi_error, -77);
  const auto mpich = ReadText("application called MPI_Abort(MPI_COMM_WORLD, 0) - process 3\n", "out.txt");
  EXPECT_EQ(OneEvent(mpich, EventKind::process_exited).rank.value, 3);
  EXPECT_EQ(OneEvent(mpich, EventKind::process_exited).As<ProcessEnd>().mpi_error, 0);
}

TEST(MpiError, AnErrorTellsItsCallItsReasonAndTheRankInTheWorld) {
  const Event world = OneEvent(
      ReadText("Abort(7) on node 1 (rank 5 in comm 0): Fatal error in PMPI_Bcast: Invalid root, error stack:\n", "o"),
      EventKind::exception);
  EXPECT_EQ(world.rank.value, 5);
  EXPECT_EQ(world.As<Raised>().type, "an MPI error in MPI_Bcast");
  EXPECT_EQ(world.text, "Invalid root");
  const Event other = OneEvent(
      ReadText("Abort(7) on node 1 (rank 5 in comm 336): Fatal error in internal_Recv: Other MPI error\n", "o"),
      EventKind::exception);
  EXPECT_FALSE(other.rank.known());
  EXPECT_EQ(other.As<Raised>().type, "an MPI error in MPI_Recv");
}

TEST(MpiError, BlocksOfTwoProcessesThatMixAreToldApart) {
  const Fragment fragment = ReadText(
      "[a7:100] *** An error occurred in MPI_Send\n"
      "[b8:200] *** An error occurred in MPI_Recv\n"
      "[b8:200] *** reported by process [99,1]\n"
      "[a7:100] *** reported by process [99,0]\n"
      "[a7:100] *** MPI_ERR_TAG: invalid tag\n"
      "[b8:200] *** MPI_ERR_TRUNCATE: message truncated\n",
      "out.txt");
  const auto errors = EventsOf(fragment, EventKind::exception);
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0]->rank.value, 0);
  EXPECT_EQ(errors[0]->text, "MPI_ERR_TAG: invalid tag");
  EXPECT_EQ(errors[1]->rank.value, 1);
  EXPECT_EQ(errors[1]->text, "MPI_ERR_TRUNCATE: message truncated");
}

TEST(MpiError, ASignalIsTheProcesssOwnAndNoneThatOthersSend) {
  const Event ucx = OneEvent(ReadText("[cn7:88:0:88] Caught signal 11 (Segmentation fault: at address 0x8)\n", "o"),
                             EventKind::process_exited);
  EXPECT_EQ(ucx.As<ProcessEnd>().code, -11);
  EXPECT_EQ(ucx.pid, 88);
  const Event mpt =
      OneEvent(ReadText("MPT ERROR: Rank 2(g:0) received signal SIGSEGV(11).\n", "o"), EventKind::process_exited);
  EXPECT_EQ(mpt.rank.value, 2);
  for (const char* text : {"[cn7:88] *** Process received signal ***\n[cn7:88] Signal: Terminated (15)\n",
                           "Caught signal 15, saving\n", "Signal: Segmentation fault (11)\n"})
    EXPECT_TRUE(EventsOf(ReadText(text, "o"), EventKind::process_exited).empty()) << text;
}

TEST(MpiError, TheFrameBelowTheHandlerTellsTheLibrary) {
  const std::string head = "[cn7:88:0:91] Caught signal 11 (Segmentation fault: address not mapped to object)\n";
  const Event ucx = OneEvent(ReadText(head + "==== backtrace (tid:     91) ====\n"
                                             " 0  /usr/lib/libucs.so.0(ucs_handle_error+0x2d4) [0x7f3ac1a5c274]\n"
                                             " 1  /usr/lib/x86_64-linux-gnu/libc.so.6(+0x42520) [0x7f3ac1842520]\n"
                                             " 2  /opt/x/libnccl.so.2(+0x120057) [0x7f3eba0c1057]\n"
                                             " 3  /opt/x/libother.so(run+0x1) [0x7f3eba0c309d]\n",
                                      "o"),
                             EventKind::process_exited);
  EXPECT_EQ(ucx.As<ProcessEnd>().inside, "libnccl.so.2");
  EXPECT_EQ(ucx.As<ProcessEnd>().host, "cn7");
  const Event symbols = OneEvent(ReadText(head + " 0 0x0000000000042520 __sigaction()  ???:0\n"
                                                 " 1 0x00000000000bde56 pncclReduceScatter()  ???:0\n",
                                          "o"),
                                 EventKind::process_exited);
  EXPECT_EQ(symbols.As<ProcessEnd>().inside, "NCCL");
  const Event open_mpi = OneEvent(ReadText("[a7:100] *** Process received signal ***\n"
                                           "[a7:100] Signal: Segmentation fault (11)\n"
                                           "[a7:100] Signal code: Address not mapped (1)\n"
                                           "[a7:100] Failing at address: (nil)\n"
                                           "[a7:100] [ 0] /lib64/libpthread.so.0(+0x12cf0)[0x7f2e1c0cf0]\n"
                                           "[a7:100] [ 1] /opt/solver/lib/libmesh.so(split+0x1a)[0x7f2e1c0c1a]\n",
                                           "o"),
                                  EventKind::process_exited);
  EXPECT_EQ(open_mpi.As<ProcessEnd>().inside, "libmesh.so");
  // Numbers at the beginning of other lines are no frames.
  EXPECT_TRUE(OneEvent(ReadText(head + " 0 /data/part(1) done\n 3 of 4 files\n", "o"), EventKind::process_exited)
                  .As<ProcessEnd>()
                  .inside.empty());
}

TEST(MpiError, HostileNumbersAreNoRanks) {
  const Fragment fragment = ReadText(
      "[a7:100] *** An error occurred in MPI_Send\n[a7:100] *** reported by process [1,140733193388032]\n"
      "ERROR on proc 2147483647: x\nMPI_ABORT was invoked on rank 2147483647 in communicator X\n",
      "out.txt");
  for (const Event& event : fragment.events) EXPECT_FALSE(event.rank.known()) << event.text;
}

TEST(ThrownError, IsItsTypeAndItsWords) {
  const Event thrown = OneEvent(ReadText("terminate called after throwing an instance of 'std::out_of_range'\n"
                                         "  what():  map::at\n",
                                         "o"),
                                EventKind::exception);
  EXPECT_EQ(thrown.As<Raised>().type, "std::out_of_range");
  EXPECT_EQ(thrown.text, "map::at");
  EXPECT_TRUE(EventsOf(ReadText("terminate called after throwing an instance of 'c10::DistBackendError'\n"
                                "  what():  [PG 0 Rank 1] stopped\n",
                                "o"),
                       EventKind::exception)
                  .empty());
}

TEST(StoreBarrier, OnceOneIsThroughNobodyWaits) {
  const std::string waits =
      "Waiting in store based barrier to initialize process group for rank: 2, key: store_based_barrier_key:1 "
      "(world_size=4, worker_count=3, timeout=0:30:00)\n";
  EXPECT_EQ(EventsOf(ReadText(waits, "o"), EventKind::rendezvous_incomplete).size(), 1u);
  EXPECT_TRUE(
      EventsOf(ReadText(waits + "Rank 0: Completed store-based barrier for key:store_based_barrier_key:1 with 4 "
                                "nodes.\n",
                        "o"),
               EventKind::rendezvous_incomplete)
          .empty());
  EXPECT_EQ(EventsOf(ReadText(waits + "Rank 0: Completed store-based barrier for key:store_based_barrier_key:7 with 4 "
                                      "nodes.\n",
                              "o"),
                     EventKind::rendezvous_incomplete)
                .size(),
            1u);
}

TEST(MpiError, TheTagOfMpirunTellsWhoseSignalItIs) {
  const Fragment tagged = ReadText(
      "[1,12]<stderr>:[n16:17086] *** Process received signal ***\n"
      "[1,12]<stderr>:[n16:17086] Signal: Segmentation fault (11)\n",
      "out.txt");
  const Event end = OneEvent(tagged, EventKind::process_exited);
  EXPECT_EQ(RankOf(tagged, end), Rank{12});
  EXPECT_EQ(end.pid, 17086);
  const Fragment untagged =
      ReadText("[n16:17086] *** Process received signal ***\n[n16:17086] Signal: Aborted (6)\n", "o");
  EXPECT_EQ(OneEvent(untagged, EventKind::process_exited).As<ProcessEnd>().code, -6);
  EXPECT_FALSE(RankOf(untagged, OneEvent(untagged, EventKind::process_exited)).known());
}

TEST(MpiError, TheLineOfTheSignalIsEnough) {
  EXPECT_EQ(OneEvent(ReadText("    [n16:17086] Signal: Bus error (7)\n", "o"), EventKind::process_exited).pid, 17086);
  for (const char* text : {"Signal: Bus error (7)\n", "[n16] Signal: Bus error (7)\n", "[n16:1] Signal: strong\n"})
    EXPECT_TRUE(EventsOf(ReadText(text, "o"), EventKind::process_exited).empty()) << text;
}

}  // namespace
}  // namespace tacet
