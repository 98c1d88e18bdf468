// SPDX-License-Identifier: Apache-2.0
#include "plugin/box_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>

#include "plugin/record/tick_clock.h"

namespace tacet::plugin {
namespace {

constexpr uint64_t kSmallestBox = 48 * 1024;
constexpr char kDefaultDir[] = "/dev/shm/tacet";

uint32_t PowerOfTwoUpTo(uint64_t limit) {
  uint32_t power = 1;
  while (uint64_t{power} * 2 <= limit) power *= 2;
  return power;
}

// A folder of our own, or nothing: never one that somebody else prepared for us.
int OpenOwnFolder(int base, const char* name) {
  if (mkdirat(base, name, 0700) != 0 && errno != EEXIST) return -1;
  const int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat seen {};
  if (fd >= 0 && fstat(fd, &seen) == 0 && seen.st_uid == geteuid() && (seen.st_mode & 022) == 0) return fd;
  if (fd >= 0) close(fd);
  errno = EPERM;
  return -1;
}

// Two users may run jobs of the same name, and one may take the names of another's jobs beforehand: numbers are tried,
// so that the processes of a job share a folder, and at last a name that nobody can guess.
int OpenJobFolder(int base, const char* job, char* chosen, size_t room) {
  constexpr int kNumbers = 8, kGuesses = 4;
  CopyText(chosen, room, job);
  int fd = OpenOwnFolder(base, chosen);
  const auto uid = static_cast<unsigned>(geteuid());
  for (int i = 0; fd < 0 && errno == EPERM && i < kNumbers; ++i) {
    snprintf(chosen, room, i == 0 ? "%.50s.%u" : "%.50s.%u.%d", job, uid, i);
    fd = OpenOwnFolder(base, chosen);
  }
  for (int i = 0; fd < 0 && errno == EPERM && i < kGuesses; ++i) {
    uint32_t number = 0;
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof number)) break;
    snprintf(chosen, room, "%.50s.%u.%08x", job, uid, number);
    fd = OpenOwnFolder(base, chosen);
  }
  return fd;
}

// An existing box is evidence of an earlier process with this pid, so it is left alone.
int CreateBox(int folder, const char* host, int pid, char* name, size_t room) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (attempt == 0)
      snprintf(name, room, "%s-%d.box", host, pid);
    else
      snprintf(name, room, "%s-%d-%d.box", host, pid, attempt);
    const int fd = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

// Going over the file size limit would raise SIGXFSZ.
uint64_t LimitedSize(uint64_t bytes) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return bytes;
  return bytes < limit.rlim_cur ? bytes : limit.rlim_cur / 4096 * 4096;
}

// NCCL and data loaders live in /dev/shm too, and fail when it is full; a container's has 64 MiB. So a box takes a
// small share of what is free, and many processes of a node leave room for each other.
uint64_t ShareOfRoom(int fd, uint64_t bytes) {
  constexpr uint64_t kShare = 16;
  struct statvfs room {};
  if (fstatvfs(fd, &room) != 0 || room.f_blocks == 0) return bytes;  // no limit is known
  const uint64_t most = uint64_t{room.f_bavail} * room.f_frsize / kShare / 4096 * 4096;
  return bytes < most ? bytes : most > kSmallestBox ? most : kSmallestBox;
}

// A store into a mapped file of these may have to wait for a server, or fail when the disk is full although its pages
// were reserved.
const char* RiskyFileSystem(int fd) {
  static constexpr struct {
    uint32_t magic;
    const char* name;
  } kRisky[] = {{0x6969, "NFS"},        {0xff534d42, "CIFS"},  {0xfe534d42, "SMB"},
                {0x0bd00bd0, "Lustre"}, {0x00c36400, "Ceph"},  {0x47504653, "GPFS"},
                {0x19830326, "BeeGFS"}, {0x9123683e, "Btrfs"}, {0x2fc12fc1, "ZFS"}};
  struct statfs seen {};
  if (fstatfs(fd, &seen) != 0) return nullptr;
  for (const auto& one : kRisky)
    if (static_cast<uint32_t>(seen.f_type) == one.magic) return one.name;
  return nullptr;
}

