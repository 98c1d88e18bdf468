// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plugin/record/event_handle.h"
#include "plugin/record/tick_clock.h"

// Where the host stands in a group call: ncclGroupStart, the calls, ncclGroupEnd, the kernel launches in it. A slot is
// overwritten by a group that comes a lap later; the serial in its word tells whose it is. A group the host is still in
// keeps its slot however many others pass by, since its operations count as the host's as long as it stands there (see
// Settle): a thread that loses its processor between a call and its task must not find the operation given up.
namespace tacet::plugin {

inline box::Group& GroupSlotOf(OpenBox& box, uint64_t serial) { return box.groups[serial & box.group_mask]; }

inline EventHandle GroupHandle(HandleKind kind, uint64_t serial) {
  return {static_cast<uint64_t>(kind) << 60 | (serial & 0x00ffffffffffffffu)};
}
inline uint64_t GroupSerial(EventHandle handle) { return handle.bits & 0x00ffffffffffffffu; }

inline bool IsGroupOver(uint64_t word) {
  return word == 0 || static_cast<box::GroupState>(word & 0xff) == box::GroupState::done;
}

// Groups that an error left open are passed over, but not for ever.
inline uint64_t NextGroup(OpenBox& box) {
  uint64_t serial = Add(box.header->group_next, 1) + 1;
  for (int tries = 1; tries < 8 && !IsGroupOver(Load(GroupSlotOf(box, serial).word)); ++tries)
    serial = Add(box.header->group_next, 1) + 1;
  return serial;
}

inline EventHandle BeginGroup(OpenBox& box, uint16_t comm, bool captured) {
  const uint64_t serial = NextGroup(box);
  box::Group& group = GroupSlotOf(box, serial);
  Store(group.word, serial << 8 | static_cast<uint64_t>(box::GroupState::none));  // taken, not yet filled in
  Store(group.since_ticks, uint64_t{0});
  Store(group.begin_ticks, uint64_t{0});
  Store(group.launch_begin_ticks, uint64_t{0});
  Store(group.launch_end_ticks, uint64_t{0});
  Store(group.stream, uint64_t{0});
  Store(group.comm, comm);
  Store(group.captured, static_cast<uint8_t>(captured));
  StoreRelease(group.word, serial << 8 | static_cast<uint64_t>(box::GroupState::open));
  return GroupHandle(HandleKind::group, serial);
}

// Null when the slot belongs to a later group by now.
inline box::Group* FindGroup(OpenBox& box, EventHandle handle) {
  if (handle.kind() != HandleKind::group && handle.kind() != HandleKind::launch) return nullptr;
  const uint64_t serial = GroupSerial(handle);
  box::Group& group = GroupSlotOf(box, serial);
  return serial != 0 && Load(group.word) >> 8 == serial ? &group : nullptr;
}

// Reading the clock is the dearest thing an event does, so only what takes long is timed: a group has the time of its
// first call, and that of its launch.
inline void DateGroup(OpenBox& box, uint64_t serial, uint64_t now) {
  box::Group& group = GroupSlotOf(box, serial);
  if (Load(group.begin_ticks) != 0 || Load(group.word) >> 8 != serial) return;
  Store(group.begin_ticks, now);
  Store(group.since_ticks, now);
}

inline void MoveGroup(OpenBox& box, EventHandle handle, box::GroupState state) {
  if (box::Group* group = FindGroup(box, handle))
    Store(group->word, GroupSerial(handle) << 8 | static_cast<uint64_t>(state));
}

inline void MoveGroup(box::Group& group, uint64_t serial, box::GroupState state, uint64_t now) {
  Store(group.since_ticks, now);
  Store(group.word, serial << 8 | static_cast<uint64_t>(state));
}

inline EventHandle BeginLaunch(OpenBox& box, EventHandle parent, uint64_t stream) {
  box::Group* group = FindGroup(box, parent);
  if (group == nullptr) return {};
  const uint64_t now = Ticks();
  Store(group->launch_begin_ticks, now);
  Store(group->launch_end_ticks, uint64_t{0});
  Store(group->stream, stream);
  MoveGroup(*group, GroupSerial(parent), box::GroupState::launching, now);
  return GroupHandle(HandleKind::launch, GroupSerial(parent));
}

inline void EndLaunch(OpenBox& box, EventHandle handle) {
  box::Group* group = FindGroup(box, handle);
  if (group == nullptr) return;
  const uint64_t now = Ticks();
  Store(group->launch_end_ticks, now);
  MoveGroup(*group, GroupSerial(handle), box::GroupState::launched, now);
}

}  // namespace tacet::plugin
