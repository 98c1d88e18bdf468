// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "evidence/flight_recorder/flight_recorder_keys.h"
#include "evidence/flight_recorder/flight_recorder_parse.h"
#include "evidence/flight_recorder/flight_recorder_tables.h"

namespace tacet {

// A pickle machine that knows a closed table of opcodes and executes nothing. It builds no tree of objects: every dict
// and list gets its role (an entry, a frame, a tensor's size ...) at the moment it is opened, from the container around
// it and the key before it, and its contents go straight into the record of that role. Memory grows with the bytes
// read.
class FlightPickle {
 public:
  FlightPickle(std::string_view bytes, FlightDump& dump, StringTable& strings)
      : bytes_(bytes), dump_(dump), strings_(strings), tables_(dump, strings) {}

  void Read();

 private:
  enum class Tag : uint8_t { nothing, boolean, integer, real, text, pair, dict, list };
  enum class Role : uint8_t {
    none,
    root,
    config,
    config_group,
    config_ranks,
    status,
    status_row,
    entries,
    entry,
    frames,
    frame,
    sizes,
    dimensions,
    words,      // data types, or process_group as a list
    unwritten,  // a slot of the memo that was passed over
  };
  struct Value {
    Tag tag = Tag::nothing;
    Role role = Role::none;
    FlightKey key = FlightKey::none;  // of a text
    uint32_t index = 0;               // into the table of its tag or role
    int64_t number = 0;               // integer, bits of a real, second text of a pair, serial of a list
  };
  static_assert(sizeof(Value) == 16);

  // A string as it stands in the file; interned when first used as more than a key.
  struct Text {
    const char* data;
    uint32_t size;
    StringId id;
    uint32_t rank_list;  // its index once read as "[0, 1, 2]"
  };
  // A list inside an entry. Kept small: hostile input opens one with each byte.
  struct List {
    uint32_t begin = 0, end = 0;  // into the pool of its role
    uint32_t serial = 0;
    uint32_t result = 0;    // once sealed: index of the stack, or StringId of the shape
    int64_t elements = -1;  // once sealed: of all tensors
    bool broken = false;    // holds what it should not
    bool sealed = false;    // somebody used it: it takes nothing more
  };
  static constexpr StringId kNotInterned = StringId{0xffffffffu};

  // Hostile input must not cost more than this, whatever it claims. Real dumps stay far below.
  static constexpr size_t kMaxSlots = size_t{1} << 24;  // values on the stack, texts, memo
  static constexpr size_t kMaxMarks = 1000;             // nesting
  static constexpr size_t kMaxGroups = size_t{1} << 20;
  static constexpr uint32_t kMaxFrames = 1024;  // of one stack
  static constexpr uint32_t kMaxWords = 2;      // of a list of texts: no more are of interest

  // The opcodes: flight_recorder_pickle.cc
  void Run();
  void PushPlainValues();
  void Step();
  void Fail(FlightEnding ending, std::string problem);
  void FailTruncated();
  void RefuseOpcode(uint8_t opcode);
  bool Has(size_t count) const { return static_cast<size_t>(end_ - at_) >= count; }
  uint64_t LittleEndian(size_t count);
  bool Push(const Value& value) {
    if (height_ == stack_.size() && !GrowStack()) return true;
    stack_[height_++] = value;
    return true;
  }
  bool GrowStack();
  static Value Integer(int64_t value) { return {.tag = Tag::integer, .number = value}; }
  static Value Real(uint64_t bits) { return {.tag = Tag::real, .number = static_cast<int64_t>(bits)}; }
  bool PushText(uint64_t size);
  bool PushLong(uint64_t size);
  bool Memoise(uint64_t slot);
  bool PushMemo(uint64_t slot);
  size_t Bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  void OpenMark();
  void OpenWholeList();
  bool CloseMark(size_t* from);
  bool MakeTuple(size_t count);
  uint64_t Offset() const { return static_cast<uint64_t>(at_ - reinterpret_cast<const uint8_t*>(bytes_.data())); }

  // What the containers mean: flight_recorder_pickle_roles.cc
  bool Open(Tag tag);
  Role RoleOfNew(Tag tag, const Value** parent, const Value** key) const;
  static Role RoleOfMember(const Value& dict, const Value& key, Tag tag);
  static Role RoleOfItem(const Value& list, Tag tag);
  bool OpenInRole(Value& value, const Value* parent, const Value* key);
  bool OpenGroup(Value& value, const Value& key);
  void OpenEntry(Value& value);
  bool OpenList(Value& value);
  void SetItems(const Value& dict, const Value* pairs, size_t count);
  void Append(const Value& list, const Value* items, size_t count);
  void SetRoot(const Value* pairs, size_t count);
  void SetGroup(const Value& dict, const Value* pairs, size_t count);
  void SetEntry(const Value& dict, const Value* pairs, size_t count);
  void SetEntryText(FlightEntry& entry, FlightKey key, const Value& value);
  void SetEntryList(FlightEntry& entry, FlightKey key, const Value& value);
  void SetFrame(const Value& dict, const Value* pairs, size_t count);
  void AppendDimensions(List& list, const Value* items, size_t count);
  void AppendToPool(List& list, std::vector<uint32_t>& pool, Role role, const Value* items, size_t count);
  void SealShape(List& list);
  List* ListOf(const Value& value);
  StringId Intern(const Value& text);
  std::string_view ViewOf(const Value& text) const;
  uint32_t RanksOf(const Value& text);
  void FinishRoot();

  std::string_view bytes_;
  const uint8_t* at_ = nullptr;
  const uint8_t* end_ = nullptr;
  FlightDump& dump_;
  StringTable& strings_;
  FlightTables tables_;
  bool stopped_ = false;
  bool lists_shared_ = false;  // the memo holds a list, so lists outlive their entry
  uint32_t list_serial_ = 0;
  std::vector<Value> stack_;  // its first height_ values
  size_t height_ = 0;
  std::vector<uint32_t> marks_;  // height of the stack at each mark
  std::vector<Value> memo_;
  std::vector<Text> texts_;
  std::vector<uint32_t> frame_of_;  // frame dict -> index into FlightDump::frames
  std::vector<List> lists_;
  std::vector<int64_t> dimensions_;     // pool of the lists of role dimensions
  std::vector<uint32_t> tensors_;       // pool of role sizes: indices into lists_
  std::vector<uint32_t> stack_frames_;  // pool of role frames: indices into FlightDump::frames
  std::vector<uint32_t> words_;         // pool of role words: indices into texts_
  std::vector<int64_t> shape_code_;
};

}  // namespace tacet
