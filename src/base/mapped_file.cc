// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

#include "base/large_pages.h"

namespace tacet {

static const char* KindName(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a fifo";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a regular file";
}

// Sysfs is not among them: its files are small, and reading them changes nothing.
static bool IsKernelFile(int fd) {
  struct statfs system {};
  return ::fstatfs(fd, &system) == 0 &&
         (system.f_type == PROC_SUPER_MAGIC || system.f_type == DEBUGFS_MAGIC || system.f_type == TRACEFS_MAGIC);
}

// A file of sysfs says 4096 bytes and holds fewer.
static bool TellsItsSize(int fd) {
  struct statfs system {};
  return ::fstatfs(fd, &system) != 0 || system.f_type != SYSFS_MAGIC;
}

Result<MappedFile> MappedFile::Open(const std::string& path) { return Open(path, kMostInMemory, kMostInMemoryIfFresh); }

Result<MappedFile> MappedFile::Open(const std::string& path, size_t most_in_memory) {
  return Open(path, most_in_memory, most_in_memory);
}

Result<MappedFile> MappedFile::Open(const std::string& path, size_t most_in_memory, size_t most_if_fresh) {
  const auto refuse = [](mode_t mode) {
    return Error{std::string("is ") + KindName(mode) + ", not a regular file", "name a file instead"};
  };
  // Opening a device may already do something, and a socket cannot be opened at all.
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return refuse(status.st_mode);
  // O_NONBLOCK: should it have become a fifo since, opening must not wait for a writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    const int error = errno;
    return Error{std::string("cannot open: ") + std::strerror(error),
                 error == EACCES ? "check the file's permissions" : "check the path"};
  }
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(fd);
    return refuse(status.st_mode);
  }
  if (IsKernelFile(fd)) {
    ::close(fd);
    return Error{"is a kernel file without fixed content", "copy it first: cat FILE > COPY"};
  }
  MappedFile file;
  file.modified_wall_ns_ = static_cast<int64_t>(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
  const auto size = static_cast<size_t>(status.st_size);
  const bool fresh = std::time(nullptr) - status.st_mtim.tv_sec < kFreshSeconds;
  const size_t most = fresh ? most_if_fresh : most_in_memory;
  const auto written = static_cast<size_t>(status.st_blocks) * 512;
  const Result<bool> done = size <= most                                     ? file.ReadAll(fd, size)
                            : written < size / 2 && written <= most_if_fresh ? file.ReadAroundHoles(fd, size, written)
                                                                             : file.Map(fd, size);
  if (!file.mapped()) ::close(fd);
  if (!done.ok()) return done.error();
  return file;
}

// What is appended meanwhile is left for the next look.
Result<bool> MappedFile::ReadAll(int fd, size_t size) {
  memory_.reset(new (std::nothrow) char[size]);  // not make_unique, which would write zeros first
  if (!memory_) return Error{"does not fit in memory", ""};
  PreferLargePages(memory_.get(), size);
  while (size_ < size) {
    const ssize_t got = ::read(fd, memory_.get() + size_, size - size_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return Error{std::string("cannot read: ") + std::strerror(errno), "check the disk or mount that holds it"};
    if (got == 0) break;
    size_ += static_cast<size_t>(got);
  }
  short_read_ = size_ < size && TellsItsSize(fd);
  data_ = memory_.get();
  return true;
}

// A log that was cut while its writer went on at its old place: gigabytes that nobody wrote, and text behind them.
Result<bool> MappedFile::ReadAroundHoles(int fd, size_t size, size_t most_bytes) {
  memory_.reset(new (std::nothrow) char[most_bytes]);
  if (!memory_) return Error{"does not fit in memory", ""};
  data_ = memory_.get();
  for (off_t at = 0; size_ < most_bytes;) {
    at = ::lseek(fd, at, SEEK_DATA);
    if (at < 0) break;  // none behind
    const off_t hole = ::lseek(fd, at, SEEK_HOLE);
    const off_t end = std::min(hole < 0 ? static_cast<off_t>(size) : hole, static_cast<off_t>(size));
    while (at < end && size_ < most_bytes) {
      const size_t wanted = std::min(static_cast<size_t>(end - at), most_bytes - size_);
      const ssize_t got = ::pread(fd, memory_.get() + size_, wanted, at);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      at += got;
      size_ += static_cast<size_t>(got);
    }
    if (at < end) break;
  }
  hole_bytes_ = size - size_;
  return true;
}

Result<bool> MappedFile::Map(int fd, size_t size) {
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) return Error{std::string("cannot map: ") + std::strerror(errno), ""};
  data_ = static_cast<const char*>(data);
  size_ = size;
  fd_ = fd;
  if (!guard_.Watch(data, size)) return Error{"too many large files are open at once", "name fewer at a time"};
  ::madvise(data, size, MADV_SEQUENTIAL);
  return true;
}

bool MappedFile::Shrunk() const {
  struct stat status {};
  if (short_read_ || guard_.Hit()) return true;
  return mapped() && ::fstat(fd_, &status) == 0 && static_cast<size_t>(status.st_size) < size_;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(fd_, other.fd_);
  std::swap(short_read_, other.short_read_);
  std::swap(hole_bytes_, other.hole_bytes_);
  guard_ = std::move(other.guard_);
  modified_wall_ns_ = other.modified_wall_ns_;
  return *this;
}

MappedFile::~MappedFile() {
  if (!mapped()) return;
  guard_.Release();
  ::munmap(const_cast<char*>(data_), size_);
  ::close(fd_);
}

void GiveBackPages(std::string_view part) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<uintptr_t>(part.data() + part.size()) / page * page;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace tacet
