// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <charconv>

#include "evidence/flight_recorder/flight_recorder_pickle.h"

namespace tacet {
namespace {

constexpr size_t kMaxVersionText = 64;

}  // namespace

bool FlightPickle::Open(Tag tag) {
  Value value{.tag = tag};
  const Value* parent = nullptr;
  const Value* key = nullptr;
  value.role = RoleOfNew(tag, &parent, &key);
  if (value.role != Role::none && !OpenInRole(value, parent, key)) value.role = Role::none;
  return Push(value);
}

// A container's parent stands below the last mark, or, where a single item is written without a mark (Python does
// that), directly below it or below its key:
//   root MARK 'entries' [list]      list MARK [dict]      list [dict]      config '0' [dict]
FlightPickle::Role FlightPickle::RoleOfNew(Tag tag, const Value** parent, const Value** key) const {
  const size_t height = height_;
  if (height == 0) return tag == Tag::dict ? Role::root : Role::entries;
  const size_t bottom = Bottom();
  const Value* const top = height > bottom ? &stack_[height - 1] : nullptr;
  const Value* const around = bottom > 0 ? &stack_[bottom - 1] : nullptr;
  if (top != nullptr && top->tag == Tag::list) {
    if (const Role role = RoleOfItem(*top, tag); role != Role::none && (!around || around->tag != Tag::list)) {
      *parent = top;
      return role;
    }
  }
  if (around != nullptr && around->tag == Tag::list) {
    *parent = around;
    if (const Role role = RoleOfItem(*around, tag); role != Role::none) return role;
  }
  if (top == nullptr || (top->tag != Tag::text && top->tag != Tag::integer)) return Role::none;
  *key = top;
  // 'pg_config' {} 'pg_status' {} and 'pg_config' {} '0' {} look alike: a key of the outer dict wins.
  if (around != nullptr && around->tag == Tag::dict && (height - bottom) % 2 == 1) {
    *parent = around;
    if (const Role role = RoleOfMember(*around, *top, tag); role != Role::none) return role;
  }
  if (height < bottom + 2 || stack_[height - 2].tag != Tag::dict) return Role::none;
  *parent = &stack_[height - 2];
  return RoleOfMember(stack_[height - 2], *top, tag);
}

FlightPickle::Role FlightPickle::RoleOfMember(const Value& dict, const Value& key, Tag tag) {
  const bool is_dict = tag == Tag::dict;
  switch (dict.role) {
    case Role::root:
      if (key.key == FlightKey::pg_config && is_dict) return Role::config;
      if (key.key == FlightKey::pg_status && is_dict) return Role::status;
      if (key.key == FlightKey::entries && !is_dict) return Role::entries;
      return Role::none;
    case Role::config: return is_dict ? Role::config_group : Role::config_ranks;
    case Role::config_group: return key.key == FlightKey::ranks && !is_dict ? Role::config_ranks : Role::none;
    case Role::status: return is_dict ? Role::status_row : Role::none;
    case Role::entry:
      if (is_dict) return Role::none;
      switch (key.key) {
        case FlightKey::frames: return Role::frames;
        case FlightKey::input_sizes:
        case FlightKey::output_sizes: return Role::sizes;
        case FlightKey::input_dtypes:
        case FlightKey::output_dtypes:
        case FlightKey::process_group: return Role::words;
        default: return Role::none;
      }
    default: return Role::none;
  }
}

FlightPickle::Role FlightPickle::RoleOfItem(const Value& list, Tag tag) {
  if (list.role == Role::entries && tag == Tag::dict) return Role::entry;
  if (list.role == Role::frames && tag == Tag::dict) return Role::frame;
  if (list.role == Role::sizes && tag == Tag::list) return Role::dimensions;
  return Role::none;
}

bool FlightPickle::OpenInRole(Value& value, const Value* parent, const Value* key) {
  switch (value.role) {
    case Role::config_group: return OpenGroup(value, *key);
    case Role::config_ranks:
      // Version 1.2 has {pg_id: [ranks]}; in the later form the list belongs to the group's own dict.
      if (parent->role == Role::config && !OpenGroup(value, *key)) return false;
      if (parent->role == Role::config_group) value.index = parent->index;
      if (value.index >= dump_.groups.size()) return false;
      dump_.groups[value.index].ranks = static_cast<uint32_t>(dump_.rank_lists.size());
      dump_.rank_lists.emplace_back();
      return true;
    case Role::status_row: {
      if (dump_.statuses.size() >= kMaxGroups) return false;
      FlightStatus status{.pg_id = key->number};
      if (key->tag == Tag::text) {
        const std::string_view text = ViewOf(*key);
        status.pg_id = -1;
        std::from_chars(text.data(), text.data() + text.size(), status.pg_id);
      }
      value.index = static_cast<uint32_t>(dump_.statuses.size());
      dump_.statuses.push_back(status);
      return true;
    }
    case Role::entry: OpenEntry(value); return true;
    case Role::frame:
      value.index = static_cast<uint32_t>(frame_of_.size());
      frame_of_.push_back(tables_.IndexOfFrame({}));
      return frame_of_.size() < kMaxSlots;
    case Role::frames:
    case Role::sizes:
    case Role::dimensions:
    case Role::words: return OpenList(value);
    default: return true;
  }
}

bool FlightPickle::OpenGroup(Value& value, const Value& key) {
  if (dump_.groups.size() >= kMaxGroups) return false;
  FlightGroup group;
  group.name = key.tag == Tag::text ? Intern(key) : strings_.Intern(std::to_string(key.number));
  value.index = static_cast<uint32_t>(dump_.groups.size());
  dump_.groups.push_back(group);
  return true;
}

void FlightPickle::OpenEntry(Value& value) {
  if (!dump_.entries.empty() && !IsFlightEntry(dump_.entries.back())) {
    dump_.entries.pop_back();
    ++dump_.skipped_entries;
  }
  if (!lists_shared_) {
    lists_.clear();
    dimensions_.clear();
    tensors_.clear();
    stack_frames_.clear();
    words_.clear();
  }
  value.index = static_cast<uint32_t>(dump_.entries.size());
  value.number = static_cast<int64_t>(Offset() - 1);
  dump_.entries.emplace_back();
  dump_.entries.back().offset = Offset() - 1;
}

bool FlightPickle::OpenList(Value& value) {
  if (lists_.size() >= kMaxSlots) return false;
  value.index = static_cast<uint32_t>(lists_.size());
  value.number = ++list_serial_;
  lists_.emplace_back();
  lists_.back().serial = list_serial_;
  return true;
}

void FlightPickle::SetItems(const Value& dict, const Value* pairs, size_t count) {
  switch (dict.role) {
    case Role::entry: SetEntry(dict, pairs, count); break;
    case Role::frame: SetFrame(dict, pairs, count); break;
    case Role::root: SetRoot(pairs, count); break;
    case Role::config_group: SetGroup(dict, pairs, count); break;
    case Role::status_row:
      for (size_t i = 0; i < count; ++i) {
        const Value& value = pairs[2 * i + 1];
        if (value.tag == Tag::integer) SetStatusNumber(dump_.statuses[dict.index], pairs[2 * i].key, value.number);
      }
      dump_.understood = Offset();
      break;
    default: break;
  }
}

void FlightPickle::SetRoot(const Value* pairs, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const FlightKey key = pairs[2 * i].key;
    const Value& value = pairs[2 * i + 1];
    if (key >= FlightKey::version && key <= FlightKey::comm_lib_version) dump_.has_known_key = true;
    if (value.tag != Tag::text) continue;
    const std::string_view text = ViewOf(value).substr(0, kMaxVersionText);
    if (key == FlightKey::version) dump_.version = text;
    if (key == FlightKey::nccl_version || key == FlightKey::comm_lib_version) dump_.library_version = text;
    if (key == FlightKey::nccl_version) dump_.library_is_nccl = true;
  }
}

