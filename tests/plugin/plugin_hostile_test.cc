// SPDX-License-Identifier: Apache-2.0
// What other users of the host can do to a job's plugin. The job must go on, and must not lose its box to a planted
// folder.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/plugin/box_reading.h"
#include "tests/plugin/hand_events.h"

namespace tacet::fake {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kVictim = 54321, kAttacker = 54322;

// A process with one communicator, all events by hand.
struct Job {
  Job() : plugin(LoadedPlugin::Open(PluginPath(), 6)) {
    comm.plugin = &plugin;
    comm.pid = getpid();
    comm.hash = 0x99;
    int mask = 0;
    plugin.Init(&comm.context, &mask, {comm.hash, "watched", 2, 4, 2});
  }
  void Run(int times) {
    for (int i = 0; i < times; ++i) comm.RunCollective({}, 2, true);
  }
  LoadedPlugin plugin;
  HandComm comm;
};

std::vector<std::string> BoxesUnder(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied))
    if (entry.path().extension() == ".box") found.push_back(entry.path());
  return found;
}

[[noreturn]] void Fail(const char* why) {
  std::fprintf(stderr, "%s\n", why);
  _exit(1);
}

TEST(Hostile, ABoxThatIsCutUnderALiveProcessDoesNotEndIt) {
  for (const off_t left : {off_t{0}, off_t{4096}, off_t{64 * 1024}}) {
    const BoxFolder folder;
    const int status = RunInChild(folder,
                                  [&] {
                                    Job job;
                                    job.Run(200);
                                    for (const std::string& box : BoxesUnder(folder.path()))
                                      if (truncate(box.c_str(), left) != 0) Fail("cannot cut");
                                    job.Run(2000);
                                    usleep(100'000);  // the keeper beats as well
                                    job.Run(2000);
                                  },
                                  {{"TACET_HEARTBEAT_MS", "10"}, {"TACET_BOX_KB", "1024"}});
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << ", cut to " << left;
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
}

TEST(Hostile, ACutBoxIsSurvivedByAllThreadsAtOnce) {
  const BoxFolder folder;
  const int status = RunInChild(folder,
                                [&] {
                                  Job job;
                                  std::vector<std::thread> threads;
                                  for (int i = 0; i < 4; ++i)
                                    threads.emplace_back([&] {
                                      HandComm own = job.comm;
                                      for (int n = 0; n < 5000; ++n) own.RunCollective({}, 2, true);
                                    });
                                  for (const std::string& box : BoxesUnder(folder.path()))
                                    if (truncate(box.c_str(), 0) != 0) Fail("cannot cut");
                                  for (std::thread& thread : threads) thread.join();
                                },
                                {{"TACET_BOX_KB", "1024"}});
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
}

volatile sig_atomic_t g_own_errors = 0;

// The handler is there for the box alone: whoever dies of another bus error still does, and who handles them still
// does.
TEST(Hostile, OtherBusErrorsGoWhereTheyWentBefore) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer handles bus errors itself";
#endif
  const BoxFolder folder;
  const auto touch_cut_file = [&] {
    const std::string path = folder.path() + "/other";
    const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    void* memory =
        ftruncate(fd, 4096) == 0 ? mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (memory == MAP_FAILED || ftruncate(fd, 0) != 0) Fail("cannot map");
    *static_cast<volatile char*>(memory) = 1;
  };
  int status = RunInChild(folder, [&] { Job().Run(3), touch_cut_file(); }, {});
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) << status;
  status = RunInChild(folder, [&] { Job().Run(3), raise(SIGBUS); }, {});
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) << status;
  status = RunInChild(folder,
                      [&] {
                        signal(SIGBUS, [](int) { _exit(42); });
                        Job().Run(3);
                        touch_cut_file();
                      },
                      {});
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << status;
  status = RunInChild(folder,
                      [&] {
                        signal(SIGBUS, [](int) { g_own_errors = 1; });
                        Job().Run(3);
                        raise(SIGBUS);
                        if (g_own_errors != 1) Fail("the job's own handler was not called");
                      },
                      {});
  EXPECT_EQ(status, 0);
}

// mkdir 888 by one user, before the other's job of that name begins.
TEST(Hostile, FoldersThatAnotherUserTookBeforehandLeaveTheJobWithABox) {
  if (getuid() != 0) GTEST_SKIP() << "needs root to be two users";
  const BoxFolder folder;
  ASSERT_EQ(chmod(folder.path().c_str(), 01777), 0);
  std::vector<std::string> taken = {"888"};
  for (int i = 0; i < 8; ++i)
    taken.push_back("888." + std::to_string(kVictim) + (i == 0 ? "" : "." + std::to_string(i)));
  for (const std::string& name : taken) {
    const std::string path = folder.path() + "/" + name;
    ASSERT_EQ(mkdir(path.c_str(), 0777), 0);
    ASSERT_EQ(chmod(path.c_str(), 0777), 0);
    ASSERT_EQ(chown(path.c_str(), kAttacker, kAttacker), 0);
  }
  const auto as_victim = [] {
    if (setgid(kVictim) != 0 || setuid(kVictim) != 0) Fail("cannot be another user");
    Job().Run(20);
  };
  EXPECT_EQ(RunInChild(folder, as_victim, {{"TACET_JOB", "888"}}), 0);
  const std::vector<std::string> boxes = BoxesUnder(folder.path());
  ASSERT_EQ(boxes.size(), 1u);
  const std::string home = fs::path(boxes[0]).parent_path();
  struct stat seen {};
  ASSERT_EQ(lstat(home.c_str(), &seen), 0);
  EXPECT_EQ(seen.st_uid, kVictim);
  EXPECT_EQ(seen.st_mode & 0777, 0700u);
  EXPECT_EQ(fs::path(home).filename().string().rfind("888." + std::to_string(kVictim) + ".", 0), 0u) << home;
}

TEST(Hostile, JsonFilesAreTheUsersOwnAndNoPlantedFileIsWrittenTo) {
  const BoxFolder folder;
  const std::string json = folder.path() + "/json", bait = folder.path() + "/bait";
  fs::create_directory(json);
  std::ofstream(bait) << "precious";
  const int status = RunInChild(folder,
                                [&] {
                                  char host[64] = {};
                                  gethostname(host, sizeof host - 1);
                                  const std::string name =
                                      json + "/" + std::string(host) + "-pid" + std::to_string(getpid());
                                  fs::create_symlink(bait, name + ".log");
                                  fs::create_hard_link(bait, name + "-1.log");
                                  std::ofstream(name + "-2.log") << "";
                                  chmod((name + "-2.log").c_str(), 0666);
                                  Job().Run(5);
                                },
                                {{"TACET_JSON_DIR", json}});
  EXPECT_EQ(status, 0);
  EXPECT_EQ(fs::file_size(bait), 8u);
  size_t written = 0;
  for (const auto& entry : fs::directory_iterator(json)) {
    if (entry.is_symlink() || entry.path().string().find("-1.log") != std::string::npos) continue;
    if (entry.path().string().find("-2.log") != std::string::npos) {
      EXPECT_EQ(fs::file_size(entry.path()), 0u);
      continue;
    }
    ++written;
    EXPECT_GT(fs::file_size(entry.path()), 0u);
    EXPECT_EQ(fs::status(entry.path()).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  }
  EXPECT_EQ(written, 1u);
}

}  // namespace
}  // namespace tacet::fake
