// SPDX-License-Identifier: Apache-2.0
#include "evidence/flight_recorder/flight_recorder_pickle.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "evidence/flight_recorder/flight_recorder_opcodes.h"

namespace tacet {
namespace {

// The longest of the opcodes that PushPlainValues reads: LONG1 with eight bytes.
constexpr ptrdiff_t kLongestPlain = 10;

template <typename T>
T Load(const uint8_t* at) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

//     0: 80 02                 PROTO 2
//     2: 7d 28                 EMPTY_DICT MARK
//     4: 58 07 00 00 00 ...    BINUNICODE 'version'      16: 71 00  BINPUT 0
//   504: 7d 28 58 06 00 00 00  EMPTY_DICT MARK BINUNICODE 'frames'
//   866: 68 1c                 BINGET 28, a frame dict that stood before
void FlightPickle::Read() {
  at_ = reinterpret_cast<const uint8_t*>(bytes_.data());
  end_ = at_ + bytes_.size();
  dump_.entries.reserve(std::min<size_t>(bytes_.size() / 128, 4096));
  if (Has(1) && *at_ == kProto) {
    if (!Has(2)) return FailTruncated();
    if (at_[1] < 2 || at_[1] > 5)
      return Fail(FlightEnding::malformed, "pickle protocol " + std::to_string(at_[1]) + " is not one of 2 to 5");
    at_ += 2;
  }
  Run();
  FinishRoot();
}

void FlightPickle::Run() {
  while (!stopped_ && dump_.ending == FlightEnding::whole) {
    PushPlainValues();
    if (at_ >= end_) return FailTruncated();
    Step();
  }
}

// Most of a dump is keys out of the memo and small numbers. They are read in one tight loop, up to the next opcode that
// is neither, or that is not all there.
void FlightPickle::PushPlainValues() {
  const uint8_t* at = at_;
  const uint8_t* const end = end_ - std::min<ptrdiff_t>(end_ - at_, kLongestPlain);
  Value* top = stack_.data() + height_;
  const Value* const limit = stack_.data() + stack_.size();
  const Value* const memo = memo_.data();
  const size_t memo_size = memo_.size();
  bool plain = true;
  while (plain && at < end && top < limit) {
    if (*at == kBinGet) {
      plain = at[1] < memo_size && memo[at[1]].role != Role::unwritten;
      if (!plain) break;
      *top++ = memo[at[1]];
      at += 2;
      continue;
    }
    switch (*at) {
      case kLongBinGet: {
        const uint64_t slot = Load<uint32_t>(at + 1);
        plain = slot < memo_size && memo[slot].role != Role::unwritten;
        if (!plain) break;
        *top++ = memo[slot];
        at += 5;
        break;
      }
      case kBinInt1:
        *top++ = Integer(at[1]);
        at += 2;
        break;
      case kBinInt2:
        *top++ = Integer(Load<uint16_t>(at + 1));
        at += 3;
        break;
      case kBinInt:
        *top++ = Integer(Load<int32_t>(at + 1));
        at += 5;
        break;
      case kLong1:
        plain = at[1] == 8;
        if (!plain) break;
        *top++ = Integer(Load<int64_t>(at + 2));
        at += 10;
        break;
      case kBinFloat:
        *top++ = Real(__builtin_bswap64(Load<uint64_t>(at + 1)));
        at += 9;
        break;
      case kNone:
        *top++ = Value{};
        ++at;
        break;
      case kNewTrue:
      case kNewFalse:
        *top++ = Value{.tag = Tag::boolean, .number = *at == kNewTrue};
        ++at;
        break;
      default: plain = false;
    }
  }
  at_ = at;
  height_ = static_cast<size_t>(top - stack_.data());
}

void FlightPickle::Step() {
  const uint8_t opcode = *at_++;
  bool whole = true;  // the operand is all there
  size_t from = 0;
  switch (opcode) {
    case kMark: OpenMark(); break;
    case kEmptyDict: Open(Tag::dict); break;
    case kEmptyList: OpenWholeList(); break;
    case kSetItems:
      if (!CloseMark(&from)) return;
      if ((height_ - from) % 2 != 0 || stack_[from - 1].tag != Tag::dict)
        return Fail(FlightEnding::malformed, "SETITEMS without a dict or with a key that has no value");
      SetItems(stack_[from - 1], stack_.data() + from, (height_ - from) / 2);
      height_ = from;
      break;
    case kAppends:
      if (!CloseMark(&from)) return;
      if (stack_[from - 1].tag != Tag::list) return Fail(FlightEnding::malformed, "APPENDS without a list");
      Append(stack_[from - 1], stack_.data() + from, height_ - from);
      height_ = from;
      break;
    case kSetItem:
      if (height_ < Bottom() + 3 || stack_[height_ - 3].tag != Tag::dict)
        return Fail(FlightEnding::malformed, "SETITEM without a dict, a key and a value");
      height_ -= 2;
      SetItems(stack_[height_ - 1], stack_.data() + height_, 1);
      break;
    case kAppend:
      if (height_ < Bottom() + 2 || stack_[height_ - 2].tag != Tag::list)
        return Fail(FlightEnding::malformed, "APPEND without a list and a value");
      height_ -= 1;
      Append(stack_[height_ - 1], stack_.data() + height_, 1);
      break;
    case kTuple:
      if (marks_.empty()) return Fail(FlightEnding::malformed, "TUPLE without a mark");
      from = marks_.back();
      marks_.pop_back();
      MakeTuple(height_ - from);
      break;
    case kTuple1:
    case kTuple2:
    case kTuple3:
      if (height_ < Bottom() + (opcode - kTuple1 + 1))
        return Fail(FlightEnding::malformed, "a tuple of more values than there are");
      MakeTuple(opcode - kTuple1 + 1);
      break;
    case kBinGet: whole = Has(1) && PushMemo(LittleEndian(1)); break;
    case kLongBinGet: whole = Has(4) && PushMemo(LittleEndian(4)); break;
    case kBinPut: whole = Has(1) && Memoise(LittleEndian(1)); break;
    case kLongBinPut: whole = Has(4) && Memoise(LittleEndian(4)); break;
    case kMemoize: Memoise(memo_.size()); break;
    case kBinInt1: whole = Has(1) && Push(Integer(static_cast<int64_t>(LittleEndian(1)))); break;
    case kBinInt2: whole = Has(2) && Push(Integer(static_cast<int64_t>(LittleEndian(2)))); break;
    case kBinInt: whole = Has(4) && Push(Integer(static_cast<int32_t>(LittleEndian(4)))); break;
    case kLong1: whole = Has(1) && PushLong(LittleEndian(1)); break;
    case kLong4: whole = Has(4) && PushLong(LittleEndian(4)); break;
    case kBinFloat: whole = Has(8) && Push(Real(__builtin_bswap64(LittleEndian(8)))); break;
    case kNewTrue: Push({.tag = Tag::boolean, .number = 1}); break;
    case kNewFalse: Push({.tag = Tag::boolean}); break;
    case kNone:
    case kEmptyTuple: Push({}); break;
    case kShortBinUnicode:
    case kShortBinBytes: whole = Has(1) && PushText(LittleEndian(1)); break;
    case kBinUnicode:
    case kBinBytes: whole = Has(4) && PushText(LittleEndian(4)); break;
    case kBinUnicode8:
    case kBinBytes8: whole = Has(8) && PushText(LittleEndian(8)); break;
    case kFrame: whole = Has(8) && (LittleEndian(8), true); break;  // its length says nothing that the bytes do not
    case kStop: stopped_ = true; break;
    default: --at_; return RefuseOpcode(opcode);
  }
  if (!whole) FailTruncated();
}

void FlightPickle::Fail(FlightEnding ending, std::string problem) {
  if (dump_.ending != FlightEnding::whole) return;
  dump_.ending = ending;
  dump_.problem = std::move(problem);
  dump_.problem_offset = Offset();
}

void FlightPickle::FailTruncated() {
  at_ = end_;
  Fail(FlightEnding::truncated, "the pickle ends before its STOP");
}

void FlightPickle::RefuseOpcode(uint8_t opcode) {
  const bool calls = DoesOpcodeCall(opcode);
  char text[160];
  std::snprintf(text, sizeof text, "pickle opcode %s (0x%02x) at offset %llu %s", NameOfRefusedOpcode(opcode), opcode,
                static_cast<unsigned long long>(Offset()),
                calls ? "would import or call code" : "is not one that a dump uses");
  Fail(calls ? FlightEnding::malicious : FlightEnding::malformed, text);
}

uint64_t FlightPickle::LittleEndian(size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= static_cast<uint64_t>(at_[i]) << (8 * i);
  at_ += count;
  return value;
}

bool FlightPickle::GrowStack() {
  // A list waits on the stack until it is whole; its values are entries of a hundred bytes, or ranks.
  constexpr size_t kFreeValues = size_t{1} << 16;
  if (height_ >= kMaxSlots || height_ > kFreeValues + Offset() / 8) {
    Fail(FlightEnding::malformed, "more values in one list than any dump has");
    return false;
  }
  stack_.resize(std::max<size_t>(height_ + height_ / 2, 512));
  return true;
}

// False when the bytes end before the text does.
bool FlightPickle::PushText(uint64_t size) {
  if (!Has(size)) return false;
  if (size > UINT32_MAX || texts_.size() >= kMaxSlots) {
    Fail(FlightEnding::malformed, size > UINT32_MAX ? "a string of more than four gigabytes" : "too many strings");
    return true;
  }
  const auto* const data = reinterpret_cast<const char*>(at_);
  at_ += size;
  const FlightKey key = FlightKeyOf({data, size});
  texts_.push_back({data, static_cast<uint32_t>(size), kNotInterned, FlightGroup::kNoRanks});
  return Push({.tag = Tag::text, .key = key, .index = static_cast<uint32_t>(texts_.size() - 1)});
}

// Two's complement, little endian, as many bytes as needed. What exceeds 64 bits is no number of a dump.
bool FlightPickle::PushLong(uint64_t size) {
  if (!Has(size)) return false;
  if (size > 8) {
    at_ += size;
    return Push({});
  }
  const bool negative = size > 0 && (at_[size - 1] & 0x80) != 0;
  uint64_t value = LittleEndian(size);
  if (negative && size < 8) value |= ~uint64_t{0} << (8 * size);
  return Push(Integer(static_cast<int64_t>(value)));
}

// Numbers are given out one after another, and each took two bytes at least (one for the value, one for this), so a
// number beyond that is a lie that would only make us allocate. A little slack: some picklers start at 1.
bool FlightPickle::Memoise(uint64_t slot) {
  if (height_ <= Bottom()) {
    Fail(FlightEnding::malformed, "a memo without a value");
    return true;
  }
  if (slot > Offset() / 2 + 16 || slot >= kMaxSlots) {
    Fail(FlightEnding::malformed, "memo number " + std::to_string(slot) + " is out of order");
    return true;
  }
  if (slot >= memo_.size()) memo_.resize(slot + 1, Value{.role = Role::unwritten});
  const Value& value = stack_[height_ - 1];
  if (value.tag == Tag::list && value.role >= Role::frames) lists_shared_ = true;
  memo_[slot] = value;
  return true;
}

bool FlightPickle::PushMemo(uint64_t slot) {
  if (slot >= memo_.size() || memo_[slot].role == Role::unwritten) {
    Fail(FlightEnding::malformed, "memo number " + std::to_string(slot) + " was never written");
    return true;
  }
  return Push(memo_[slot]);
}

void FlightPickle::OpenMark() {
  if (marks_.size() >= kMaxMarks) return Fail(FlightEnding::malformed, "nesting is deeper than 1000");
  marks_.push_back(static_cast<uint32_t>(height_));
}

// A list of plain values, such as the size of a tensor or a stack of known frames, is read to its end without a mark:
//   5d 28 4a 00 00 04 00 65    EMPTY_LIST MARK BININT 262144 APPENDS
void FlightPickle::OpenWholeList() {
  Open(Tag::list);
  if (!Has(1) || *at_ != kMark || dump_.ending != FlightEnding::whole) return;
  ++at_;
  OpenMark();
  PushPlainValues();
  if (!Has(1) || *at_ != kAppends || dump_.ending != FlightEnding::whole) return;
  ++at_;
  const size_t from = marks_.back();
  marks_.pop_back();
  Append(stack_[from - 1], stack_.data() + from, height_ - from);
  height_ = from;
}

bool FlightPickle::CloseMark(size_t* from) {
  if (marks_.empty() || marks_.back() == 0 || (marks_.size() > 1 && marks_[marks_.size() - 2] >= marks_.back())) {
    Fail(FlightEnding::malformed, "the end of a list or dict that never began");
    return false;
  }
  *from = marks_.back();
  marks_.pop_back();
  return true;
}

// Only pairs of texts have a meaning: process_group is (name, description).
bool FlightPickle::MakeTuple(size_t count) {
  Value tuple;
  if (count == 2) {
    const Value& first = stack_[height_ - 2];
    const Value& second = stack_[height_ - 1];
    if (first.tag == Tag::text && second.tag == Tag::text)
      tuple = {.tag = Tag::pair, .index = first.index, .number = second.index};
  }
  height_ -= count;
  return Push(tuple);
}

}  // namespace tacet