void FlightPickle::SetGroup(const Value& dict, const Value* pairs, size_t count) {
  FlightGroup& group = dump_.groups[dict.index];
  for (size_t i = 0; i < count; ++i) {
    const Value& value = pairs[2 * i + 1];
    if (value.tag != Tag::text) continue;
    switch (pairs[2 * i].key) {
      case FlightKey::name: group.name = Intern(value); break;
      case FlightKey::desc: group.description = Intern(value); break;
      case FlightKey::ranks: group.ranks = RanksOf(value); break;
      default: break;
    }
  }
  dump_.understood = Offset();
}

void FlightPickle::SetEntry(const Value& dict, const Value* pairs, size_t count) {
  if (dict.index >= dump_.entries.size()) return;
  FlightEntry& entry = dump_.entries[dict.index];
  if (entry.offset != static_cast<uint64_t>(dict.number)) return;
  for (size_t i = 0; i < count; ++i) {
    const FlightKey key = pairs[2 * i].key;
    const Value& value = pairs[2 * i + 1];
    if (!IsEntryKey(key)) continue;
    MarkField(entry, key);
    switch (value.tag) {
      case Tag::integer:
      case Tag::boolean: SetEntryNumber(entry, key, value.number); break;
      case Tag::real: SetEntryReal(entry, key, std::bit_cast<double>(value.number)); break;
      case Tag::text: SetEntryText(entry, key, value); break;
      case Tag::list: SetEntryList(entry, key, value); break;
      case Tag::pair:
        if (key != FlightKey::process_group) break;
        entry.group_name = Intern({.tag = Tag::text, .index = value.index});
        entry.group_description = Intern({.tag = Tag::text, .index = static_cast<uint32_t>(value.number)});
        break;
      default: break;
    }
  }
  dump_.understood = Offset();
}

