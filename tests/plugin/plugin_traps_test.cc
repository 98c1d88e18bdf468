// SPDX-License-Identifier: Apache-2.0
// The traps of NCCL's profiler interface, one by one, against the plugin itself.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tests/plugin/box_reading.h"
#include "tests/plugin/loaded_plugin.h"

namespace tacet::fake {
namespace {

const Environment kSmall = {{"TACET_BOX_KB", "256"}, {"RANK", "3"}, {"WORLD_SIZE", "8"}, {"TACET_HEARTBEAT_MS", "50"}};

// A communicator without threads: every event is made by hand.
struct Hand {
  explicit Hand(int api = 6, uint64_t hash = 0x77, int rank = 3) : plugin(LoadedPlugin::Open(PluginPath(), api)) {
    if (!plugin.ok()) std::abort();
    plugin.Init(&context, &mask, {hash, "hand", 2, 8, rank});
  }
  void* Start(EventDescriptor descr) {
    void* handle = reinterpret_cast<void*>(0x1234);  // whatever NCCL had there before
    plugin.Start(context, &handle, descr);
    return handle;
  }
  void* Api(CollFacts facts = {}, void* group = nullptr) {
    return Start(EventDescriptor(plugin.api(), kCollApi, group, 0).CollApi(facts));
  }
  void* Coll(void* parent, CollFacts facts = {}) {
    return Start(EventDescriptor(plugin.api(), kColl, parent, 3).Coll(facts, "hand", 0x77));
  }
  void* Channel(void* coll, uint8_t channel = 0, uint64_t gpu_ns = 1000) {
    return Start(EventDescriptor(plugin.api(), kKernelCh, coll, 0).KernelCh(channel, gpu_ns));
  }
  void Finish(void* channel, uint64_t gpu_ns = 2000) {
    plugin.RecordChannelStop(channel, gpu_ns);
    plugin.Stop(channel);
  }
  // A collective from call to end.
  void Run(CollFacts facts = {}) {
    facts.channels = 1;
    void* api = Api(facts);
    plugin.Stop(api);
    void* coll = Coll(api, facts);
    plugin.Stop(coll);
    Finish(Channel(coll));
  }
  LoadedPlugin plugin;
  void* context = nullptr;
  int mask = 0;
};

void Expect(bool truth, const char* what) {
  if (truth) return;
  std::fprintf(stderr, "not true: %s\n", what);
  _exit(1);
}
#define EXPECT_IN_CHILD(truth) Expect(truth, #truth)

ReadBox OnlyBox(const BoxFolder& folder) {
  auto boxes = ReadBoxes(folder.path());
  EXPECT_EQ(boxes.size(), 1u);
  return boxes.empty() ? ReadBox{} : std::move(boxes[0]);
}

TEST(Trap, AsksForTheSameMaskFromEveryCommunicator) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(
                folder,
                [] {
                  Hand first(7), second(7, 0x78);
                  EXPECT_IN_CHILD(first.mask == second.mask);
                  EXPECT_IN_CHILD(first.mask == 0x1f5e);
                  Hand old(2, 0x79);
                  EXPECT_IN_CHILD((old.mask & ~0x3f) != 0);  // one box, one mask: the first communicator's API decides
                },
                kSmall),
            0);
}

TEST(Trap, OldApisAreNotAskedForEventsTheyDoNotKnow) {
  for (const auto& [api, mask] :
       std::map<int, int>{{1, 0x1e}, {2, 0x1e}, {3, 0x5e}, {4, 0x5e}, {5, 0xf5e}, {6, 0x1f5e}}) {
    const BoxFolder folder;
    EXPECT_EQ(RunInChild(
                  folder, [api = api, mask = mask] { EXPECT_IN_CHILD(Hand(api).mask == mask); }, kSmall),
              0)
        << api;
  }
}

TEST(Trap, EventsAskedForByNameOrNumber) {
  for (const auto& [text, mask] : std::map<std::string, int>{{"coll,kernel", 0x342}, {"0x46", 0x46}, {"p2p", 0x504}}) {
    const BoxFolder folder;
    Environment environment = kSmall;
    environment["TACET_EVENTS"] = text;
    EXPECT_EQ(RunInChild(
                  folder, [mask = mask] { EXPECT_IN_CHILD(Hand().mask == mask); }, environment),
              0)
        << text;
  }
}

