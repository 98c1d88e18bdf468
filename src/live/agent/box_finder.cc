// SPDX-License-Identifier: Apache-2.0
#include "live/agent/box_finder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <string_view>
#include <utility>

namespace tacet {
namespace {

constexpr int kBoxFoldersDeep = 4;  // root/namespace/pod/job/host-pid.box; without pods, or users, less
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

using PlaceAndUser = std::pair<std::string, int64_t>;

class BoxLister {
 public:
  explicit BoxLister(const BoxFindLimits& limits) : limits_(limits) {}

  void List(int folder, const std::string& prefix, const std::string& place, int depth) {
    DIR* const open = ::fdopendir(folder);
    if (open == nullptr) {
      listing.whole = false;
      ::close(folder);
      return;
    }
    while (const dirent* entry = ::readdir(open)) {
      const std::string_view name = entry->d_name;
      if (name.starts_with('.')) continue;
      if (++names_ > limits_.most_entries) {
        listing.whole = false;
        break;
      }
      const bool box = name.ends_with(".box");
      if (!box && (depth <= 1 || (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))) continue;
      Look(::dirfd(open), prefix, place, std::string(name), box, depth);
    }
    ::closedir(open);
  }

  BoxListing listing;
  std::map<PlaceAndUser, std::vector<FoundBox>> of_owner;

 private:
  void Look(int folder, const std::string& prefix, const std::string& place, const std::string& name, bool box,
            int depth) {
    struct stat seen {};
    if (::fstatat(folder, name.c_str(), &seen, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (!box && !S_ISDIR(seen.st_mode)) return;
    const int64_t uid = seen.st_uid;
    // Folders that root made at the top are one a pod, and there may be any number of pods.
    const bool makes_place = !box && prefix.empty() && uid == 0;
    if (!makes_place && ++entries_of_[{place, uid}] > limits_.most_entries_of_user) {
      ++listing.left_out;
      ++listing.left_out_of[uid];
      return;
    }
    if (box) {
      const int64_t changed = int64_t{seen.st_ctim.tv_sec} * 1'000'000'000 + seen.st_ctim.tv_nsec;
      of_owner[{place, uid}].push_back({prefix + name, uid, changed, place});
      return;
    }
    const int inner = ::openat(folder, name.c_str(), kFolderFlags);
    if (inner < 0) {  // a folder that this user may not read is told by its boxes' absence; running out of files is not
      listing.whole &= errno != EMFILE && errno != ENFILE && errno != ENOMEM;
      return;
    }
    List(inner, prefix + name + "/", makes_place ? name : place, depth - 1);
  }

  const BoxFindLimits& limits_;
  std::map<PlaceAndUser, size_t> entries_of_;
  size_t names_ = 0;
};

// In turns, so that whoever makes a thousand boxes hides nobody else's: pods and users, and in a pod its users.
void TakeTurns(std::map<PlaceAndUser, std::vector<FoundBox>>& of_owner, size_t most, BoxListing& listing) {
  std::map<PlaceAndUser, std::vector<FoundBox>> contenders;
  for (auto& [owner, boxes] : of_owner) {
    std::sort(boxes.begin(), boxes.end(), [](const FoundBox& a, const FoundBox& b) {
      return a.changed_ns != b.changed_ns ? a.changed_ns > b.changed_ns : a.name < b.name;
    });
    for (size_t i = 0; i < boxes.size(); ++i) boxes[i].turn = i;
    auto& all = contenders[{owner.first, owner.first.empty() ? owner.second : -1}];
    std::move(boxes.begin(), boxes.end(), std::back_inserter(all));
  }
  for (auto& [owner, boxes] : contenders)
    std::stable_sort(boxes.begin(), boxes.end(), [](const FoundBox& a, const FoundBox& b) { return a.turn < b.turn; });
  for (size_t turn = 0; !contenders.empty(); ++turn) {
    std::erase_if(contenders, [&](const auto& entry) { return entry.second.size() <= turn; });
    for (auto& [owner, boxes] : contenders) {
      if (listing.boxes.size() < most) {
        listing.boxes.push_back(std::move(boxes[turn]));
        continue;
      }
      ++listing.left_out;
      ++listing.left_out_of[boxes[turn].uid];
    }
  }
  std::sort(listing.boxes.begin(), listing.boxes.end(),
            [](const FoundBox& a, const FoundBox& b) { return a.name < b.name; });
}

}  // namespace

// A pod's mount holds at least the folder of a job, so "job/x.box" of root's own jobs is not one. No name of a
// namespace has an underscore.
std::string NamespaceOf(const std::string& name, const std::string& place) {
  const bool in_pod = !place.empty() && std::count(name.begin(), name.end(), '/') > 1;
  return in_pod ? place.substr(0, place.find('_')) : "";
}

int OpenBoxRoot(const std::string& root, bool* foreign_link) {
  struct stat link {};
  if (::lstat(root.c_str(), &link) != 0) return -1;
  const bool trusted = link.st_uid == 0 || link.st_uid == ::geteuid();
  if (S_ISLNK(link.st_mode) && !trusted) {
    if (foreign_link != nullptr) *foreign_link = true;
    return errno = ELOOP, -1;
  }
  return ::open(root.c_str(),
                O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC | (S_ISLNK(link.st_mode) ? 0 : O_NOFOLLOW));
}

int OpenFolderOfBox(int root, const std::string& name, std::string* file) {
  int folder = ::fcntl(root, F_DUPFD_CLOEXEC, 3);
  std::string_view rest = name;
  for (size_t slash = rest.find('/'); folder >= 0 && slash != std::string_view::npos; slash = rest.find('/')) {
    const std::string part(rest.substr(0, slash));
    const int inner = part == ".." || part == "." ? (errno = ENOENT, -1) : ::openat(folder, part.c_str(), kFolderFlags);
    const int error = errno;
    ::close(folder);
    errno = error;
    folder = inner;
    rest.remove_prefix(slash + 1);
  }
  *file = rest;
  return folder;
}

BoxListing ListBoxes(const std::string& root, const BoxFindLimits& limits) {
  BoxLister lister(limits);
  BoxListing& listing = lister.listing;
  const int folder = OpenBoxRoot(root, &listing.root_is_foreign_link);
  if (folder < 0) {
    listing.error = errno == ENOENT ? 0 : errno;
    listing.exists = errno != ENOENT && errno != ENOTDIR;
    listing.whole = errno == ENOENT || errno == ENOTDIR || listing.root_is_foreign_link;
    return std::move(listing);
  }
  listing.exists = true;
  struct stat seen {};
  if (::fstat(folder, &seen) == 0) listing.root_uid = seen.st_uid;
  lister.List(folder, "", "", kBoxFoldersDeep);
  TakeTurns(lister.of_owner, limits.most_boxes, listing);
  return std::move(listing);
}

}  // namespace tacet
