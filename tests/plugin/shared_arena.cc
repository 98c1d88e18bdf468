// SPDX-License-Identifier: Apache-2.0
#include "tests/plugin/shared_arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace tacet::fake {

static size_t ArenaBytes(int ranks) {
  const size_t mailboxes =
      static_cast<size_t>(kMaxComms) * static_cast<size_t>(ranks) * static_cast<size_t>(ranks) * kMaxChannels;
  return 64 + sizeof(std::atomic<uint64_t>) * static_cast<size_t>(ranks) + mailboxes * sizeof(Mailbox);
}

SharedArena SharedArena::LayOut(void* memory, int ranks) {
  if (memory == MAP_FAILED) std::abort();
  SharedArena arena;
  arena.ranks_ = ranks;
  arena.head_ = static_cast<Head*>(memory);
  arena.steps_ = reinterpret_cast<std::atomic<uint64_t>*>(static_cast<char*>(memory) + 64);
  arena.boxes_ = reinterpret_cast<Mailbox*>(arena.steps_ + ranks);
  return arena;
}

SharedArena SharedArena::Make(int ranks) {
  return LayOut(mmap(nullptr, ArenaBytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), ranks);
}

// A new file is all zeros, which is how an arena begins.
SharedArena SharedArena::Join(const std::string& file, int ranks) {
  const size_t bytes = ArenaBytes(ranks);
  const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) std::abort();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  return LayOut(memory, ranks);
}

void SharedArena::Barrier() {
  const int generation = head_->generation.load();
  if (head_->waiting.fetch_add(1) + 1 == ranks_) {
    head_->waiting.store(0);
    head_->generation.fetch_add(1);
    return;
  }
  while (head_->generation.load() == generation) usleep(200);
}

}  // namespace tacet::fake