TEST(Trap, NullAndForeignHandlesAreIgnored) {
  const BoxFolder folder;
  EXPECT_EQ(
      RunInChild(
          folder,
          [] {
            Hand hand;
            uint64_t somewhere = 0;
            for (void* handle :
                 {static_cast<void*>(nullptr), static_cast<void*>(&somewhere), reinterpret_cast<void*>(~uint64_t{0}),
                  reinterpret_cast<void*>(0x5003000112345678u), reinterpret_cast<void*>(0xb000000000000001u)}) {
              EXPECT_IN_CHILD(hand.plugin.Stop(handle) == 0);
              EXPECT_IN_CHILD(hand.plugin.Record(handle, 22, &somewhere) == 0);
              EXPECT_IN_CHILD(hand.plugin.Record(handle, 23, nullptr) == 0);
              EXPECT_IN_CHILD(hand.plugin.Record(handle, 8, nullptr) == 0);
              EXPECT_IN_CHILD(hand.plugin.Finalize(handle) == 0);
              EXPECT_IN_CHILD(hand.Channel(handle) == nullptr);
            }
            EventDescriptor descr(6, kCollApi, nullptr, 0);
            EXPECT_IN_CHILD(hand.plugin.Start(hand.context, nullptr, descr) == 0);
            void* handle = &somewhere;
            EXPECT_IN_CHILD(hand.plugin.Start(&somewhere, &handle, descr) == 0);
            EXPECT_IN_CHILD(handle == nullptr);
            hand.Run();
          },
          kSmall),
      0);
  const ReadBox read = OnlyBox(folder);
  EXPECT_EQ(read.stream().calls.size(), 1u);
  EXPECT_EQ(read.box.header.drops[static_cast<int>(box::Drop::unknown_context)], 1u);
}

TEST(Trap, StopMeansEnqueuedAndChildrenComeLater) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(
                folder,
                [] {
                  Hand hand;
                  CollFacts facts;
                  facts.channels = 2;
                  void* api = hand.Api(facts);
                  hand.plugin.Stop(api);
                  void* coll = hand.Coll(api, facts);
                  hand.plugin.Stop(coll);
                  void* first = hand.Channel(coll, 7, 5000);
                  void* second = hand.Channel(coll, 9, 4000);
                  hand.Finish(second, 9000);
                  hand.Finish(first, 8000);
                  _exit(0);  // as if killed
                },
                kSmall),
            0);
  const ReadBox read = OnlyBox(folder);
  ASSERT_EQ(read.stream().calls.size(), 1u);
  EXPECT_EQ(read.stream().calls[0].state, CallState::completed);
  EXPECT_EQ(read.fragment.measurements.at(0).duration_ns, 5000);  // latest stop - earliest start, over channels
}

TEST(Trap, HandlesUsedAfterTheOperationEndedTouchNobodyElse) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(
                folder,
                [] {
                  Hand hand;
                  CollFacts facts;
                  facts.channels = 1;
                  void* api = hand.Api(facts);
                  void* coll = hand.Coll(api, facts);
                  void* channel = hand.Channel(coll);
                  hand.plugin.Stop(coll);
                  hand.Finish(channel);
                  // NCCL 2.28.9 recorded after stop (issue 1992). The slot goes round to another operation.
                  for (int i = 0; i < 300; ++i) hand.Run(facts);
                  void* living = hand.Api(facts);
                  for (int i = 0; i < 3; ++i) {
                    hand.Finish(channel, 99999);
                    hand.plugin.Stop(coll);
                    hand.plugin.Stop(api);
                    EXPECT_IN_CHILD(hand.Channel(coll) == nullptr);
                  }
                  (void)living;
                  _exit(0);
                },
                kSmall),
            0);
  const ReadBox read = OnlyBox(folder);
  EXPECT_EQ(read.box.comms.at(0).comm.collectives, 302u);
  EXPECT_EQ(read.box.comms.at(0).comm.finished, 301u);
  EXPECT_GT(read.box.header.drops[static_cast<int>(box::Drop::stale_handle)], 0u);
  ASSERT_EQ(read.fragment.in_flight.size(), 1u);
  EXPECT_EQ(read.fragment.in_flight[0].channels_started, 0);
}

