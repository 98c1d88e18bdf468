// SPDX-License-Identifier: Apache-2.0
// Draws a job by hand for tests: ranks, groups, what each rank issued and how far it got, stacks, events, lost files.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "model/incident.h"

namespace tacet {

inline constexpr int64_t kMillisecondNs = 1'000'000;
inline constexpr int64_t kSecondNs = 1'000'000'000;

inline constexpr GroupIndex kWorld{0};

// A call to issue. Whatever is left out is that of a gradient all-reduce which ended well.
struct SketchedCall {
  OpKind kind = OpKind::all_reduce;
  GroupIndex group = kWorld;
  int64_t elements = 1024;
  int64_t out_elements = -1;  // -1: as `elements`
  DataType type = DataType::float32;
  ReduceOp reduction = ReduceOp::sum;  // flight records do not keep it
  int32_t peer = -1;                   // group rank
  CallState state = CallState::completed;
  uint8_t flags = 0;
  int64_t seq = -1;  // -1: the next one of its counter
  float duration_ms = -1;
  std::string_view site = "train_step";  // the user's function that issues it
};
inline constexpr SketchedCall kStarted{.state = CallState::started};
inline constexpr SketchedCall kEnqueued{.state = CallState::enqueued};

struct SketchedFrame {
  std::string_view function, file;
  uint32_t line = 1;
};

// Stacks of a rank that sits in a collective, in its data loader, in a wait for its GPU.
std::vector<SketchedFrame> InCollective();
std::vector<SketchedFrame> InDataLoader();
std::vector<SketchedFrame> InSynchronize();

// Calls are written to every source in `sources`; the clock moves on with each round of calls and with Wait().
class JobSketch {
 public:
  explicit JobSketch(int32_t world, std::vector<CallSource> sources = {CallSource::flight_recorder});

  GroupIndex AddGroup(std::string description, const std::vector<int32_t>& members);
  std::vector<int32_t> AllBut(const std::vector<int32_t>& left_out) const;

  // One rank issues; the clock stands still.
  void Issue(int32_t rank, const SketchedCall& call);
  // These ranks issue at the same moment, then 10 ms pass.
  void IssueOn(const std::vector<int32_t>& ranks, const SketchedCall& call);
  // All members of the call's group.
  void IssueAll(const SketchedCall& call = {});
  void Rounds(int count) {
    for (int i = 0; i < count; ++i) IssueAll();
  }
  void Wait(int64_t ns) { now_ns += ns; }

  CallStream& StreamOf(int32_t rank, CallSource source = CallSource::flight_recorder);
  Call& LastCall(int32_t rank, CallSource source = CallSource::flight_recorder);
  Group& GroupAt(GroupIndex group) { return incident_.groups[static_cast<uint32_t>(group)]; }

  // What a rank's output, its NCCL log or the kernel of its host tells. The reference holds until the next event.
  Event& Say(int32_t rank, EventKind kind);
  Event& Log(int32_t rank, EventKind kind);
  Event& Tell(EventKind kind);  // by nobody of the job
  void Stack(int32_t rank, const std::vector<SketchedFrame>& frames);
  void TimeOut(int32_t rank, int64_t seq);  // its watchdog fires
  void GiveOutputs();                       // every rank has an output file, with nothing of interest
  void FinishAll();                         // every rank says that it ended in order

  // Files that were not collected, or never written.
  void LoseRecord(int32_t rank, CallSource source = CallSource::flight_recorder);
  void LoseEverything(int32_t rank);

  // All that was drawn. Records are as old as the clock says.
  Incident Finish();

  int32_t world() const { return world_; }

  int64_t now_ns = 1'700'000'000 * kSecondNs;
  bool timed = true;  // records tell when the GPU began
  uint32_t timeout_ms = 600'000;
  bool tells_written_time = true;  // files keep the time they were written at

 private:
  struct Key {
    CallSource source;
    int32_t rank;
    auto operator<=>(const Key&) const = default;
  };
  FileId FileOf(int32_t rank, std::string_view format);
  StackId StackOf(const std::vector<SketchedFrame>& frames);
  uint32_t NextSeq(int32_t rank, CallSource source, const SketchedCall& call);

  int32_t world_;
  std::vector<CallSource> sources_;
  Incident incident_;
  std::map<Key, CallStream> streams_;
  std::map<std::pair<int32_t, std::string>, FileId> files_;
  std::map<std::tuple<Key, GroupIndex, bool>, uint32_t> seq_;
};

// {1, 2} as ranks.
std::vector<Rank> Ranks(const std::vector<int32_t>& values);
std::vector<Rank> RankRange(int32_t from, int32_t to);  // from..to-1

}  // namespace tacet
