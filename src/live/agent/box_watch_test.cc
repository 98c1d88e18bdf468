// SPDX-License-Identifier: Apache-2.0
#include "live/agent/box_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "live/agent/hang_watch.h"
#include "live/agent/operation_metrics.h"
#include "live/state_metrics.h"

namespace tacet {
namespace {

namespace fs = std::filesystem;

std::string SampleBox() {
  std::ifstream in(TACET_SOURCE_DIR "/src/evidence/black_box/samples/healthy_rank0.box", std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Folder {
 public:
  explicit Folder(const char* below = "/tmp") {
    path_ = std::string(below) + "/tacet-watch-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string Write(const std::string& name, const std::string& bytes, int64_t uid = -1) const {
    const std::string path = path_ + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    if (uid >= 0 && ::chown(path.c_str(), static_cast<uid_t>(uid), static_cast<gid_t>(uid)) != 0) std::abort();
    return path;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

HostState LookOnce(const std::string& root, BoxWatchOptions options = {}) {
  options.root = root;
  BoxWatch watch(options);
  return watch.Look(1'000'000'000, [](const FinishedOperation&) {});
}

std::map<std::string, std::string> TroublesOf(const HostState& state) {
  std::map<std::string, std::string> troubles;
  for (const BoxState& box : state.boxes) troubles[box.name] = box.trouble;
  return troubles;
}

TEST(BoxWatch, LinksAreFollowedNowhere) {
  const Folder elsewhere, folder;
  elsewhere.Write("job/x.box", SampleBox());
  folder.Write("good/x.box", SampleBox());
  fs::create_directory_symlink(elsewhere.path() + "/job", folder.path() + "/linked");
  fs::create_symlink(elsewhere.path() + "/job/x.box", folder.path() + "/good/link.box");
  const auto troubles = TroublesOf(LookOnce(folder.path()));
  EXPECT_EQ(troubles, (std::map<std::string, std::string>{{"good/link.box", "unreadable"}, {"good/x.box", ""}}));
}

TEST(BoxWatch, TellsWhoseABoxIsFromTheFileItself) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const Folder folder;
  folder.Write("job/a.box", SampleBox(), 64201);
  folder.Write("job/b.box", SampleBox(), 64202);
  const HostState state = LookOnce(folder.path());
  ASSERT_EQ(state.boxes.size(), 2u);
  EXPECT_EQ(state.boxes[0].uid, 64201);
  EXPECT_EQ(state.boxes[1].uid, 64202);
}

TEST(BoxWatch, UsersTakeTurnsWhenThereAreTooManyBoxes) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const Folder folder;
  folder.Write("v/victim.box", SampleBox(), 64201);
  for (int i = 0; i < 50; ++i) folder.Write("a/" + std::to_string(i) + ".box", SampleBox(), 64202);
  BoxWatchOptions options;
  options.most_boxes = 10;
  options.root = folder.path();
  BoxWatch watch(options);
  const HostState state = watch.Look(1, [](const FinishedOperation&) {});
  EXPECT_EQ(state.boxes.size(), 10u);
  EXPECT_EQ(TroublesOf(state).count("v/victim.box"), 1u);
  EXPECT_EQ(watch.listing().left_out_of.at(64202), 41u);
}

TEST(BoxWatch, TheNewestBoxesOfAUserAreReadWithinItsQuota) {
  const Folder folder;
  for (const char* name : {"old.box", "new.box"}) {
    folder.Write(name, SampleBox());
    ::usleep(30000);
  }
  bool sparse = false;
  auto reader = BoxFileReader::Open(folder.path() + "/new.box");
  ASSERT_TRUE(reader.ok());
  BoxWatchOptions options;
  options.most_bytes_of_user = reader->TableBytes(&sparse) * 3 / 2;
  const auto troubles = TroublesOf(LookOnce(folder.path(), options));
  EXPECT_EQ(troubles.at("new.box"), "");
  EXPECT_EQ(troubles.at("old.box"), "over-quota");
}

// In memory the plugin reserves all pages of a box, so a box with holes is made up: it costs a header, and no more.
TEST(BoxWatch, SparseBoxesInMemoryAreSkipped) {
  struct statfs where {};
  if (::statfs("/dev/shm", &where) != 0 || where.f_type != 0x01021994 || ::access("/dev/shm", W_OK) != 0)
    GTEST_SKIP() << "/dev/shm is not in memory here";
  const Folder folder("/dev/shm");
  const std::string box = SampleBox();
  folder.Write("good.box", box);
  const auto path_of = [](int i) { return "sparse" + std::to_string(i) + ".box"; };
  for (int i = 0; i < 300; ++i) {
    const std::string path = folder.Write(path_of(i), box.substr(0, 4096));
    ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(box.size())), 0);
  }
  const auto troubles = TroublesOf(LookOnce(folder.path()));
  EXPECT_EQ(troubles.at("good.box"), "");
  for (int i = 0; i < 300; ++i) EXPECT_EQ(troubles.at(path_of(i)), "bad-layout");
}

TEST(BoxWatch, TablesLargerThanAnyThatIsWrittenAreNotRead) {
  const Folder folder;
  std::string bytes = SampleBox();
  box::Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.comms = {sizeof header, 131072, sizeof(box::Comm)};
  header.ops = {sizeof header + 131072 * sizeof(box::Comm), 131072, sizeof(box::OpSlot)};
  header.file_bytes = uint64_t{1} << 30;
  std::memcpy(bytes.data(), &header, sizeof header);
  const std::string path = folder.Write("large.box", bytes);
  ASSERT_EQ(::truncate(path.c_str(), off_t{1} << 30), 0);
  EXPECT_EQ(TroublesOf(LookOnce(folder.path())).at("large.box"), "bad-layout");
}

size_t SeriesIn(const std::string& text) {
  size_t lines = 0;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) lines += text[at] != '#';
  return lines;
}

// What one user can make of a scrape: a thousand jobs with a thousand groups each.
TEST(OperationMetrics, OneUserCannotMakeMoreThanItsShareOfSeries) {
  OperationMetrics metrics;
  AgentState state;
  for (int job = 0; job < 1000; ++job) {
    BoxState box;
    box.uid = 64202;
    box.job = "planted" + std::to_string(job);
    box.rank = job;
    box.sight = ProcessSight::running;
    state.host.boxes.push_back(box);
  }
  const box::Op op{};
  for (const BoxState& box : state.host.boxes)
    for (int kind = 1; kind <= 10; ++kind)
      for (int64_t bytes = 1; bytes < int64_t{1} << 40; bytes *= 64) {
        CommState comm;
        comm.name = "group" + std::to_string(bytes);
        metrics.Add({.box = &box,
                     .comm = &comm,
                     .op = &op,
                     .kind = static_cast<OpKind>(kind),
                     .bytes = bytes,
                     .duration_ns = 1000,
                     .bus_bytes_per_second = 1e9});
      }
  BoxState victim;
  victim.uid = 64201;
  victim.job = "real";
  metrics.Add({.box = &victim, .op = &op, .kind = OpKind::all_reduce, .bytes = 8, .duration_ns = 1000});
  std::vector<MetricFamily> families;
  metrics.AppendTo(families, {.sees_all = true});
  AppendStateMetrics(state, {.sees_all = true}, families);
  const std::string text = RenderPrometheus(families);
  EXPECT_LT(SeriesIn(text), 50'000u);
  EXPECT_NE(text.find("tacet_operation_bytes_total{job_id=\"real\",uid=\"64201\""), std::string::npos);
  families.clear();
  metrics.AppendTo(families, {.uid = 64201});
  AppendStateMetrics(state, {.uid = 64201}, families);
  EXPECT_EQ(RenderPrometheus(families).find("planted"), std::string::npos);
}

// A box with another job in its header.
std::string BoxOfJob(const std::string& job) {
  std::string bytes = SampleBox();
  box::Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memset(header.job, 0, sizeof header.job);
  job.copy(header.job, sizeof header.job - 1);
  std::memcpy(bytes.data(), &header, sizeof header);
  return bytes;
}

TEST(BoxWatch, NobodyCanClaimToBeOfANamespace) {
  const Folder folder;
  folder.Write("job/x.box", BoxOfJob("team-a/train"));
  const HostState state = LookOnce(folder.path());
  ASSERT_EQ(state.boxes.size(), 1u);
  EXPECT_EQ(state.boxes[0].job, "team-a_train");
}

TEST(BoxWatch, ASecretInAJobsNameReachesNoLabel) {
  const std::string secret = "hf_" + std::string("abcdefghijklmnopqrstuvwxyzABCDEFGH");
  const Folder folder;
  folder.Write("job/x.box", BoxOfJob("train " + secret));
  AgentState state;
  state.host = LookOnce(folder.path());
  ASSERT_EQ(state.host.boxes.size(), 1u);
  EXPECT_EQ(state.host.boxes[0].trouble, "");
  std::vector<MetricFamily> families;
  AppendStateMetrics(state, {.sees_all = true}, families);
  const std::string text = RenderPrometheus(families);
  EXPECT_NE(text.find("job_id=\"train"), std::string::npos);
  EXPECT_EQ(text.find(secret), std::string::npos);
}

TEST(HangWatch, JobsOfTwoUsersAreTwoJobs) {
  HangWatch watch;
  BoxState stuck, moving;
  for (BoxState* box : {&stuck, &moving}) {
    box->job = "888";
    box->sight = ProcessSight::running;
    box->comms.push_back({.id = 1, .rank = 0, .size = 2, .issued = 101, .finished = 100});
    box->operations.push_back({.comm = 1, .kind = OpKind::all_reduce, .seq = 101, .normal_ns = 1'000'000});
  }
  stuck.name = "v.box", stuck.uid = 64201;
  moving.name = "a.box", moving.uid = 64202;
  std::vector<HangSuspicion> hangs;
  for (int second = 0; second < 60; ++second) {
    const int64_t now = int64_t{second} * 1'000'000'000;
    stuck.operations[0].age_ns = now;
    ++moving.comms[0].finished, ++moving.operations[0].seq;
    hangs = watch.Look({&stuck, &moving}, now, now);
  }
  ASSERT_EQ(hangs.size(), 1u);
  EXPECT_EQ(hangs[0].uid, 64201);
}

}  // namespace
}  // namespace tacet