TEST(Trap, ForeignProxyOperationsKeepAwayFromOurTables) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(
                folder,
                [] {
                  Hand hand;
                  CollFacts facts;
                  void* coll = hand.Coll(hand.Api(facts), facts);
                  // PXN: context and parent are another process's, here ones that would even fit ours.
                  void* proxy =
                      hand.Start(EventDescriptor(6, kProxyOp, coll, 5).ProxyOp(getpid() + 1, 0, 2, 4, 4096, true));
                  EXPECT_IN_CHILD(proxy != nullptr);
                  void* step = hand.Start(EventDescriptor(6, kProxyStep, proxy, 5).ProxyStep(0));
                  hand.plugin.RecordStep(step, 8, 0);
                  hand.plugin.RecordStep(step, 9, 100);
                  _exit(0);
                },
                kSmall),
            0);
  const ReadBox read = OnlyBox(folder);
  ASSERT_EQ(read.box.proxies.size(), 1u);
  EXPECT_TRUE(read.box.proxies[0].proxy.flags & box::kProxyForeign);
  EXPECT_TRUE(read.box.peers.empty());
  ASSERT_EQ(read.fragment.in_flight.size(), 1u);
  EXPECT_TRUE(read.fragment.in_flight[0].flows.empty());
  EXPECT_EQ(box::WordProxies(read.box.ops.at(0).word), 0u);
}

TEST(Trap, RepeatedStepStateKeepsItsBeginning) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(
                folder,
                [] {
                  Hand hand;
                  void* coll = hand.Coll(hand.Api());
                  void* proxy =
                      hand.Start(EventDescriptor(6, kProxyOp, coll, 3).ProxyOp(getpid(), 0, 2, 4, 4096, true));
                  void* step = hand.Start(EventDescriptor(6, kProxyStep, proxy, 3).ProxyStep(0));
                  hand.plugin.RecordStep(step, 8, 0);
                  hand.plugin.RecordStep(step, 20, 0);
                  for (int i = 0; i < 20; ++i) {
                    usleep(5000);
                    hand.plugin.RecordStep(step, 20, 0);
                  }
                  hand.plugin.RecordStep(step, 9, 4096);
                  hand.plugin.Stop(step);
                  hand.plugin.Stop(proxy);
                  _exit(0);
                },
                kSmall),
            0);
  const ReadBox read = OnlyBox(folder);
  ASSERT_EQ(read.box.peers.size(), 1u);
  const int64_t credit =
      read.box.clock.DurationNs(read.box.peers[0].peer.wait_ticks[static_cast<int>(box::Wait::send_credit)]);
  EXPECT_GE(credit, 100'000'000);
  EXPECT_EQ(read.box.ops.at(0).op.network_bytes, 4096u);
  EXPECT_GE(read.box.clock.DurationNs(read.box.ops[0].op.wait_ticks[static_cast<int>(box::Cause::peer_credit)]),
            100'000'000);
}

TEST(Trap, ChildAfterForkWritesNothingIntoTheParentsBox) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer allows no threads after a fork";
#endif
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(
                folder,
                [] {
                  Hand hand;
                  hand.Run();
                  const pid_t child = fork();
                  if (child == 0) {
                    hand.Run();  // a stale communicator of the parent
                    EXPECT_IN_CHILD(hand.Api() == nullptr);
                    Hand own(6, 0x99, 1);
                    own.Run();
                    own.Run();
                    std::exit(0);
                  }
                  int status = 0;
                  waitpid(child, &status, 0);
                  EXPECT_IN_CHILD(status == 0);
                  hand.Run();
                },
                kSmall),
            0);
  const auto boxes = ReadBoxes(folder.path());
  ASSERT_EQ(boxes.size(), 2u);
  for (const ReadBox& read : boxes) {
    ASSERT_EQ(read.fragment.groups.size(), 1u);
    EXPECT_EQ(read.stream().calls.size(), 2u);
    EXPECT_TRUE(read.fragment.groups[0].comm_id == 0x77 || read.fragment.groups[0].comm_id == 0x99);
    EXPECT_EQ(read.path.find(std::to_string(read.box.header.pid)) != std::string::npos, true);
  }
}

