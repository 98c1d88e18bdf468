// SPDX-License-Identifier: Apache-2.0
#include "live/box_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tacet {
namespace {

constexpr int kFoldersDeep = 2;  // root/job/host-pid.box, and boxes right below the root
constexpr size_t kMostEntries = 65536;

// Names below `folder` that end in .box; folders and links that lead elsewhere are not followed.
void FindBoxes(const std::string& folder, const std::string& prefix, int depth, std::vector<std::string>& out) {
  DIR* open = ::opendir(folder.c_str());
  if (open == nullptr) return;
  while (const dirent* entry = ::readdir(open)) {
    const std::string name = entry->d_name;
    if (name.empty() || name[0] == '.' || out.size() >= kMostEntries) continue;
    if (name.ends_with(".box")) {
      out.push_back(prefix + name);
      continue;
    }
    struct stat seen {};
    if (depth > 1 && ::fstatat(::dirfd(open), entry->d_name, &seen, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(seen.st_mode))
      FindBoxes(folder + "/" + name, prefix + name + "/", depth - 1, out);
  }
  ::closedir(open);
}

template <size_t n>
std::string TextIn(const char (&text)[n]) {
  return std::string(text, ::strnlen(text, n));
}

// What the box's own wall clock would show now. Somebody may set the clock at any moment, and the box learns of it with
// its next beat, if there is one; the monotonic clock goes on, and all processes of a host share it.
int64_t WallOfBox(const box::Header& header, int64_t wall_ns) {
  const box::ClockPair& pair = header.latest[header.clock_updates % 2];
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t now_ns = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  const bool sane =
      pair.monotonic_ns > 0 && pair.monotonic_ns <= now_ns && pair.wall_ns > 0 && pair.wall_ns < INT64_MAX / 2;
  return sane ? pair.wall_ns + (now_ns - pair.monotonic_ns) : wall_ns;
}

// A node that has seen many jobs crash may hold more boxes than are watched; the newest matter.
size_t KeepNewest(const std::string& root, size_t most, std::vector<std::string>& names) {
  if (names.size() <= most) return 0;
  std::vector<std::pair<int64_t, std::string>> by_age;
  for (std::string& name : names) {
    struct stat seen {};
    const bool known = ::lstat((root + "/" + name).c_str(), &seen) == 0;
    by_age.emplace_back(known ? -(int64_t{seen.st_ctim.tv_sec} * 1'000'000'000 + seen.st_ctim.tv_nsec) : 0,
                        std::move(name));
  }
  std::sort(by_age.begin(), by_age.end());
  names.clear();
  for (size_t i = 0; i < most; ++i) names.push_back(std::move(by_age[i].second));
  return by_age.size() - most;
}

}  // namespace

struct BoxWatch::Watched {
  explicit Watched(BoxFileReader opened) : reader(std::move(opened)) {}
  BoxFileReader reader;
  BoxFileReader::RingPlace place;
  bool beats_elsewhere = false;  // it beats though /proc does not know it: another pid namespace
  uint64_t heartbeats = 0;
  bool was_gone = false;
};

BoxWatch::BoxWatch(BoxWatchOptions options) : options_(std::move(options)), processes_(options_.proc) {}
BoxWatch::~BoxWatch() = default;

void BoxWatch::Find() {
  struct stat seen {};
  root_exists_ = ::stat(options_.root.c_str(), &seen) == 0 && S_ISDIR(seen.st_mode);
  std::vector<std::string> names;
  root_error_ = root_exists_ && ::access(options_.root.c_str(), R_OK | X_OK) != 0 ? errno : 0;
  if (root_exists_) FindBoxes(options_.root, "", kFoldersDeep, names);
  left_out_ = KeepNewest(options_.root, options_.most_boxes, names);
  std::sort(names.begin(), names.end());
  std::erase_if(boxes_, [&](const auto& entry) {
    return !std::binary_search(names.begin(), names.end(), entry.first) ||
           (entry.second && !entry.second->reader.IsStillAt(AT_FDCWD, options_.root + "/" + entry.first));
  });
  for (const std::string& name : names) {
    auto found = boxes_.find(name);
    if (found == boxes_.end()) found = boxes_.emplace(name, nullptr).first;
    if (found->second) continue;  // a box that could not be opened is tried again every time
    if (auto reader = BoxFileReader::Open(options_.root + "/" + name))
      found->second = std::make_unique<Watched>(std::move(*reader));
  }
}

HostState BoxWatch::Look(int64_t wall_ns, const std::function<void(const FinishedOperation&)>& finished) {
  Find();
  HostState state;
  state.wall_ns = wall_ns;
  for (auto& [name, watched] : boxes_) {
    BoxState box;
    if (watched) {
      box = LookAt(name, *watched, wall_ns, finished);
    } else {
      auto reader = BoxFileReader::Open(options_.root + "/" + name);
      box.trouble = "unreadable";
      box.reason = "cannot be opened";
      if (!reader)
        box.reason = reader.error().message + (reader.error().hint.empty() ? "" : "; " + reader.error().hint);
    }
    box.name = name;
    state.boxes.push_back(std::move(box));
  }
  return state;
}

BoxState BoxWatch::LookAt(const std::string& name, Watched& watched, int64_t wall_ns,
                          const std::function<void(const FinishedOperation&)>& finished) {
  const std::string copy = watched.reader.Copy(0);
  const BlackBox box = ParseBlackBox(copy);
  const box::Header& header = box.header;
  const bool same_boot = !processes_.boot_id().empty() && TextIn(header.boot_id) == processes_.boot_id();
  BoxState state = DescribeBox(copy, box, same_boot ? WallOfBox(header, wall_ns) : wall_ns, options_.most_operations);
  state.name = name;
  if (!state.trouble.empty()) return state;
  state.same_boot = same_boot;
  state.sight =
      processes_.Look({header.pid, header.process_start_jiffies, TextIn(header.boot_id), header.pid_namespace});
  // In a container the pid is one of its own namespace, which /proc of the host does not know by that number.
  const bool gone = state.sight == ProcessSight::gone;
  if (gone && watched.was_gone && header.heartbeats > watched.heartbeats) watched.beats_elsewhere = true;
  watched.heartbeats = header.heartbeats;
  watched.was_gone = gone;
  if (watched.beats_elsewhere && state.sight == ProcessSight::gone) state.sight = ProcessSight::unknown;
  watched.reader.Follow(watched.place, [&](const box::Op& op) { finished(DescribeFinished(box, state, op)); });
  state.lapped = watched.place.lapped;
  state.torn = watched.place.torn;
  return state;
}

std::string BoxWatch::CopyBox(const std::string& name, uint32_t newest) const {
  const auto found = boxes_.find(name);
  return found == boxes_.end() || !found->second ? "" : found->second->reader.Copy(newest);
}

// The folder of a box, never through a link: its owner may be anybody, and the agent may be root.
int BoxWatch::OpenFolderOf(const std::string& name, std::string* file) const {
  const size_t slash = name.rfind('/');
  *file = name.substr(slash == std::string::npos ? 0 : slash + 1);
  const int root = ::open(options_.root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (root < 0 || slash == std::string::npos) return root;
  const int folder = ::openat(root, name.substr(0, slash).c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  ::close(root);
  return folder;
}

bool BoxWatch::Remove(const std::string& name) {
  const auto found = boxes_.find(name);
  if (found == boxes_.end() || !found->second) return false;
  std::string file;
  const int folder = OpenFolderOf(name, &file);
  if (folder < 0) return false;
  const bool removed = found->second->reader.IsStillAt(folder, file) && ::unlinkat(folder, file.c_str(), 0) == 0;
  ::close(folder);
  if (!removed) return false;
  boxes_.erase(found);
  const size_t slash = name.rfind('/');
  if (slash != std::string::npos) ::rmdir((options_.root + "/" + name.substr(0, slash)).c_str());  // only when empty
  return true;
}

void BoxWatch::MarkEvidence(const std::string& name) const {
  std::string file;
  const int folder = OpenFolderOf(name, &file);
  if (folder < 0) return;
  const int mark =
      ::openat(folder, (file + ".keep").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (mark >= 0) ::close(mark);
  ::close(folder);
}

bool BoxWatch::IsEvidence(const std::string& name) const {
  struct stat seen {};
  return ::lstat((options_.root + "/" + name + ".keep").c_str(), &seen) == 0;
}

}  // namespace tacet
