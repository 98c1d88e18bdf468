// SPDX-License-Identifier: Apache-2.0
#include "evidence/flight_recorder/flight_recorder_tables.h"

#include <algorithm>
#include <charconv>

namespace tacet {
namespace {

// Far beyond any tensor, and small enough that elements times the widest data type still fits 64 bits.
constexpr int64_t kMaxElements = int64_t{1} << 58;
constexpr size_t kMaxShapeText = 80;

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

// Elements of one tensor; -1 for what cannot be one. A scalar has no dimensions and one element.
int64_t CountElements(std::span<const int64_t> dimensions) {
  int64_t count = 1;
  for (const int64_t dimension : dimensions) {
    if (dimension < 0 || __builtin_mul_overflow(count, dimension, &count) || count > kMaxElements) return -1;
  }
  return count;
}

}  // namespace

void IndexByHash::Grow() {
  std::vector<Slot> old(slots_.empty() ? 64 : slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.index_plus_one == 0) continue;
    // The upper half of the hash is the tag; the table never grows beyond what the lower half can address.
    size_t at = slot.home & (slots_.size() - 1);
    while (slots_[at].index_plus_one != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = slot;
  }
}

uint32_t FlightTables::IndexOfFrame(const FlightFrame& frame) {
  uint64_t hash = Mix(static_cast<uint32_t>(frame.function), static_cast<uint32_t>(frame.file));
  hash = Mix(hash, frame.line);
  const auto next = static_cast<uint32_t>(dump_.frames.size());
  const uint32_t index = frame_index_.FindOrAdd(hash, next, [&](uint32_t i) { return dump_.frames[i] == frame; });
  if (index == next) dump_.frames.push_back(frame);
  return index;
}

uint32_t FlightTables::IndexOfStack(std::span<const uint32_t> frames) {
  if (frames.empty()) return 0;
  uint64_t hash = frames.size();
  for (const uint32_t frame : frames) hash = Mix(hash, frame);
  const auto next = static_cast<uint32_t>(dump_.stacks.size());
  const uint32_t index = stack_index_.FindOrAdd(hash, next, [&](uint32_t i) {
    const FlightStack& stack = dump_.stacks[i];
    const uint32_t* const known = dump_.stack_frames.data() + stack.begin;
    return stack.count == frames.size() && std::equal(frames.begin(), frames.end(), known);
  });
  if (index == next) {
    dump_.stacks.push_back({static_cast<uint32_t>(dump_.stack_frames.size()), static_cast<uint32_t>(frames.size())});
    dump_.stack_frames.insert(dump_.stack_frames.end(), frames.begin(), frames.end());
  }
  return index;
}

FlightTables::Shape FlightTables::ShapeOf(std::span<const int64_t> code) {
  if (code.size() > kMaxCachedCode || shapes_.size() >= kMaxCachedShapes) return Measure(code);
  uint64_t hash = code.size();
  for (const int64_t value : code) hash = Mix(hash, static_cast<uint64_t>(value));
  const auto next = static_cast<uint32_t>(shapes_.size());
  const uint32_t index = shape_index_.FindOrAdd(hash, next, [&](uint32_t i) {
    const int64_t* const known = shape_code_.data() + shapes_[i].begin;
    return shapes_[i].count == code.size() && std::equal(code.begin(), code.end(), known);
  });
  if (index == next) {
    shapes_.push_back({shape_code_.size(), code.size(), Measure(code)});
    shape_code_.insert(shape_code_.end(), code.begin(), code.end());
  }
  return shapes_[index].shape;
}

FlightTables::Shape FlightTables::Measure(std::span<const int64_t> code) {
  Shape shape{.elements = 0};
  text_.assign("[");
  for (size_t at = 0; at < code.size();) {
    const std::span<const int64_t> tensor = code.subspan(at + 1, static_cast<size_t>(code[at]));
    at += tensor.size() + 1;
    const int64_t count = CountElements(tensor);
    if (count < 0 || shape.elements < 0 || shape.elements + count > kMaxElements)
      shape.elements = -1;
    else
      shape.elements += count;
    if (text_.size() > kMaxShapeText) continue;
    text_ += text_.size() > 1 ? ", [" : "[";
    for (size_t i = 0; i < tensor.size(); ++i) {
      char digits[24];
      const auto end = std::to_chars(digits, digits + sizeof digits, tensor[i]).ptr;
      if (i > 0) text_ += ", ";
      text_.append(digits, end);
    }
    text_ += ']';
  }
  text_ += ']';
  if (text_.size() > kMaxShapeText) {
    text_.resize(kMaxShapeText - 3);
    text_ += "...";
  }
  shape.text = strings_.Intern(text_);
  return shape;
}

}  // namespace tacet
