// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace tacet {

// An append-only list that never copies what it holds while it grows: a growing std::vector needs up to three times its
// final size for a moment, and that moment would decide the peak memory of reading a large trace.
template <typename T>
class ChunkList {
 public:
  void Append(const T& value) {
    if (size_ % kChunk == 0) chunks_.push_back(std::make_unique<T[]>(kChunk));
    chunks_.back()[size_ % kChunk] = value;
    ++size_;
  }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return chunks_[i / kChunk][i % kChunk]; }

  // Moves all into a vector of exactly the right size, giving memory back on the way.
  std::vector<T> TakeVector() {
    std::vector<T> out;
    out.reserve(size_);
    for (size_t c = 0; c < chunks_.size(); ++c) {
      const size_t count = c + 1 < chunks_.size() ? kChunk : size_ - c * kChunk;
      out.insert(out.end(), chunks_[c].get(), chunks_[c].get() + count);
      chunks_[c].reset();
    }
    chunks_.clear();
    size_ = 0;
    return out;
  }

 private:
  static constexpr size_t kChunk = 8192;
  std::vector<std::unique_ptr<T[]>> chunks_;
  size_t size_ = 0;
};

}  // namespace tacet
