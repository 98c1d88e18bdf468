// SPDX-License-Identifier: Apache-2.0
#include "live/agent/box_finder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "live/agent/box_watch.h"

namespace tacet {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// A box folder as a node has it; what root makes in it are folders of pods.
class BoxTree {
 public:
  BoxTree() {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~BoxTree() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  // A name is all that the search looks at.
  void PutName(const std::string& name, int64_t uid = -1) const {
    fs::create_directories(fs::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name) << "x";
    if (uid >= 0) Give(name, uid);
  }
  void Put(const std::string& name, int64_t uid = -1) const {
    PutName(name, uid);
    static const std::string box = [] {
      std::ifstream in(TACET_SOURCE_DIR "/src/evidence/black_box/samples/healthy_rank0.box", std::ios::binary);
      return std::string(std::istreambuf_iterator<char>(in), {});
    }();
    std::ofstream(path_ + "/" + name, std::ios::binary) << box;
  }
  void Give(const std::string& name, int64_t uid) const {
    if (::lchown((path_ + "/" + name).c_str(), static_cast<uid_t>(uid), static_cast<gid_t>(uid)) != 0) std::abort();
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/tacet-tree-XXXXXX";
};

Names NamesIn(const BoxListing& listing) {
  Names names;
  for (const FoundBox& box : listing.boxes) names.push_back(box.name);
  return names;
}

bool Holds(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// deploy/kubernetes/job-part.yaml: the node's folder holds one folder a pod, and that the folder of the job.
TEST(BoxFinder, FindsTheBoxesOfPodsAndThoseOfPlainJobs) {
  const BoxTree tree;
  const Names all = {"4711/node-1.box", "default_train-0/train/node-1.box", "default_train-1/train/node-1.box",
                     "loose.box", "research/train-0/train/node-1.box"};
  for (const std::string& name : all) tree.Put(name);
  tree.Put("a/b/c/d/too-deep.box");
  const BoxListing listing = ListBoxes(tree.path(), {});
  EXPECT_EQ(NamesIn(listing), all);
  EXPECT_TRUE(listing.whole);
  BoxWatch watch({.root = tree.path()});
  const HostState state = watch.Look(1'000'000'000, [](const FinishedOperation&) {});
  ASSERT_EQ(state.boxes.size(), all.size());
  for (const BoxState& box : state.boxes) EXPECT_EQ(box.trouble, "") << box.name;
}

TEST(BoxFinder, FollowsNoLinkAtAnyDepth) {
  const BoxTree elsewhere, tree;
  elsewhere.Put("job/x.box");
  elsewhere.Put("pod/job/x.box");
  tree.Put("pod/job/good.box");
  tree.Put("ns/pod/job/good.box");
  fs::create_directory_symlink(elsewhere.path() + "/pod", tree.path() + "/linked");
  fs::create_directory_symlink(elsewhere.path() + "/job", tree.path() + "/pod/linked");
  fs::create_directory_symlink(elsewhere.path() + "/pod", tree.path() + "/ns/linked");
  fs::create_directory_symlink("/", tree.path() + "/ns/pod/root");
  EXPECT_EQ(NamesIn(ListBoxes(tree.path(), {})), (Names{"ns/pod/job/good.box", "pod/job/good.box"}));
}

// Whoever swaps a folder for a link between two looks leads the agent nowhere.
TEST(BoxFinder, AFolderThatBecomesALinkIsNotFollowedLater) {
  const BoxTree elsewhere, tree;
  elsewhere.Put("job/x.box");
  tree.Put("pod/job/x.box");
  const int root = OpenBoxRoot(tree.path());
  ASSERT_GE(root, 0);
  std::string file;
  const int before = OpenFolderOfBox(root, "pod/job/x.box", &file);
  EXPECT_GE(before, 0);
  EXPECT_EQ(file, "x.box");
  ::close(before);
  fs::remove_all(tree.path() + "/pod");
  fs::create_directory_symlink(elsewhere.path(), tree.path() + "/pod");
  EXPECT_LT(OpenFolderOfBox(root, "pod/job/x.box", &file), 0);
  EXPECT_LT(OpenFolderOfBox(root, "../etc/x.box", &file), 0);
  ::close(root);
}

TEST(BoxFinder, ADeepTreeCostsNoMoreThanItsFirstFolders) {
  const BoxTree tree;
  std::string deep = "pod";
  for (int i = 0; i < 40; ++i) deep += "/d";
  fs::create_directories(tree.path() + "/" + deep);
  tree.Put("pod/job/good.box");
  const BoxListing listing = ListBoxes(tree.path(), {.most_entries = 8});  // pod, job, d, d, d and the box
  EXPECT_TRUE(listing.whole);
  EXPECT_EQ(NamesIn(listing), Names{"pod/job/good.box"});
}

// All pods of a node may run as one user, and name their jobs alike: by chance, or to be taken for another's.
TEST(BoxFinder, JobsOfTwoNamespacesAreTwoJobs) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes folders of pods";
  const BoxTree tree;
  for (const char* name : {"4711/node-1.box", "my_job/node-1.box", "team-a_train-0/train/node-1.box",
                           "team-a_train-1/train/node-1.box", "team-b/train-0/train/node-1.box"})
    tree.Put(name);
  BoxWatch watch({.root = tree.path()});
  const HostState state = watch.Look(1'000'000'000, [](const FinishedOperation&) {});
  ASSERT_EQ(state.boxes.size(), 5u);
  const std::string own = state.boxes[0].job;
  EXPECT_EQ(own.find('/'), std::string::npos);
  EXPECT_EQ(state.boxes[1].job, own);
  EXPECT_EQ(state.boxes[2].job, "team-a/" + own);
  EXPECT_TRUE(JobOf(state.boxes[2]) == JobOf(state.boxes[3]));
  EXPECT_EQ(state.boxes[4].job, "team-b/" + own);
}

TEST(BoxFinder, APodThatFillsItsFolderHidesNoOtherPod) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes folders of pods";
  const BoxTree tree;
  tree.Put("default_victim/train/node-1.box");
  for (int i = 0; i < 60; ++i) {
    tree.PutName("default_evil/j" + std::to_string(i) + "/node.box");  // of the same uid 0
    tree.PutName("default_evil/many/" + std::to_string(i) + ".box", 70000 + i);
  }
  const BoxListing listing = ListBoxes(tree.path(), {.most_boxes = 4, .most_entries_of_user = 20});
  EXPECT_EQ(listing.boxes.size(), 4u);
  EXPECT_TRUE(Holds(NamesIn(listing), "default_victim/train/node-1.box"));
  EXPECT_GT(listing.left_out, 40u);
}

TEST(BoxFinder, TheBoxesOfAPodShareOneQuotaWhoeverTheyAreGivenTo) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const BoxTree tree;
  tree.Put("default_victim/train/node-1.box", 70001);
  for (int i = 0; i < 6; ++i) tree.Put("default_evil/j/" + std::to_string(i) + ".box", 70001 + i);
  bool sparse = false;
  auto reader = BoxFileReader::Open(tree.path() + "/default_victim/train/node-1.box");
  ASSERT_TRUE(reader.ok());
  BoxWatch watch({.root = tree.path(), .most_bytes_of_user = reader->TableBytes(&sparse) * 5 / 2});
  size_t over = 0;
  for (const BoxState& box : watch.Look(1'000'000'000, [](const FinishedOperation&) {}).boxes) {
    if (box.name.starts_with("default_victim")) {
      EXPECT_EQ(box.trouble, "");
    }
    over += box.trouble == "over-quota" ? 1 : 0;
  }
  EXPECT_GE(over, 4u);
}

TEST(BoxFinder, FoldersOfPodsThatEndedLongAgoHideNoPod) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes folders of pods";
  const BoxTree tree;
  for (int i = 0; i < 60; ++i) fs::create_directory(tree.path() + "/default_old-" + std::to_string(i));
  tree.Put("default_train/train/node-1.box");
  EXPECT_EQ(ListBoxes(tree.path(), {.most_entries_of_user = 20}).boxes.size(), 1u);
}

TEST(BoxFinder, AnEndedBoxGoesWithItsJobFolderAndThePodsMountStays) {
  const BoxTree tree;
  tree.Put("default_train/train/node-1.box");
  BoxWatch watch({.root = tree.path()});
  watch.Look(1'000'000'000, [](const FinishedOperation&) {});
  EXPECT_TRUE(watch.Remove("default_train/train/node-1.box"));
  EXPECT_FALSE(fs::exists(tree.path() + "/default_train/train"));
  EXPECT_TRUE(fs::exists(tree.path() + "/default_train"));
}

}  // namespace
}  // namespace tacet