TEST(Trap, ContextOutlivesItsCommunicator) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(
                folder,
                [] {
                  Hand hand;
                  hand.Run();
                  hand.plugin.Finalize(hand.context);
                  hand.plugin.Finalize(hand.context);
                  EXPECT_IN_CHILD(hand.Api() == nullptr);
                  Hand next(6, 0x88);  // takes another slot or a new generation
                  next.Run();
                  EXPECT_IN_CHILD(hand.Api() == nullptr);
                },
                kSmall),
            0);
  const ReadBox read = OnlyBox(folder);
  EXPECT_EQ(read.stream().calls.size(), 2u);
  EXPECT_EQ(read.fragment.groups.size(), 2u);
}

TEST(Trap, OperationsThatNeverTellTheirEndDoNotFillTheTable) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(
                folder,
                [] {
                  Hand hand;
                  // Symmetric kernels and some broadcasts: an API event, nothing more.
                  for (int i = 0; i < 1000; ++i) {
                    void* group = hand.Start(EventDescriptor(6, kGroupApi, nullptr, 0).GroupApi(false, 1));
                    hand.plugin.Stop(hand.Api({}, group));
                    hand.plugin.Stop(group);
                  }
                  hand.Run();
                },
                kSmall),
            0);
  const ReadBox read = OnlyBox(folder);
  EXPECT_EQ(read.box.header.drops[static_cast<int>(box::Drop::op_table_full)], 0u);
  EXPECT_EQ(read.stream().calls.back().seq, 1001u);
  EXPECT_EQ(read.stream().calls.back().state, CallState::completed);
  // Those before it on the same communicator must have ended, too; the box says so where it still has them.
  EXPECT_EQ(read.stream().calls[read.stream().calls.size() - 2].state, CallState::completed);
}

// A thread may lose its processor between a call and its task while others go round all tables many times.
TEST(Trap, CallWhoseGroupIsStillOpenIsNotGivenUp) {
  const BoxFolder folder;
  RunInChild(
      folder,
      [] {
        Hand slow(6, 0x77), busy(6, 0x78);
        const auto begin_group = [](Hand& hand) {
          return hand.Start(EventDescriptor(6, kGroupApi, nullptr, 0).GroupApi(false, 1));
        };
        CollFacts facts;
        facts.channels = 1;
        void* group = begin_group(slow);
        void* api = slow.Api(facts, group);
        slow.plugin.Stop(api);
        for (int i = 0; i < 5000; ++i) {
          void* other = begin_group(busy);
          busy.Run();
          busy.plugin.Stop(other);
        }
        void* coll = slow.Coll(api, facts);
        void* channel = slow.Channel(coll);
        slow.Finish(channel);  // the kernel ends before the host comes to say that it was enqueued
        slow.plugin.Stop(coll);
        slow.plugin.Stop(group);
        _exit(0);
      },
      kSmall);
  const ReadBox read = OnlyBox(folder);
  EXPECT_EQ(read.box.header.drops[static_cast<int>(box::Drop::stale_handle)], 0u);
  const auto& ops = read.box.ops;
  const auto found = std::find_if(ops.begin(), ops.end(), [](const BlackBoxOp& op) { return op.op.comm_id == 0x77; });
  ASSERT_NE(found, ops.end());
  EXPECT_FALSE(found->in_table());
  EXPECT_EQ(found->op.flags & (box::kOpEndUnknown | box::kOpEndImplied), 0);
  EXPECT_GT(found->op.finish_ticks, 0u);
}

TEST(Trap, HangKeepsTheOldestOperationsAndCountsTheOthers) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(
                folder,
                [] {
                  Hand hand;
                  CollFacts facts;
                  facts.channels = 1;
                  for (int i = 0; i < 500; ++i) {
                    void* api = hand.Api(facts);
                    hand.plugin.Stop(api);
                    hand.plugin.Stop(hand.Coll(api, facts));
                  }
                  _exit(0);
                },
                kSmall),
            0);
  const ReadBox read = OnlyBox(folder);
  const uint64_t slots = read.box.header.ops.count;
  ASSERT_EQ(read.fragment.in_flight.size(), slots);
  EXPECT_EQ(read.fragment.in_flight[0].seq, 1u);
  EXPECT_EQ(read.box.header.drops[static_cast<int>(box::Drop::op_table_full)], 500 - slots);
  EXPECT_EQ(read.box.comms.at(0).comm.collectives, 500u);  // numbers go on, so that ranks stay comparable
  EXPECT_FALSE(read.stream().from_start);
}