void FlightPickle::SetEntryText(FlightEntry& entry, FlightKey key, const Value& value) {
  if (key == FlightKey::profiling_name) entry.name = Intern(value);
  if (key == FlightKey::state) SetEntryState(entry, value.key);
}

void FlightPickle::SetEntryList(FlightEntry& entry, FlightKey key, const Value& value) {
  List* const list = ListOf(value);
  if (list == nullptr) return;
  switch (value.role) {
    case Role::frames:
      if (!list->sealed)
        list->result = tables_.IndexOfStack({stack_frames_.data() + list->begin, list->end - list->begin});
      entry.stack = list->result;
      break;
    case Role::sizes:
      if (!list->sealed) SealShape(*list);
      if (list->end > list->begin) entry.has_no_tensors = false;
      if (key == FlightKey::input_sizes) {
        entry.in_elements = list->elements;
        entry.shape = StringId{list->result};
      } else if (key == FlightKey::output_sizes) {
        entry.out_elements = list->elements;
      }
      break;
    case Role::words: {
      const auto word = [&](uint32_t at) {
        return list->begin + at < list->end ? Intern({.tag = Tag::text, .index = words_[list->begin + at]})
                                            : StringId{};
      };
      if (key == FlightKey::process_group) {
        entry.group_name = word(0);
        entry.group_description = word(1);
      } else if ((key == FlightKey::input_dtypes && list->end > list->begin) || entry.data_type == StringId{}) {
        entry.data_type = word(0);
      }
      break;
    }
    default: break;
  }
  list->sealed = true;
}

void FlightPickle::SetFrame(const Value& dict, const Value* pairs, size_t count) {
  FlightFrame frame = dump_.frames[frame_of_[dict.index]];
  for (size_t i = 0; i < count; ++i) {
    const Value& value = pairs[2 * i + 1];
    const FlightKey key = pairs[2 * i].key;
    if (key == FlightKey::name && value.tag == Tag::text) frame.function = Intern(value);
    if (key == FlightKey::filename && value.tag == Tag::text) frame.file = Intern(value);
    if (key == FlightKey::line && value.tag == Tag::integer)
      frame.line = static_cast<uint32_t>(std::clamp<int64_t>(value.number, 0, UINT32_MAX));
  }
  frame_of_[dict.index] = tables_.IndexOfFrame(frame);
}

void FlightPickle::Append(const Value& value, const Value* items, size_t count) {
  if (value.role == Role::config_ranks) {
    std::vector<int32_t>& ranks = dump_.rank_lists[dump_.groups[value.index].ranks];
    for (size_t i = 0; i < count; ++i) ranks.push_back(items[i].tag == Tag::integer ? RankNumber(items[i].number) : -1);
    dump_.understood = Offset();
    return;
  }
  List* const list = value.role >= Role::frames ? ListOf(value) : nullptr;
  if (list == nullptr || list->sealed) return;
  switch (value.role) {
    case Role::frames: AppendToPool(*list, stack_frames_, Role::frame, items, count); break;
    case Role::sizes: AppendToPool(*list, tensors_, Role::dimensions, items, count); break;
    case Role::dimensions: AppendDimensions(*list, items, count); break;
    case Role::words: AppendToPool(*list, words_, Role::none, items, count); break;
    default: break;
  }
}

