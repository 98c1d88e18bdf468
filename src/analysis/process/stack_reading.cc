// SPDX-License-Identifier: Apache-2.0
#include "analysis/process/stack_reading.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/text_scan.h"
#include "model/operation.h"

namespace tacet {
namespace {

using Place = StackReading::Place;

class StackReader {
 public:
  explicit StackReader(const Incident& incident) : incident_(incident) {}

  StackReading ReadThread(const ThreadStack& thread) const {
    StackReading reading;
    reading.rank = thread.rank;
    reading.thread = &thread;
    reading.holds_gil = Contains(thread.state, "gil");
    reading.waits_for_gil = thread.state == "Waiting for the GIL";
    const std::vector<Frame>& frames = Frames(thread);
    if (frames.empty()) return reading;
    reading.innermost = frames.front();
    reading.whole = BeginsAThread(frames.back());
    for (const Frame& frame : frames) {
      if (Kind(frame) != FrameKind::user) continue;
      reading.innermost_user = frame;
      break;
    }
    FindPlace(frames, reading);
    reading.errand = FindErrand(incident_, frames);
    // It launches work, and another thread of its own process stops it: that is no wait for other ranks.
    if (reading.errand.kind == StackErrand::Kind::driver_lock) reading.place = Place::unknown, reading.certain = false;
    reading.in_library = reading.place == Place::unknown && Kind(reading.innermost) == FrameKind::framework &&
                         Contains(File(reading.innermost), "/torch/");
    // Frames of a library without symbols ("??") say less than the first one with a name, and Python's own waits
    // (threading.py, selectors.py) less than the function that waits there.
    auto named = std::find_if(frames.begin(), frames.end(), [&](const Frame& one) {
      return Function(one) != "??" &&
             !(File(one).ends_with(".py") && (Kind(one) == FrameKind::lock || Kind(one) == FrameKind::interpreter));
    });
    if (named == frames.end())
      named = std::find_if(frames.begin(), frames.end(), [&](const Frame& one) { return Function(one) != "??"; });
    const Frame& shown = named == frames.end() ? reading.innermost : *named;
    reading.where = Show(Known(reading.innermost_user) ? reading.innermost_user : shown);
    if (Known(reading.decisive) && Kind(reading.decisive) != FrameKind::user) reading.call = Show(reading.decisive);
    return reading;
  }

  // backward() hands the work to the engine's threads and waits for them in C++.
  bool WaitsInBackward(const ThreadStack& thread) const {
    for (const Frame& frame : Frames(thread)) {
      if (Kind(frame) == FrameKind::user || IsPythonBoundary(frame)) return false;
      if (IsBackward(frame)) return true;
    }
    return false;
  }

  bool IsAutogradThread(const ThreadStack& thread) const {
    const auto& frames = Frames(thread);
    const auto in_engine = [&](const Frame& frame) { return Contains(Function(frame), "autograd::Engine"); };
    if (std::any_of(frames.begin(), frames.end(), in_engine)) return true;
    // The engine's threads run Python hooks, but were not started by threading.Thread.
    return thread.has_python && !frames.empty() && !Function(frames.back()).starts_with("_bootstrap");
  }

  // The main thread of a launcher that trains in a second thread: it waits for threads or messages and nothing else.
  bool OnlyWaits(const StackReading& reading) const {
    return reading.place == Place::host && Known(reading.decisive) && Kind(reading.decisive) == FrameKind::lock;
  }

  size_t UserFrames(const ThreadStack& thread) const {
    size_t count = 0;
    for (const Frame& frame : Frames(thread)) count += Kind(frame) == FrameKind::user;
    return count;
  }

