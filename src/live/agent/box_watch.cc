// SPDX-License-Identifier: Apache-2.0
#include "live/agent/box_watch.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>
#include <vector>

namespace tacet {
namespace {

int64_t NowNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

template <size_t n>
std::string TextIn(const char (&text)[n]) {
  return std::string(text, ::strnlen(text, n));
}

// What the box's own wall clock would show now. Somebody may set the clock at any moment, and the box learns of it with
// its next beat, if there is one; the monotonic clock goes on, and all processes of a host share it.
int64_t WallOfBox(const box::Header& header, int64_t wall_ns) {
  const box::ClockPair& pair = header.latest[header.clock_updates % 2];
  const int64_t now_ns = NowNs();
  const bool sane =
      pair.monotonic_ns > 0 && pair.monotonic_ns <= now_ns && pair.wall_ns > 0 && pair.wall_ns < INT64_MAX / 2;
  return sane ? pair.wall_ns + (now_ns - pair.monotonic_ns) : wall_ns;
}

BoxState InTrouble(std::string code, std::string reason) {
  BoxState state;
  state.trouble = std::move(code);
  state.reason = std::move(reason);
  return state;
}

}  // namespace

struct BoxWatch::Watched {
  std::unique_ptr<BoxFileReader> reader;  // null: it cannot be opened
  std::string error;
  int64_t uid = -1;
  std::string pod;  // FoundBox::place
  size_t turn = 0;
  BoxFileReader::RingPlace place;
  bool owner_checked = false;    // its process was seen to be its owner's
  bool beats_elsewhere = false;  // it beats though /proc does not know it: another pid namespace
  uint64_t heartbeats = 0;
  bool was_gone = false;
};

BoxWatch::BoxWatch(BoxWatchOptions options) : options_(std::move(options)), processes_(options_.proc) {}
BoxWatch::~BoxWatch() = default;

// Whoever fills the folder with names makes the search slow, so it is made the more seldom the longer it takes.
void BoxWatch::Find() {
  constexpr int64_t kRestFor = 10;
  const int64_t began = NowNs();
  if (began < find_again_ns_) return;
  listing_ = ListBoxes(options_.root, {.most_boxes = options_.most_boxes});
  std::vector<FoundBox> found = std::move(listing_.boxes);
  listing_.boxes = {};
  // When files run out, what is missing in the list may still be there.
  if (listing_.whole)
    std::erase_if(boxes_, [&](const auto& entry) {
      const auto at = std::lower_bound(found.begin(), found.end(), entry.first,
                                       [](const FoundBox& a, const std::string& name) { return a.name < name; });
      return at == found.end() || at->name != entry.first;
    });
  for (const FoundBox& box : found) Open(box);
  const int64_t took = NowNs() - began;
  find_again_ns_ = took > 20'000'000 ? NowNs() + kRestFor * took : 0;
}

void BoxWatch::Open(const FoundBox& found) {
  auto& watched = boxes_[found.name];
  std::string file;
  const int root = OpenBoxRoot(options_.root);
  const int folder = root < 0 ? -1 : OpenFolderOfBox(root, found.name, &file);
  const int error = errno;
  if (root >= 0) ::close(root);
  const bool out_of_files = folder < 0 && (error == EMFILE || error == ENFILE);
  const bool known = watched && watched->reader;
  if (watched) watched->turn = found.turn;
  if (known && (out_of_files || (folder >= 0 && watched->reader->IsStillAt(folder, file)))) {
    if (folder >= 0) ::close(folder);
    return;
  }
  watched = std::make_unique<Watched>();
  watched->uid = found.uid;
  watched->pod = found.place;
  watched->turn = found.turn;
  watched->error = std::string("cannot open: ") + ::strerror(error);
  if (folder < 0) return;  // tried again every time
  auto reader = BoxFileReader::OpenAt(folder, file);
  ::close(folder);
  if (reader) {
    watched->uid = reader->uid();
    watched->reader = std::make_unique<BoxFileReader>(std::move(*reader));
  } else {
    watched->error = reader.error().message + (reader.error().hint.empty() ? "" : "; " + reader.error().hint);
  }
}

HostState BoxWatch::Look(int64_t wall_ns, const std::function<void(const FinishedOperation&)>& finished) {
  Find();
  HostState state;
  state.wall_ns = wall_ns;
  std::vector<std::pair<const std::string*, Watched*>> in_turns;
  for (const auto& [name, watched] : boxes_) in_turns.emplace_back(&name, watched.get());
  std::stable_sort(in_turns.begin(), in_turns.end(),
                   [](const auto& a, const auto& b) { return a.second->turn < b.second->turn; });
  std::map<std::pair<std::string, int64_t>, uint64_t> bytes_left;  // by pod, else by user
  for (const auto& [name, watched] : in_turns) {
    const std::pair<std::string, int64_t> owner(watched->pod, watched->pod.empty() ? watched->uid : -1);
    uint64_t& left = bytes_left.try_emplace(owner, options_.most_bytes_of_user).first->second;
    BoxState box =
        watched->reader ? LookAt(*name, *watched, wall_ns, &left, finished) : InTrouble("unreadable", watched->error);
    box.name = *name;
    box.uid = watched->uid;
    state.boxes.push_back(std::move(box));
  }
  std::sort(state.boxes.begin(), state.boxes.end(),
            [](const BoxState& a, const BoxState& b) { return a.name < b.name; });
  return state;
}

BoxState BoxWatch::LookAt(const std::string& name, Watched& watched, int64_t wall_ns, uint64_t* bytes_left,
                          const std::function<void(const FinishedOperation&)>& finished) {
  bool sparse = false;
  const uint64_t cost = watched.reader->TableBytes(&sparse);
  if (sparse) return InTrouble("bad-layout", "its pages were never reserved, so no plugin wrote it");
  if (cost > *bytes_left)
    return InTrouble("over-quota", "the newer boxes of " +
                                       (watched.pod.empty() ? "uid " + std::to_string(watched.uid) : watched.pod) +
                                       " use up the " + std::to_string(options_.most_bytes_of_user >> 20) +
                                       " MiB that one scan reads for a user or pod");
  *bytes_left -= cost;
  const std::string copy = watched.reader->Copy(0);
  const BlackBox box = ParseBlackBox(copy);
  const box::Header& header = box.header;
  const bool same_boot = !processes_.boot_id().empty() && TextIn(header.boot_id) == processes_.boot_id();
  BoxState state = DescribeBox(copy, box, same_boot ? WallOfBox(header, wall_ns) : wall_ns, options_.most_operations);
  state.name = name;
  state.uid = watched.uid;
  if (!state.trouble.empty()) return state;
  // Pods of two namespaces may run as one user and call their jobs alike: the folder, which a pod cannot choose, tells
  // them apart. The plugin writes no slash into a name, so nobody can claim to be of a namespace.
  std::replace(state.job.begin(), state.job.end(), '/', '_');
  if (const std::string space = NamespaceOf(name, watched.pod); !space.empty()) state.job = space + "/" + state.job;
  state.same_boot = same_boot;
  const ProcessName process{header.pid, header.process_start_jiffies, TextIn(header.boot_id), header.pid_namespace};
  state.sight = processes_.Look(process);
  // Somebody else's file about this process: nothing in it counts.
  if (!watched.owner_checked && !processes_.MayBeOf(process, watched.uid))
    return InTrouble("foreign-process", "it belongs to uid " + std::to_string(watched.uid) + ", process " +
                                            std::to_string(header.pid) + " that it names does not");
  watched.owner_checked |= state.sight != ProcessSight::unknown;
  // In a container the pid is one of its own namespace, which /proc of the host does not know by that number.
  const bool gone = state.sight == ProcessSight::gone;
  if (gone && watched.was_gone && header.heartbeats > watched.heartbeats) watched.beats_elsewhere = true;
  watched.heartbeats = header.heartbeats;
  watched.was_gone = gone;
  if (watched.beats_elsewhere && state.sight == ProcessSight::gone) state.sight = ProcessSight::unknown;
  // A box without communicators is a moment old; what has ended since is told with its communicator the next time.
  if (!box.comms.empty()) {
    const uint64_t before = watched.place.next;
    watched.reader->Follow(
        watched.place, [&](const box::Op& op) { finished(DescribeFinished(box, state, op)); }, *bytes_left);
    const uint64_t records = watched.place.next - std::min(before, watched.place.next);
    *bytes_left -= std::min(*bytes_left, records * sizeof(box::Record));
  }
  state.lapped = watched.place.lapped;
  state.torn = watched.place.torn;
  return state;
}

std::string BoxWatch::CopyBox(const std::string& name, uint32_t newest) const {
  const auto found = boxes_.find(name);
  return found == boxes_.end() || !found->second->reader ? "" : found->second->reader->Copy(newest);
}

int64_t BoxWatch::OwnerOf(const std::string& name) const {
  const auto found = boxes_.find(name);
  return found == boxes_.end() ? -1 : found->second->uid;
}

bool BoxWatch::Remove(const std::string& name) {
  const auto found = boxes_.find(name);
  if (found == boxes_.end() || !found->second->reader) return false;
  const int root = OpenBoxRoot(options_.root);
  std::string file;
  const int folder = root < 0 ? -1 : OpenFolderOfBox(root, name, &file);
  const bool removed =
      folder >= 0 && found->second->reader->IsStillAt(folder, file) && ::unlinkat(folder, file.c_str(), 0) == 0;
  if (folder >= 0) ::close(folder);
  if (removed) {
    boxes_.erase(found);
    const size_t slash = name.rfind('/');  // the folder too, when it is empty
    const int above = slash == std::string::npos ? -1 : OpenFolderOfBox(root, name.substr(0, slash), &file);
    if (above >= 0) ::unlinkat(above, file.c_str(), AT_REMOVEDIR);
    if (above >= 0) ::close(above);
  }
  if (root >= 0) ::close(root);
  return removed;
}

void BoxWatch::MarkEvidence(const std::string& name) const {
  const int root = OpenBoxRoot(options_.root);
  std::string file;
  const int folder = root < 0 ? -1 : OpenFolderOfBox(root, name, &file);
  if (root >= 0) ::close(root);
  if (folder < 0) return;
  const int mark =
      ::openat(folder, (file + ".keep").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (mark >= 0) ::close(mark);
  ::close(folder);
}

bool BoxWatch::IsEvidence(const std::string& name) const {
  const int root = OpenBoxRoot(options_.root);
  std::string file;
  const int folder = root < 0 ? -1 : OpenFolderOfBox(root, name, &file);
  if (root >= 0) ::close(root);
  struct stat seen {};
  const bool marked = folder >= 0 && ::fstatat(folder, (file + ".keep").c_str(), &seen, AT_SYMLINK_NOFOLLOW) == 0;
  if (folder >= 0) ::close(folder);
  return marked;
}

}  // namespace tacet