TEST(Trap, CallersCountsWinOverNcclsBytes) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(
                folder,
                [] {
                  Hand hand;
                  CollFacts asked;
                  asked.func = "AllGather";
                  asked.count = 100;
                  void* api = hand.Api(asked);
                  CollFacts run = asked;
                  run.count = 400;
                  run.datatype = "ncclInt8";
                  run.channels = 1;
                  void* coll = hand.Coll(api, run);
                  hand.plugin.Stop(coll);
                  hand.Finish(hand.Channel(coll));
                },
                kSmall),
            0);
  const ReadBox read = OnlyBox(folder);
  ASSERT_EQ(read.stream().calls.size(), 1u);
  EXPECT_EQ(read.stream().calls[0].in_elements, 100);
  EXPECT_EQ(read.stream().calls[0].out_elements, 800);
  EXPECT_EQ(read.stream().calls[0].type, DataType::float32);
  EXPECT_EQ(read.fragment.measurements.at(0).bytes, 400);
}

TEST(Trap, CopyEngineCollectiveIsIssuedWithoutKernel) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(
                folder,
                [] {
                  Hand hand;
                  void* api = hand.Api();
                  hand.plugin.Stop(api);
                  CollFacts facts;
                  facts.seq = 5;
                  void* ce = hand.Start(EventDescriptor(6, kCeColl, api, 3).CeColl(facts));
                  EXPECT_IN_CHILD(ce != nullptr);
                  EXPECT_IN_CHILD(hand.Start(EventDescriptor(6, kCeSync, ce, 3)) == nullptr);
                  hand.plugin.Stop(ce);
                  _exit(0);
                },
                kSmall),
            0);
  const ReadBox read = OnlyBox(folder);
  ASSERT_EQ(read.fragment.in_flight.size(), 1u);
  EXPECT_FALSE(read.fragment.in_flight[0].tells_end);
  EXPECT_EQ(read.fragment.in_flight[0].host, HostStage::away);
}

TEST(Trap, MoreCommunicatorsThanRoomAreCountedAndHarmless) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(
                folder,
                [] {
                  std::vector<Hand> hands;
                  for (uint64_t i = 0; i < 40; ++i) hands.emplace_back(6, 0x100 + i);
                  for (Hand& hand : hands) hand.Run();
                  EXPECT_IN_CHILD(hands.back().context == nullptr);
                },
                kSmall),
            0);
  const ReadBox read = OnlyBox(folder);
  const uint64_t room = read.box.header.comms.count;
  EXPECT_EQ(read.box.comms.size(), room);
  EXPECT_EQ(read.box.header.drops[static_cast<int>(box::Drop::comm_table_full)], 40 - room);
  EXPECT_EQ(read.stream().calls.size(), room);
}