void* ReserveAndMap(int fd, uint64_t* bytes) {
  for (*bytes = ShareOfRoom(fd, LimitedSize(*bytes)); *bytes >= kSmallestBox; *bytes = *bytes / 2 / 4096 * 4096) {
    if (const int error = posix_fallocate(fd, 0, static_cast<off_t>(*bytes)); error != 0) {
      errno = error;
      if (ftruncate(fd, 0) != 0) return nullptr;
      continue;
    }
    void* memory = mmap(nullptr, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    return memory == MAP_FAILED ? nullptr : memory;
  }
  return nullptr;
}

}  // namespace

// mkdir -p. The default folder is shared by all users of the host, like /tmp.
void MakeFolders(const char* dir) {
  char path[512];
  CopyText(path, sizeof path, dir);
  for (char* slash = path + 1; *slash != 0; ++slash) {
    if (*slash != '/') continue;
    *slash = 0;
    mkdir(path, 0755);
    *slash = '/';
  }
  const bool shared = strcmp(dir, kDefaultDir) == 0;
  if (mkdir(path, 0755) == 0 && shared) chmod(path, 01777);
}

BoxGeometry GeometryFor(uint64_t bytes) {
  BoxGeometry geometry{};
  uint64_t at = sizeof(box::Header);
  const auto place = [&](box::Table& table, uint64_t count, uint64_t stride) {
    table = {at, static_cast<uint32_t>(count), static_cast<uint32_t>(stride)};
    at += count * stride;
  };
  const auto share = [&](uint64_t divisor, uint64_t least, uint64_t most) {
    const uint64_t count = PowerOfTwoUpTo(bytes / divisor);
    return count < least ? least : count > most ? most : count;
  };
  place(geometry.comms, share(32768, 8, 1024), sizeof(box::Comm));
  place(geometry.groups, share(8192, 16, 4096), sizeof(box::Group));
  place(geometry.ops, share(2048, 32, 65536), sizeof(box::OpSlot));
  place(geometry.proxies, share(4096, 16, 65536), sizeof(box::ProxySlot));
  place(geometry.peers, share(8192, 16, 65536), sizeof(box::Peer));
  place(geometry.ring, PowerOfTwoUpTo((bytes - at) / sizeof(box::Record)), sizeof(box::Record));
  return geometry;
}

BoxMemory MakeBoxFile(const Settings& settings, const char* host, int pid) {
  BoxMemory made;
  MakeFolders(settings.box_dir);
  const bool shared = strcmp(settings.box_dir, kDefaultDir) == 0;
  const int base = open(settings.box_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (shared ? O_NOFOLLOW : 0));
  char job[80] = {}, name[160] = {};
  int folder = -1, fd = -1;
  for (int attempt = 0; base >= 0 && fd < 0 && attempt < 3; ++attempt) {
    if (folder >= 0) close(folder);
    folder = OpenJobFolder(base, settings.job, job, sizeof job);
    fd = folder < 0 ? -1 : CreateBox(folder, host, pid, name, sizeof name);
    if (errno != ENOENT) break;  // else somebody swept the empty folder away between the two steps
  }
  made.bytes = settings.box_bytes;
  if (fd >= 0) made.memory = ReserveAndMap(fd, &made.bytes);
  const int error = errno;
  snprintf(made.path, sizeof made.path, "%s/%s/%s", settings.box_dir, job, name);
  made.in_file = made.memory != nullptr;
  if (!made.in_file) {
    if (fd >= 0) unlinkat(folder, name, 0);
    const bool full = error == ENOSPC || error == EDQUOT;
    snprintf(made.trouble, sizeof made.trouble, "no black box in %.120s: %s; %s", settings.box_dir, strerror(error),
             full ? "free space there, or set TACET_BOX_DIR to another folder"
                  : "set TACET_BOX_DIR to a folder that this user may write to");
  } else if (made.bytes < settings.box_bytes) {
    snprintf(made.trouble, sizeof made.trouble,
             "only %llu KiB of room for the black box, so it holds fewer operations; free room in %.100s",
             static_cast<unsigned long long>(made.bytes / 1024), settings.box_dir);
  } else if (const char* risky = RiskyFileSystem(fd)) {
    snprintf(made.trouble, sizeof made.trouble,
             "%.100s is on %s, where a store may wait or fail; boxes belong into memory: TACET_BOX_DIR=/dev/shm/tacet",
             settings.box_dir, risky);
  }
  for (const int open_fd : {fd, folder, base})
    if (open_fd >= 0) close(open_fd);
  return made;
}