  const Incident& incident() const { return incident_; }
  const std::vector<Frame>& Frames(const ThreadStack& thread) const { return incident_.stacks.Get(thread.stack); }
  std::string_view Function(const Frame& frame) const { return incident_.strings.Get(frame.function); }
  bool BeginsAThread(const Frame& frame) const {
    const std::string_view name = Function(frame);
    for (const std::string_view part : {"<module>", "_bootstrap", "main", "_start", "clone", "thread"})
      if (Contains(name, part)) return true;
    return name.empty() || name == "??";
  }
  std::string_view File(const Frame& frame) const { return incident_.strings.Get(frame.file); }
  FrameKind Kind(const Frame& frame) const {
    // Sixteen thousand ranks share a few dozen frames.
    const uint64_t key = uint64_t{static_cast<uint32_t>(frame.function)} << 32 | static_cast<uint32_t>(frame.file);
    const auto [found, added] = kinds_.try_emplace(key);
    if (added) found->second = ClassifyFrame(Function(frame), File(frame));
    return found->second;
  }

 private:
  static bool Known(const Frame& frame) { return frame.function != StringId{}; }

  std::string Show(const Frame& frame) const {
    std::string_view file = File(frame);
    if (const size_t slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
    std::string text(Function(frame));
    if (file.empty()) return text;
    text += " (" + std::string(file);
    if (frame.line > 0) text += ":" + std::to_string(frame.line);
    return text + ")";
  }

  bool IsBackward(const Frame& frame) const {
    const std::string_view function = Function(frame);
    return function == "_engine_run_backward" || function == "run_backward" || Contains(function, "autograd::Engine") ||
           Contains(function, "PythonEngine::execute") ||
           (function == "backward" && Contains(File(frame), "torch/autograd/"));
  }

  // Where Python begins below C frames: what gdb shows further out happened earlier.
  bool IsPythonBoundary(const Frame& frame) const {
    const std::string_view function = Function(frame);
    return function.starts_with("_PyEval_EvalFrame") || function.starts_with("PyEval_EvalFrame");
  }

  // The frames inside the innermost user frame decide. Communication wins over all else there: a collective that
  // synchronizes the device or takes a lock is still a collective.
  void FindPlace(const std::vector<Frame>& frames, StackReading& reading) const {
    const Frame *communication = nullptr, *device = nullptr, *waiting = nullptr;
    bool saw_user = false, saw_boundary = false;
    size_t inside = 0;
    for (const Frame& frame : frames) {
      const FrameKind kind = Kind(frame);
      if (kind == FrameKind::user) {
        saw_user = true;
        break;
      }
      if (IsPythonBoundary(frame)) {
        saw_boundary = true;
        break;
      }
      ++inside;
      if (kind == FrameKind::communication) communication = &frame;  // the outermost: the call the user made
      if (kind == FrameKind::device_wait && !device) device = &frame;
      if ((kind == FrameKind::lock || kind == FrameKind::io) && !waiting) waiting = &frame;
      if (Contains(Function(frame), "take_gil")) reading.waits_for_gil = true;
    }
    const auto settle = [&](Place place, const Frame& frame) {
      reading.place = place;
      reading.decisive = frame;
      reading.certain = true;
    };
    if (communication) return settle(Place::communication, *communication);
    if (device) return settle(Place::device_wait, *device);
    if (const Frame* host = FindHostWork(frames, inside)) return settle(Place::host, *host);
    if (WaitsInBackward(*reading.thread)) return;
    if (waiting && (saw_user || saw_boundary || reading.thread->has_python)) return settle(Place::host, *waiting);
    if (inside == 0 && saw_user) {
      reading.place = Place::host;
      reading.decisive = frames.front();
    }
  }

  // Library code that never waits for a GPU: loaders, compilers, imports, checkpoints, and libraries that know no GPU.
  const Frame* FindHostWork(const std::vector<Frame>& frames, size_t inside) const {
    const Frame* found = nullptr;
    for (size_t i = 0; i < inside; ++i) {
      const std::string_view file = File(frames[i]);
      for (const std::string_view part :
           {"torch/utils/data/", "torch/profiler/", "torch/_dynamo/convert_frame.py", "torch/_inductor/compile_fx.py",
            "torch/_inductor/async_compile.py", "torch/_inductor/codecache.py", "torch/serialization.py",
            "torch/distributed/checkpoint/", "torch/multiprocessing/", "torch/utils/cpp_extension.py"})
        if (Contains(file, part)) found = &frames[i];
    }
    if (found || inside == 0) return found;
    const Frame& innermost = frames.front();
    const std::string_view file = File(innermost);
    if (Kind(innermost) == FrameKind::interpreter && Contains(file, "importlib")) return &innermost;
    if (Kind(innermost) != FrameKind::framework || !file.ends_with(".py")) return nullptr;
    for (const std::string_view gpu :
         {"torch/", "torchvision/", "triton/", "flash_attn", "transformer_engine/", "apex/", "xformers/", "deepspeed/",
          "cupy/", "megatron/", "vllm/", "bitsandbytes/", "torchinductor", "accelerate/", "lightning/",
          "lightning_fabric/", "torchmetrics/", "jax/"})
      if (Contains(file, gpu)) return nullptr;
    return &innermost;
  }

  const Incident& incident_;
  mutable std::unordered_map<uint64_t, FrameKind> kinds_;
};

// The threads of one rank at one moment.
using Snapshot = std::vector<const ThreadStack*>;

const ThreadStack* FindMainThread(const StackReader& reader, const Snapshot& threads) {
  const ThreadStack *main = nullptr, *busiest = nullptr, *last = nullptr;
  size_t most = 0;
  for (const ThreadStack* thread : threads) {
    if (!IsServiceThread(reader.incident(), *thread)) last = thread;
    if (thread->is_main && (!main || thread->has_python)) main = thread;
    if (const size_t count = reader.UserFrames(*thread); count > most) most = count, busiest = thread;
  }
  if (main && (!reader.Frames(*main).empty() || !busiest)) return main;
  return busiest ? busiest : last;
}

// Prefers a thread that tells more than the main thread does.
StackReading ReadSnapshot(const StackReader& reader, const Snapshot& threads) {
  const ThreadStack* main = FindMainThread(reader, threads);
  if (main == nullptr) {  // none of them stands for the process
    StackReading none = reader.ReadThread(*threads.back());
    none.place = Place::unknown;
    none.where = none.call = "";
    none.errand = {StackErrand::Kind::service_threads, ServiceLibraries(reader.incident(), threads)};
    return none;
  }
  StackReading reading = reader.ReadThread(*main);
  // Of a dump that was cut before the main thread only some thread beside it is left, and these are always on the host.
  if (!main->is_main && reading.place == Place::host) reading.place = Place::unknown;
  const bool in_backward = reader.WaitsInBackward(*main), only_waits = reader.OnlyWaits(reading);
  if (!in_backward && !only_waits) return reading;
  const StackReading* better = nullptr;
  std::vector<StackReading> others;
  for (const ThreadStack* thread : threads) {
    if (thread == main || reader.Frames(*thread).empty()) continue;
    StackReading other = reader.ReadThread(*thread);
    const bool blocks = other.place == Place::communication || other.place == Place::device_wait;
    const bool runs = thread->state.starts_with("active") && thread->has_python;  // ... and the main thread only waits
    if (runs && other.place == Place::unknown && !other.where.empty()) other.call = other.where;
    if (in_backward && reader.IsAutogradThread(*thread) && (other.place != Place::unknown || runs))
      others.push_back(std::move(other));
    else if (only_waits && thread->has_python && blocks && reader.UserFrames(*thread) > 0)
      others.push_back(std::move(other));
  }
  for (const StackReading& other : others)
    if (!better || (other.place == Place::communication && better->place != Place::communication)) better = &other;
  if (!better) return reading;
  StackReading chosen = *better;
  if (chosen.innermost_user == Frame{}) {  // a hook of torch's own: the user called backward
    chosen.innermost_user = reading.innermost_user;
    chosen.where = reading.where;
  }
  return chosen;
}

}  // namespace

std::string_view Name(StackReading::Place place) {
  switch (place) {
    case Place::unknown: return "unknown";
    case Place::communication: return "in communication";
    case Place::device_wait: return "waiting for the GPU";
    case Place::host: return "on the host";
  }
  return "unknown";
}

// A process that serves another one: of a pool, or of a data loader. A signal to all makes it write its stacks, too,
// into the output that it has from the rank.
static bool IsOfAServant(const StackReader& reader, const ThreadStack& thread) {
  const auto& frames = reader.Frames(thread);
  return std::any_of(frames.begin(), frames.end(), [&](const Frame& frame) {
    const std::string_view function = reader.Function(frame), file = reader.File(frame);
    return (function == "worker" && file.ends_with("multiprocessing/pool.py")) ||
           (function == "_worker_loop" && file.ends_with("data/_utils/worker.py")) ||
           (function == "_process_worker" && file.ends_with("concurrent/futures/process.py"));
  });
}

bool WaitsForALock(const Incident& incident, const StackReading& reading) {
  if (reading.place != Place::host) return false;
  for (const Frame& frame : {reading.innermost, reading.innermost_user}) {
    const std::string name = LowerCase(incident.strings.Get(frame.function));
    const std::string_view file = incident.strings.Get(frame.file);
    const bool of_locks = file.find("filelock") != file.npos || file.find("portalocker") != file.npos ||
                          file.find("file_baton") != file.npos || file.find("fasteners") != file.npos;
    const size_t lock = name.find("lock");
    const bool named = lock != name.npos && (lock == 0 || (name[lock - 1] != 'b' && name[lock - 1] != 'c')) &&
                       name.find("unlock") == name.npos;
    if (of_locks || named) return true;
  }
  return false;
}

std::vector<StackReading> ReadStacks(const Incident& incident) {
  const StackReader reader(incident);
  std::set<std::pair<Rank, FileId>> own;
  for (const ThreadStack& thread : incident.threads)
    if (!IsOfAServant(reader, thread) && reader.UserFrames(thread) > 0) own.emplace(thread.rank, thread.source.file);
  // Per rank and file only the latest dump; the files then compete.
  std::map<Rank, std::map<FileId, std::pair<uint32_t, Snapshot>>> latest;
  for (const ThreadStack& thread : incident.threads) {
    if (!thread.rank.known()) continue;
    if (IsOfAServant(reader, thread) && own.contains({thread.rank, thread.source.file})) continue;
    auto& [dump, threads] = latest[thread.rank][thread.source.file];
    if (thread.dump > dump) threads.clear();
    dump = std::max(dump, thread.dump);
    if (thread.dump == dump) threads.push_back(&thread);
  }
  std::vector<StackReading> readings;
  for (const auto& [rank, files] : latest) {
    StackReading best;
    std::tuple<bool, bool, int64_t, uint32_t> best_worth;
    for (const auto& [file, snapshot] : files) {
      StackReading reading = ReadSnapshot(reader, snapshot.second);
      const auto index = static_cast<uint32_t>(file);
      const int64_t modified = index < incident.files.size() ? incident.files[index].modified_wall_ns : kNoTime;
      const std::tuple worth{reading.thread->has_python, reading.place != Place::unknown, modified, index};
      // The launcher's copy of a rank's stderr shows what was printed behind the stack; the file alone does not.
      const bool copied = best.thread && !best.thread->thread_id.empty() &&
                          best.thread->thread_id == reading.thread->thread_id && best.where == reading.where;
      const bool shows_more = copied && best.thread->last_words && !reading.thread->last_words;
      const bool shows_less = copied && !best.thread->last_words && reading.thread->last_words;
      if (best.thread && !shows_more && (shows_less || worth < best_worth)) continue;
      best = std::move(reading);
      best_worth = worth;
    }
    readings.push_back(std::move(best));
  }
  return readings;
}

std::vector<StackReading> ReadNamelessStacks(const Incident& incident) {
  const StackReader reader(incident);
  std::map<uint32_t, std::map<uint32_t, Snapshot, std::greater<>>> dumps;  // by process, the latest first
  for (const ThreadStack& thread : incident.threads)
    if (!thread.rank.known()) dumps[thread.speaker][thread.dump].push_back(&thread);
  std::vector<StackReading> readings;
  for (const auto& [process, by_number] : dumps) {
    Snapshot threads;
    std::set<std::string_view> ids;
    // One that shows a thread again is an older one of the same process; one that does not may be of another process
    // which writes into the same file.
    for (const auto& [number, snapshot] : by_number) {
      const bool again = std::any_of(snapshot.begin(), snapshot.end(), [&](const ThreadStack* thread) {
        return thread->thread_id.empty() || ids.contains(thread->thread_id);
      });
      if (!threads.empty() && again) break;
      for (const ThreadStack* thread : snapshot) ids.insert(thread->thread_id);
      threads.insert(threads.begin(), snapshot.begin(), snapshot.end());
    }
    readings.push_back(ReadSnapshot(reader, threads));
  }
  return readings;
}

std::vector<StackReading> ReadNamelessDumps(const Incident& incident) {
  const StackReader reader(incident);
  std::map<std::tuple<FileId, uint32_t, uint32_t>, Snapshot> dumps;  // by file, process and number
  for (const ThreadStack& thread : incident.threads)
    if (!thread.rank.known()) dumps[{thread.source.file, thread.speaker, thread.dump}].push_back(&thread);
  std::vector<StackReading> readings;
  readings.reserve(dumps.size());
  for (const auto& [key, threads] : dumps) readings.push_back(ReadSnapshot(reader, threads));
  return readings;
}

std::vector<StackGroup> GroupStacks(const Incident& incident, const std::vector<StackReading>& readings) {
  const StackReader reader(incident);
  using Key = std::pair<Place, std::vector<std::pair<StringId, StringId>>>;
  std::map<Key, StackGroup> by_stack;
  for (size_t i = 0; i < readings.size(); ++i) {
    Key key{readings[i].place, {}};
    for (const Frame& frame : reader.Frames(*readings[i].thread))
      if (reader.Kind(frame) == FrameKind::user) key.second.emplace_back(frame.function, frame.file);
    StackGroup& group = by_stack[std::move(key)];
    if (group.ranks.empty()) group.example = i;
    group.ranks.push_back(readings[i].rank);
  }
  std::vector<StackGroup> groups;
  for (auto& [key, group] : by_stack) {
    std::sort(group.ranks.begin(), group.ranks.end());
    group.majority = group.ranks.size() * 2 > readings.size();
    groups.push_back(std::move(group));
  }
  std::sort(groups.begin(), groups.end(), [](const StackGroup& a, const StackGroup& b) {
    return a.ranks.size() != b.ranks.size() ? a.ranks.size() > b.ranks.size() : a.ranks < b.ranks;
  });
  return groups;
}

std::vector<Rank> RanksUnlikeTheMajority(const std::vector<StackGroup>& groups) {
  std::vector<Rank> unlike;
  if (groups.empty() || !groups.front().majority) return unlike;
  for (size_t i = 1; i < groups.size(); ++i)
    unlike.insert(unlike.end(), groups[i].ranks.begin(), groups[i].ranks.end());
  std::sort(unlike.begin(), unlike.end());
  return unlike;
}

bool IsCollectiveCall(std::string_view function) {
  const OpKind kind = ParseOpKind(function);
  return kind != OpKind::unknown && !IsPointToPoint(kind);
}

}  // namespace tacet