TEST(Box, IsPrivateAndInAPrivateFolder) {
  const BoxFolder folder;
  const mode_t before = umask(0);
  RunInChild(folder, [] { Hand(6).Run(); }, {{"TACET_JOB", "my job/../x"}, {"TACET_BOX_KB", "64"}});
  umask(before);
  const ReadBox read = OnlyBox(folder);
  struct stat seen {};
  ASSERT_EQ(stat(read.path.c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 07777, 0600u);
  const std::filesystem::path job = std::filesystem::path(read.path).parent_path();
  EXPECT_EQ(job.filename(), "my_job_.._x");
  ASSERT_EQ(stat(job.c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 07777, 0700u);
}

TEST(Box, NoRoomNoPermissionOrNoFolderLeavesTheJobAlone) {
  const BoxFolder folder;
  const auto runs_without = [] {
    Hand hand;
    EXPECT_IN_CHILD(hand.context == nullptr);
    EXPECT_IN_CHILD(hand.mask == 0);
    hand.Run();
    EXPECT_IN_CHILD(hand.Api() == nullptr);
  };
  EXPECT_EQ(RunInChild(folder, runs_without, {{"TACET_BOX_DIR", "/proc/nowhere"}}), 0);
  EXPECT_EQ(RunInChild(folder, runs_without, {{"TACET_BOX_DIR", "/dev/null"}}), 0);
  EXPECT_EQ(RunInChild(folder, runs_without, {{"TACET_BOX_MB", "0"}}), 0);
  EXPECT_EQ(RunInChild(folder,
                       [&] {
                         const rlimit none{1000, 1000};  // writing beyond it would raise SIGXFSZ
                         setrlimit(RLIMIT_FSIZE, &none);
                         runs_without();
                       }),
            0);
  EXPECT_TRUE(ReadBoxes(folder.path()).empty());
}

TEST(Box, TakesASmallerSizeWhenRoomIsShort) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(folder,
                       [] {
                         const rlimit little{300000, 300000};
                         setrlimit(RLIMIT_FSIZE, &little);
                         Hand().Run();
                       }),
            0);
  const ReadBox read = OnlyBox(folder);
  EXPECT_LE(read.box.header.file_bytes, 300000u);
  EXPECT_EQ(read.stream().calls.size(), 1u);
}

// A mapping of a full tmpfs kills with SIGBUS at the first store, unless its pages were reserved.
TEST(Box, FullMemoryFileSystemIsFoundOutWhenTheBoxIsMade) {
  const BoxFolder folder;
  const int status = RunInChild(folder, [&] {
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=1m") != 0)
      _exit(77);
    Hand hand;  // 8 MiB do not fit; something smaller does
    EXPECT_IN_CHILD(hand.context != nullptr);
    for (int i = 0; i < 20000; ++i) hand.Run();
    const auto boxes = ReadBoxes(folder.path());
    EXPECT_IN_CHILD(boxes.size() == 1 && boxes[0].box.header.file_bytes <= 1024 * 1024);
    std::ofstream(folder.path() + "/rest") << std::string(1024 * 1024, 'x');
    EXPECT_IN_CHILD(fork() != 0 || (Hand(6, 0x99).context == nullptr && (_exit(0), true)));
    int child = 0;
    wait(&child);
    EXPECT_IN_CHILD(child == 0);
  });
  if (status == 77 << 8) GTEST_SKIP() << "may not mount here";
  EXPECT_EQ(status, 0);
}

TEST(Box, SecondProcessWithTheSameNameDoesNotDestroyTheFirstOnesBox) {
  const BoxFolder folder;
  EXPECT_EQ(RunInChild(
                folder,
                [&] {
                  const std::string name = folder.path() + "/local/";
                  std::filesystem::create_directory(name);
                  chmod(name.c_str(), 0700);
                  char host[64] = {};
                  gethostname(host, sizeof host - 1);
                  std::ofstream(name + host + "-" + std::to_string(getpid()) + ".box") << "evidence";
                  Hand().Run();
                },
                kSmall),
            0);
  int boxes = 0, evidence = 0;
  for (const ReadBox& read : ReadBoxes(folder.path())) {
    boxes += read.box.trouble == BoxTrouble::none;
    evidence += read.box.trouble == BoxTrouble::not_a_box;
  }
  EXPECT_EQ(boxes, 1);
  EXPECT_EQ(evidence, 1);
}

TEST(Box, FolderOfSomebodyElseIsNotUsed) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to make a folder of another user";
  const BoxFolder folder;
  const std::string job = folder.path() + "/local";
  std::filesystem::create_directory(job);
  ASSERT_EQ(chown(job.c_str(), 12345, 12345), 0);
  EXPECT_EQ(RunInChild(
                folder, [] { Hand().Run(); }, kSmall),
            0);
  EXPECT_NE(OnlyBox(folder).path.find("/local.0/"), std::string::npos);
}