// A list is filled in one go. One that comes back after another list used the pool would have to be copied, again and
// again if somebody wanted to harm us, so its rest is not read.
void FlightPickle::AppendToPool(List& list, std::vector<uint32_t>& pool, Role role, const Value* items, size_t count) {
  if (list.begin == list.end) list.begin = list.end = static_cast<uint32_t>(pool.size());
  if (list.end != pool.size()) {
    list.broken = true;
    return;
  }
  const uint32_t room = role == Role::frame ? kMaxFrames : role == Role::none ? kMaxWords : UINT32_MAX;
  for (size_t i = 0; i < count && pool.size() - list.begin < room; ++i) {
    const Value& item = items[i];
    if (item.role == role && role == Role::frame)
      pool.push_back(frame_of_[item.index]);
    else if (item.role == role && (role == Role::none ? item.tag == Tag::text : ListOf(item) != nullptr))
      pool.push_back(item.index);
    else
      list.broken = true;
  }
  list.end = static_cast<uint32_t>(pool.size());
}

void FlightPickle::AppendDimensions(List& list, const Value* items, size_t count) {
  if (list.begin == list.end) list.begin = list.end = static_cast<uint32_t>(dimensions_.size());
  if (list.end != dimensions_.size() || list.end - list.begin + count > FlightTables::kMaxDimensions) {
    list.broken = true;
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    if (items[i].tag != Tag::integer) list.broken = true;
    dimensions_.push_back(items[i].number);
  }
  list.end = static_cast<uint32_t>(dimensions_.size());
}

void FlightPickle::SealShape(List& list) {
  bool broken = list.broken;
  shape_code_.clear();
  for (uint32_t i = list.begin; i < list.end; ++i) {
    const List& tensor = lists_[tensors_[i]];
    broken = broken || tensor.broken;
    shape_code_.push_back(tensor.end - tensor.begin);
    shape_code_.insert(shape_code_.end(), dimensions_.begin() + tensor.begin, dimensions_.begin() + tensor.end);
  }
  if (broken) return;
  const FlightTables::Shape shape = tables_.ShapeOf(shape_code_);
  list.elements = shape.elements;
  list.result = static_cast<uint32_t>(shape.text);
}

FlightPickle::List* FlightPickle::ListOf(const Value& value) {
  if (value.tag != Tag::list || value.role < Role::frames || value.index >= lists_.size()) return nullptr;
  List& list = lists_[value.index];
  return list.serial == value.number ? &list : nullptr;
}

std::string_view FlightPickle::ViewOf(const Value& text) const {
  return {texts_[text.index].data, texts_[text.index].size};
}

StringId FlightPickle::Intern(const Value& text) {
  Text& entry = texts_[text.index];
  if (entry.id == kNotInterned) entry.id = strings_.Intern({entry.data, entry.size});
  return entry.id;
}

uint32_t FlightPickle::RanksOf(const Value& text) {
  if (texts_[text.index].rank_list == FlightGroup::kNoRanks) {
    texts_[text.index].rank_list = static_cast<uint32_t>(dump_.rank_lists.size());
    dump_.rank_lists.push_back(ParseRankList(ViewOf(text)));
  }
  return texts_[text.index].rank_list;
}

// The root's own items are set by its last SETITEMS, which a cut file does not have: they still lie on the stack.
void FlightPickle::FinishRoot() {
  if (stopped_) {
    dump_.understood = Offset();
    if (height_ != 1) Fail(FlightEnding::malformed, "the pickle holds more or less than one object");
  } else if (height_ > 2 && stack_[0].role == Role::root && stack_[0].tag == Tag::dict && !marks_.empty() &&
             marks_[0] == 1) {
    const size_t top = marks_.size() > 1 ? marks_[1] : height_;
    SetRoot(stack_.data() + 1, (top - 1) / 2);
  }
  if (!dump_.entries.empty() && !IsFlightEntry(dump_.entries.back())) {
    dump_.entries.pop_back();
    if (stopped_) ++dump_.skipped_entries;
  }
}

}  // namespace tacet