BoxMemory MakeBoxMemory(uint64_t bytes) {
  BoxMemory made;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory != MAP_FAILED) made.memory = memory, made.bytes = bytes;
  return made;
}

void LayOut(const BoxMemory& memory, OpenBox& box) {
  const BoxGeometry geometry = GeometryFor(memory.bytes);
  auto* bytes = static_cast<char*>(memory.memory);
  box.header = reinterpret_cast<box::Header*>(bytes);
  box.comms = reinterpret_cast<box::Comm*>(bytes + geometry.comms.offset);
  box.groups = reinterpret_cast<box::Group*>(bytes + geometry.groups.offset);
  box.ops = reinterpret_cast<box::OpSlot*>(bytes + geometry.ops.offset);
  box.proxies = reinterpret_cast<box::ProxySlot*>(bytes + geometry.proxies.offset);
  box.peers = reinterpret_cast<box::Peer*>(bytes + geometry.peers.offset);
  box.ring = reinterpret_cast<box::Record*>(bytes + geometry.ring.offset);
  box.comm_count = geometry.comms.count;
  box.group_mask = geometry.groups.count - 1;
  box.op_mask = geometry.ops.count - 1;
  box.proxy_mask = geometry.proxies.count - 1;
  box.peer_mask = geometry.peers.count - 1;
  box.ring_mask = geometry.ring.count - 1;
  box.op_shift = static_cast<uint32_t>(__builtin_ctz(geometry.ops.count));
  box.proxy_shift = static_cast<uint32_t>(__builtin_ctz(geometry.proxies.count));
  box::Header& header = *box.header;
  header.file_bytes = memory.bytes;
  header.comms = geometry.comms;
  header.groups = geometry.groups;
  header.ops = geometry.ops;
  header.proxies = geometry.proxies;
  header.peers = geometry.peers;
  header.ring = geometry.ring;
}

// True for a box that says of itself that its process has ended, long enough ago.
static bool IsEnded(int folder, const char* name, int64_t age_s) {
  const int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  box::Header header;
  struct stat seen {};
  const bool is_box = fstat(fd, &seen) == 0 && S_ISREG(seen.st_mode) && seen.st_uid == geteuid() &&
                      pread(fd, &header, sizeof header, 0) == static_cast<ssize_t>(sizeof header) &&
                      memcmp(header.magic, box::kMagic, sizeof header.magic) == 0 && header.version == box::kVersion;
  close(fd);
  if (!is_box || header.end_state != box::EndState::exited) return false;
  const int64_t ended_s = header.latest[header.clock_updates % 2].wall_ns / 1'000'000'000;
  return time(nullptr) - ended_s > age_s;
}

void SweepEndedBoxes(const char* box_dir, int64_t age_s) {
  DIR* jobs = opendir(box_dir);
  if (jobs == nullptr) return;
  int looked_at = 0;
  while (const dirent* job = readdir(jobs)) {
    if (job->d_name[0] == '.') continue;
    const int folder = openat(dirfd(jobs), job->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR* boxes = folder < 0 ? nullptr : fdopendir(folder);
    if (boxes == nullptr) {
      if (folder >= 0) close(folder);
      continue;
    }
    bool removed = false;
    while (const dirent* entry = readdir(boxes)) {
      const size_t length = strlen(entry->d_name);
      if (length < 5 || strcmp(entry->d_name + length - 4, ".box") != 0 || ++looked_at > 4096) continue;
      if (IsEnded(folder, entry->d_name, age_s)) removed |= unlinkat(folder, entry->d_name, 0) == 0;
    }
    closedir(boxes);
    if (removed) unlinkat(dirfd(jobs), job->d_name, AT_REMOVEDIR);  // fails unless it is empty now
  }
  closedir(jobs);
}

}  // namespace tacet::plugin