TEST(Box, KnowsItsJob) {
  const BoxFolder folder;
  RunInChild(folder, [] { Hand().Run(); },
             {{"SLURM_JOB_ID", "4711"},
              {"SLURM_STEP_ID", "2"},
              {"SLURM_PROCID", "5"},
              {"SLURM_NTASKS", "16"},
              {"TORCHELASTIC_RUN_ID", "run-a"},
              {"TORCHELASTIC_RESTART_COUNT", "1"},
              {"KUBERNETES_SERVICE_HOST", "10.0.0.1"},
              {"POD_NAME", "trainer-5"},
              {"POD_NAMESPACE", "ml"},
              {"TACET_BOX_KB", "64"}});
  const ReadBox read = OnlyBox(folder);
  const box::Header& header = read.box.header;
  EXPECT_STREQ(header.job, "4711");
  EXPECT_STREQ(header.slurm_job_id, "4711");
  EXPECT_STREQ(header.slurm_step_id, "2");
  EXPECT_STREQ(header.torchelastic_run_id, "run-a");
  EXPECT_STREQ(header.kubernetes_pod, "trainer-5");
  EXPECT_STREQ(header.kubernetes_namespace, "ml");
  EXPECT_EQ(header.restart_count, 1);
  EXPECT_EQ(header.rank, 5);
  EXPECT_EQ(header.world_size, 16);
  EXPECT_GT(header.process_start_jiffies, 0u);
  EXPECT_EQ(std::string(header.boot_id).size(), 36u);
  EXPECT_EQ(read.fragment.speakers.at(0).rank_certainty, Certainty::stated);
}

// The Hand's communicator is rank 3 of 8.
TEST(Box, SlurmsWordForAScriptIsNotTakenForTheRanksItMakes) {
  const struct {
    Environment environment;
    int rank, world;
  } kCases[] = {
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}, 3, 8},               // python train.py, which makes eight
      {{{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}, 3, 8},               // the same where eight were asked for
      {{{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}}, 3, 8},               // srun
      {{{"SLURM_PROCID", "6"}, {"SLURM_NTASKS", "16"}}, 6, 16},             // srun, and a group of half the world
      {{{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"SLURM_PROCID", "0"}}, 0, 2},  // torchrun knows
      {{{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "4"}}, 3, 4},
  };
  for (const auto& one : kCases) {
    const BoxFolder folder;
    Environment environment = one.environment;
    environment["TACET_BOX_KB"] = "64";
    RunInChild(
        folder, [] { Hand().Run(); }, environment);
    const ReadBox read = OnlyBox(folder);
    EXPECT_EQ(read.box.header.rank, one.rank) << one.environment.begin()->first;
    EXPECT_EQ(read.box.header.world_size, one.world) << one.environment.begin()->first;
  }
}

TEST(Box, EndedBoxesOfEarlierJobsAreSweptAndOthersStay) {
  const BoxFolder folder;
  for (const char* job : {"ended", "killed"})
    RunInChild(folder,
               [&] {
                 Hand().Run();
                 if (std::string(job) == "killed") _exit(0);
               },
               {{"TACET_JOB", job}, {"TACET_BOX_KB", "64"}, {"TACET_HEARTBEAT_MS", "0"}});
  ASSERT_EQ(ReadBoxes(folder.path()).size(), 2u);
  // Make both look two hours old.
  for (const ReadBox& read : ReadBoxes(folder.path())) {
    std::fstream file(read.path, std::ios::in | std::ios::out | std::ios::binary);
    for (int i = 0; i < 2; ++i) {
      const int64_t old = read.box.header.latest[0].wall_ns - int64_t{7200} * 1'000'000'000;
      file.seekp(static_cast<long>(offsetof(box::Header, latest) + sizeof(box::ClockPair) * static_cast<size_t>(i) +
                                   offsetof(box::ClockPair, wall_ns)));
      file.write(reinterpret_cast<const char*>(&old), 8);
    }
  }
  RunInChild(folder,
             [] {
               Hand hand;
               usleep(200000);
             },
             {{"TACET_JOB", "next"}, {"TACET_BOX_KB", "64"}});
  std::vector<std::string> jobs;
  for (const ReadBox& read : ReadBoxes(folder.path())) jobs.push_back(read.box.header.job);
  std::sort(jobs.begin(), jobs.end());
  EXPECT_EQ(jobs, (std::vector<std::string>{"killed", "next"}));
}

}  // namespace
}  // namespace tacet::fake
