// SPDX-License-Identifier: Apache-2.0
#include "plugin/output/sibling_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "plugin/process_stat.h"
#include "plugin/record/tick_clock.h"
#include "plugin/settings.h"

namespace tacet::plugin {
namespace {

constexpr int64_t kLookNs = 1'000'000'000;
constexpr int64_t kBeats = 3;                       // that many may be missed: a busy machine wakes the keeper late
constexpr int64_t kLeastSilenceNs = 3'000'000'000;  // and no less than this, however fast it beats
constexpr int64_t kStartsApartNs = 30'000'000'000;  // ranks of one attempt come up within this time of each other
constexpr int kMostSiblings = 1024;
constexpr int kMostEntriesEach = 6;  // a process that is stopped and continued again and again must not fill the table

bool IsBoxName(const char* name) {
  const size_t length = strlen(name);
  return length > 4 && strcmp(name + length - 4, ".box") == 0;
}

bool ReadHeader(int folder, const char* name, box::Header* header) {
  const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat seen {};
  const bool whole = fstat(fd, &seen) == 0 && S_ISREG(seen.st_mode) && seen.st_uid == geteuid() &&
                     pread(fd, header, sizeof *header, 0) == static_cast<ssize_t>(sizeof *header);
  close(fd);
  return whole && memcmp(header->magic, box::kMagic, sizeof header->magic) == 0 && header->version == box::kVersion &&
         header->ready == 1;
}

// A pid names the same process for both only on the same boot and in the same pid namespace.
bool CanBeLookedUp(const box::Header& own, const box::Header& sibling) {
  return own.pid_namespace != 0 && sibling.pid_namespace == own.pid_namespace && own.boot_id[0] != 0 &&
         memcmp(sibling.boot_id, own.boot_id, sizeof own.boot_id) == 0 && sibling.pid > 0 &&
         sibling.process_start_jiffies != 0;
}

int64_t LastBeatNs(const box::Header& header) { return header.latest[header.clock_updates % 2].monotonic_ns; }

box::SightState StateOf(const box::Header& sibling) {
  using box::SightState;
  char pid[16];
  snprintf(pid, sizeof pid, "%d", sibling.pid);
  const ProcessStat stat = ReadProcessStat(pid);
  if (stat.pid == 0)  // /proc may hide what exists
    return kill(sibling.pid, 0) != 0 && errno == ESRCH ? SightState::gone : SightState::none;
  if (stat.start_jiffies != sibling.process_start_jiffies) return SightState::gone;  // the pid went to another process
  switch (stat.state) {
    case 'T':
    case 't': return SightState::stopped;
    case 'D': return SightState::uninterruptible;
    case 'Z':
    case 'X': return SightState::zombie;
    default: return SightState::running;
  }
}

bool Passes(box::SightState state) { return state != box::SightState::gone && state != box::SightState::zombie; }

}  // namespace

void SiblingWatch::Open(const OpenBox& box, const char* box_path) {
  *this = SiblingWatch();
  const char* slash = strrchr(box_path, '/');
  if (slash == nullptr || box.header->pid_namespace == 0) return;
  CopyText(folder_, static_cast<uint64_t>(slash - box_path) + 1, box_path);
  CopyText(own_name_, sizeof own_name_, slash + 1);
}

void SiblingWatch::Look(OpenBox& box) {
  const int64_t now_ns = ReadClocks().monotonic_ns;
  if (folder_[0] == 0 || now_ns < next_ns_) return;
  next_ns_ = now_ns + kLookNs;
  const int folder = open(folder_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR* boxes = folder < 0 ? nullptr : fdopendir(folder);
  if (boxes == nullptr) {
    if (folder >= 0) close(folder);
    return;
  }
  int looked_at = 0;
  while (const dirent* entry = readdir(boxes)) {
    if (!IsBoxName(entry->d_name) || strcmp(entry->d_name, own_name_) == 0) continue;
    if (++looked_at > kMostSiblings) break;
    LookAt(box, folder, entry->d_name, now_ns);
  }
  closedir(boxes);
}

void SiblingWatch::LookAt(OpenBox& box, int folder, const char* name, int64_t now_ns) {
  box::Header sibling;
  if (!ReadHeader(folder, name, &sibling) || !CanBeLookedUp(*box.header, sibling)) return;
  const int64_t last_ns = LastBeatNs(sibling);
  // Whoever fell silent before this process began belongs to an earlier attempt. Not so a rank that came up a little
  // earlier and never beat at all.
  const int64_t earlier_ns = sibling.heartbeats == 0 ? kStartsApartNs : 0;
  if (sibling.end_state != box::EndState::running || sibling.heartbeat_ms == 0 ||
      last_ns + earlier_ns < box.header->first.monotonic_ns)
    return;
  const int64_t patience_ns = kBeats * sibling.heartbeat_ms * 1'000'000;
  const bool silent = now_ns - last_ns > (patience_ns > kLeastSilenceNs ? patience_ns : kLeastSilenceNs);
  const box::SightState state = silent ? StateOf(sibling) : box::SightState::running;
  if (state != box::SightState::none) Note(box, sibling, state);
}

bool SiblingWatch::IsSecondLook(int32_t pid, box::SightState state, int64_t* since_wall_ns) {
  for (Glimpse& glimpse : glimpses_) {
    if (glimpse.pid != pid) continue;
    if (glimpse.state == state) {
      *since_wall_ns = glimpse.wall_ns;
      return true;
    }
    glimpse = {pid, state, *since_wall_ns};
    return false;
  }
  glimpses_[next_glimpse_++ % box::kSights] = {pid, state, *since_wall_ns};
  return false;
}

void SiblingWatch::Forget(int32_t pid) {
  for (Glimpse& glimpse : glimpses_)
    if (glimpse.pid == pid) glimpse = {};
}

void SiblingWatch::Note(OpenBox& box, const box::Header& sibling, box::SightState state) {
  box::Header& header = *box.header;
  box::Sight* last = nullptr;
  box::Sight* free = nullptr;
  int entries = 0;
  for (box::Sight& sight : header.sights) {
    if (Load(sight.state) == box::SightState::none) {
      free = &sight;
      break;
    }
    if (sight.pid != sibling.pid || sight.process_start_jiffies != sibling.process_start_jiffies) continue;
    last = &sight;
    ++entries;
  }
  const int64_t now = ReadClocks().wall_ns;
  if (last != nullptr && last->state == state) return Store(last->seen_wall_ns, now);
  if (last == nullptr && state == box::SightState::running) return Forget(sibling.pid);  // all is well, or merely late
  int64_t since = now;
  if (Passes(state) && !IsSecondLook(sibling.pid, state, &since)) return;
  if (free == nullptr || entries >= kMostEntriesEach) return;
  Store(free->pid, sibling.pid);
  Store(free->rank, sibling.rank);
  Store(free->process_start_jiffies, sibling.process_start_jiffies);
  Store(free->since_wall_ns, since);
  Store(free->seen_wall_ns, now);
  StoreRelease(free->state, state);
}

}  // namespace tacet::plugin
