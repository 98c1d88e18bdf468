// SPDX-License-Identifier: Apache-2.0
#include "evidence/torch_log/figures/torch_log_outline.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/line_reader.h"
#include "base/pair_set.h"
#include "base/text_scan.h"
#include "evidence/torch_log/figures/torch_log_counting.h"
#include "evidence/torch_log/figures/torch_log_figures.h"
#include "evidence/torch_log/figures/torch_log_milestones.h"
#include "evidence/torch_log/figures/torch_log_own_mark.h"
#include "evidence/torch_log/figures/torch_log_places.h"
#include "evidence/torch_log/figures/torch_log_progress.h"
#include "evidence/torch_log/figures/torch_log_step_figures.h"
#include "evidence/torch_log/torch_log_prefix.h"
#include "evidence/torch_log/waits/torch_log_wait_words.h"

namespace tacet {
namespace {

// Of a longer text the beginning and the end are looked at: how the job was set up, and how it went at last. A look
// takes about a tenth of a second for each million bytes.
constexpr size_t kMostOutlined = size_t{8} << 20, kOutlinedHead = size_t{2} << 20;
constexpr size_t kHeadOfLine = 110;
constexpr size_t kMostRanks = 65536;
constexpr size_t kMostQuotedRanks = 4096;

bool IsWordPart(char c) { return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// "10:01:52" anywhere in the head of a line.
bool HasTimeOfDay(std::string_view head) {
  for (size_t at = 0; at + 8 <= head.size(); ++at) {
    const auto pair = [&](size_t i) { return IsDigit(head[at + i]) && IsDigit(head[at + i + 1]); };
    if (pair(0) && head[at + 2] == ':' && pair(3) && head[at + 5] == ':' && pair(6)) return true;
  }
  return false;
}

struct LevelWord {
  std::string_view word;
  char level;
};
constexpr std::array<LevelWord, 12> kLevelWords{{{"INFO", 'I'},
                                                 {"WARNING", 'W'},
                                                 {"WARN", 'W'},
                                                 {"ERROR", 'E'},
                                                 {"DEBUG", 'D'},
                                                 {"CRITICAL", 'E'},
                                                 {"FATAL", 'E'},
                                                 {"CCL_INFO", 'I'},
                                                 {"CCL_WARN", 'W'},
                                                 {"CCL_ERROR", 'E'},
                                                 {"info", 'I'},
                                                 {"warning", 'W'}}};

// The level of a line of any logger that puts a level and a time of day before its text, in whatever order:
//   INFO 11-15 08:10:46 [parallel_state.py:1325] ..., 2025-02-27 09:40:54,614 INFO worker.py:1636 -- ...
//   [2024-09-13 09:20:41,702] [INFO] [checkpointing.py:546:forward] ..., 2025:05:26-10:00:19:(90949) |CCL_WARN| ...
//   [NeMo W 2025-03-05 10:01:53 nemo_logger:173] ..., WARNING:root:...
char LevelOf(std::string_view line) {
  const std::string_view head = line.substr(0, kHeadOfLine);
  if (head.starts_with("[NeMo ") && head.size() > 8 && head[7] == ' ' && HasTimeOfDay(head)) return head[6];
  for (const LevelWord& one : kLevelWords) {
    const size_t at = FindText(head, one.word);
    if (at == std::string_view::npos || (at > 0 && IsWordPart(head[at - 1]))) continue;
    const std::string_view rest = head.substr(at + one.word.size());
    if (!rest.empty() && IsWordPart(rest[0])) continue;
    // WARNING:torch.distributed.run:text
    const size_t colon = rest.find(':', 1);
    const bool bare = at == 0 && rest.starts_with(':') && colon != std::string_view::npos && colon > 1 &&
                      rest.substr(1, colon - 1).find(' ') == std::string_view::npos;
    if (bare || HasTimeOfDay(head)) return one.level;
  }
  return 0;
}

struct KnownWords {
  std::string_view words;
  HarmlessWarning what;
};
constexpr std::array<KnownWords, 30> kHarmless{{
    {"destroy_process_group() was not called before program exit", HarmlessWarning::process_group_left},
    {"process group has NOT been destroyed before ", HarmlessWarning::process_group_left},
    {"Setting OMP_NUM_THREADS environment variable for each process", HarmlessWarning::omp_threads},
    {"did not find MPI-launcher specific variables, switch to ATL/OFI", HarmlessWarning::ccl_transport},
    {"is connected to 0 peer ranks. Expected", HarmlessWarning::gloo_group_of_one},
    {"to perform barrier as devices used by this process are currently unknown", HarmlessWarning::guessed_device},
    {"barrier(): using the device under current context", HarmlessWarning::guessed_device},
    {"did not find any unused parameters in the forward pass", HarmlessWarning::no_unused_parameters},
    {"Environment variable NCCL_", HarmlessWarning::deprecated_variable},
    {"(system error: 10049", HarmlessWarning::windows_host_name},
    {"(errno: 97 - ", HarmlessWarning::no_ipv6},
    {"async_io requires the dev libaio .so object", HarmlessWarning::optional_operators},
    {"Please specify the CUTLASS repo directory", HarmlessWarning::optional_operators},
    {"sparse_attn requires a torch version", HarmlessWarning::optional_operators},
    {"using untested triton version", HarmlessWarning::optional_operators},
    {"NUMA node read from SysFS had negative value (-1)", HarmlessWarning::numa_node},
    {"factory for plugin cu", HarmlessWarning::registered_twice},
    {"leaked semaphore objects to clean up at shutdown", HarmlessWarning::left_semaphores},
    {"just got forked, after parallelism has already been used", HarmlessWarning::forked_tokenizers},
    {"Detected call of `lr_scheduler.step()` before `optimizer.step()`", HarmlessWarning::scheduler_order},
    {"cannot be retrieved (gai error: ", HarmlessWarning::name_not_known_yet},
    {"A process has executed an operation involving a call to the", HarmlessWarning::mpi_note},
    {"infiniband ports on a device", HarmlessWarning::mpi_note},
    {"to be mounted on a network filesystem", HarmlessWarning::mpi_note},
    {"the head of the session directory tree", HarmlessWarning::mpi_note},
    {"CUDA-aware support is disabled", HarmlessWarning::mpi_note},
    {"process was left unbound", HarmlessWarning::mpi_note},
    {"memory was left unbound", HarmlessWarning::mpi_note},
    {"inbound connection has been dropped", HarmlessWarning::mpi_note},
    {"This attempted connection will be closed and ignored", HarmlessWarning::mpi_note},
}};

// "|  CUDA OOMs: 0  |  cudaMalloc retries: 12  |" of memory_summary(), which counts from the start of the process, and
// DeepSpeed's "[WARNING] ... 2 pytorch allocator cache flushes since last step".
bool NoteRetries(std::string_view text, const SourceRef& source, LogOutline& out) {
  const auto total = IntAfter(text, "cudaMalloc retries: ");
  const size_t flushes = text.find(" pytorch allocator cache flushes since last step");
  int64_t since = 0;
  if (flushes != std::string_view::npos) {
    std::string_view number = text.substr(0, flushes);
    number.remove_prefix(number.rfind(' ') + 1);  // 0 where there is none
    TakeNumber(number, &since);
  }
  if (total.value_or(0) <= 0 && since <= 0) return false;
  const auto known = std::find_if(out.harmless.begin(), out.harmless.end(), [](const SeenWarning& seen) {
    return seen.what == HarmlessWarning::allocator_retried;
  });
  if (known == out.harmless.end())
    out.harmless.push_back({HarmlessWarning::allocator_retried, std::max(since, total.value_or(0)), source, ""});
  else
    known->times = total ? std::max(known->times, *total) : known->times + since;
  return true;
}

// /opt/venv/lib/python3.11/site-packages/torch/optim/lr_scheduler.py:123: UserWarning: Detected call of ...
// UserWarning: Grad strides do not match ...                                        pasted without its place
// The words of a warning of Python's own, by its form; empty where the line is none.
std::string_view WarningOfPython(std::string_view text) {
  const std::string_view bare = text.substr(0, text.find(": "));
  if (bare.size() > 7 && bare.size() < 60 && bare.ends_with("Warning") && bare[0] >= 'A' && bare[0] <= 'Z' &&
      bare.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") == std::string_view::npos &&
      bare.size() < text.size())
    return Trim(text.substr(bare.size() + 2));
  const size_t code = text.substr(0, 400).find(".py:");
  if (code == std::string_view::npos || text.substr(0, code).find(' ') != std::string_view::npos) return {};
  std::string_view rest = text.substr(code + 4);
  int64_t number = 0;
  if (!TakeNumber(rest, &number) || !TakeLiteral(rest, ": ")) return {};
  const size_t colon = rest.find(": ");
  if (colon == std::string_view::npos || colon > 60) return {};
  const std::string_view type = rest.substr(0, colon);
  if (!type.ends_with("Warning") || type.find(' ') != std::string_view::npos) return {};
  return Trim(rest.substr(colon + 2));
}

// Whatever a program warns of in this way, it goes on.
bool NoteWarningOfPython(std::string_view text, const SourceRef& source, LogOutline& out) {
  const std::string_view words = WarningOfPython(text);
  if (words.size() < 8) return false;
  const auto known = std::find_if(out.harmless.begin(), out.harmless.end(),
                                  [](const SeenWarning& seen) { return seen.what == HarmlessWarning::of_python; });
  if (known != out.harmless.end())
    ++known->times;
  else
    out.harmless.push_back({HarmlessWarning::of_python, 1, source, std::string(words.substr(0, 160))});
  return true;
}

// Says whether the line is one of them.
bool NoteHarmless(const PairSet& pairs, const SourceRef& source, LogOutline& out) {
  const std::string_view text = pairs.text();
  if (NoteRetries(text, source, out)) return true;
  for (const KnownWords& one : kHarmless) {
    if (!pairs.Holds(one.words)) continue;
    if (one.what == HarmlessWarning::deprecated_variable && !Contains(text, "is deprecated")) continue;
    if (one.what == HarmlessWarning::gloo_group_of_one && !Contains(text, " : 0")) continue;
    out.exits += one.what == HarmlessWarning::process_group_left;
    const auto known = std::find_if(out.harmless.begin(), out.harmless.end(),
                                    [&](const SeenWarning& seen) { return seen.what == one.what; });
    if (known != out.harmless.end())
      ++known->times;
    else
      out.harmless.push_back({one.what, 1, source, ""});
    return true;
  }
  return NoteWarningOfPython(text, source, out);
}

struct NamedRank {
  int32_t rank = -1;
  int64_t world = -1;
  std::string_view words{};  // "shard is done" of "rank 2: shard is done": it tells what it does
};

// The rank that prints a line, where the line itself says so: "rank 2 / size 4", "rank 1 in world size 2",
// "GLOBAL_RANK: 3, MEMBER: 4/8", "Start training on rank 6.", "Rank 0 has data parallel group". "from rank 3" and
// "local rank 0" are others.
NamedRank RankOfLine(std::string_view text) {
  NamedRank named;
  if (Contains(text, "[Gloo]")) return named;
  for (const std::string_view key : {"GLOBAL_RANK: ", "rank ", "Rank ", "RANK "}) {
    for (size_t at = text.find(key); at != std::string_view::npos; at = text.find(key, at + 1)) {
      if (at > 0 && IsWordPart(text[at - 1])) continue;
      std::string_view rest = text.substr(at + key.size());
      int32_t rank = -1;
      if (!TakeNumber(rest, &rank) || rank < 0 || (!rest.empty() && IsWordPart(rest[0]))) continue;
      const std::string_view before = text.substr(0, at);
      int64_t world = -1;
      std::string_view behind = rest;
      if (TakeLiteral(behind, " / size ") || TakeLiteral(behind, " in world size ") || TakeLiteral(behind, " of ") ||
          TakeLiteral(behind, "/"))
        TakeNumber(behind, &world);
      else if (TakeLiteral(behind, ", MEMBER: "))
        world = IntAfter(behind, "/").value_or(-1);
      const bool is_sized = world > rank && !ContainsAny(before, {"ocal", "group", "peer"});
      // "INFO trainer: rank 2: shard is done"
      const bool leads = Trim(before).empty() || before.ends_with("] ") || before.ends_with(": ");
      const bool of_itself = leads && behind.starts_with(": ");
      const bool speaks = before.ends_with(" on ") || Trim(before).empty() || before.ends_with("] ") || of_itself;
      if (!is_sized && !speaks) continue;
      return {rank, is_sized ? world : -1, of_itself ? behind.substr(2) : std::string_view()};
    }
  }
  return named;
}

// "start rank=0 world=8 host=gpu-a", "rank 3, world_size: 16". Not the size of a node or of a group.
int64_t WorldOfLine(std::string_view text) {
  if (!ContainsAny(text, {"rank", "Rank", "RANK"})) return -1;
  for (const std::string_view key :
       {"world=", "world_size=", "world_size: ", "world size: ", "world size ", "WORLD_SIZE="}) {
    const size_t at = text.find(key);
    if (at == std::string_view::npos || (at > 0 && (IsWordPart(text[at - 1]) || text[at - 1] == '-'))) continue;
    if (ContainsAny(text.substr(0, at), {"ocal", "roup", "parallel"})) continue;
    std::string_view number = text.substr(at + key.size());
    int64_t world = -1;
    if (TakeNumber(number, &world) && world > 0 && (number.empty() || !IsWordPart(number[0]))) return world;
  }
  // Paddle's launcher: "ABORT!!! Out of all 8 trainers, the trainer process with rank=[1, 6] was aborted."
  if (const size_t at = text.find("Out of all "); at != std::string_view::npos) {
    std::string_view number = text.substr(at + 11);
    int64_t world = -1;
    if (TakeNumber(number, &world) && world > 0 && number.starts_with(" trainers, ")) return world;
  }
  return -1;
}

// Whoever tells of it was there: "GRPO_TRAIN_OK steps=3   # exit 0, no hang".
bool TellsGoodEnd(const PairSet& pairs) {
  const std::string_view text = pairs.text();
  if (!pairs.HoldsAny({"exit 0", "exit code 0", "exit code: 0", "exited with code 0", "exited with 0"})) return false;
  return ContainsAny(text, {"OK", "steps", "inished", "ompleted", "done"}) &&
         !ContainsAny(text, {"not ", "n't", "should", "if ", "even though", "although", "FAIL", "rror", "?"});
}

// "2026-11-16 18:52:31,011 train INFO: training finished": the words, where they end the line.
std::string_view WordsOfDone(const PairSet& pairs) {
  const std::string_view text = pairs.text();
  constexpr size_t kMostBehind = 24;  // " in 312 s", " after 24 steps"
  for (const std::string_view words :
       {"training finished", "Training finished", "training complete", "Training complete", "Training is complete",
        "raining done", "inished training", "ompleted training", "Done training", "raining ended"}) {
    if (words.size() > text.size() || !pairs.MayHold(words)) continue;
    const size_t earliest = text.size() - std::min(text.size(), words.size() + kMostBehind);
    size_t at = FindText(text.substr(earliest), words);
    if (at == std::string_view::npos) continue;
    at += earliest;
    while (at > 0 && IsWordPart(text[at - 1])) --at;
    if (ContainsAny(text, {"not ", "n't", "should", "until", "when ", "if "})) continue;
    return text.substr(at);
  }
  return {};
}

bool HasJobsWord(const PairSet& pairs) {
  return pairs.HoldsAny({"rank",       "Rank",     "RANK",   "GPU",      "cuda",       "CUDA",       "nccl",
                         "NCCL",       "torch",    "orovod", "eepspeed", "eepSpeed",   "egatron",    "NeMo",
                         "vllm",       "vLLM",     "Ray ",   "ray.",     "world size", "world_size", "istributed",
                         "checkpoint", "epoch",    "Epoch",  "CCL_",     "dataloader", "DataLoader", "tensor_parallel",
                         "HCCL",       "ccelerat", "rainer", "raining",  "PyTorch",    "EngineCore", "/v1/"});
}

// Quotes that stand before a line of a log.
std::string_view WithoutQuotes(std::string_view line) {
  line = Trim(line);
  while (TakeLiteral(line, ">")) line = Trim(line);
  return line;
}

// "GLOBAL_RANK: 3, MEMBER: 4/8", "starting rank 3 of 4", "joining as rank 1 of 8": what a process says before it meets
// the others.
bool TellsOfJoining(std::string_view text) {
  if (Contains(text, ", MEMBER: ")) return true;
  const std::string low = LowerCase(text.substr(0, 200));
  return ContainsAny(
      low, {"starting rank ", "starting as rank ", "joining as rank ", "launching rank ", "initializing rank ",
            "starting worker rank ", "starting process rank ", "init_process_group rank ", "setting up rank "});
}

struct Looks {
  LogOutline outline;
  MilestoneReader milestones;
  FigureReader figures;
  CountingLines counting;
  PlaceReader places;
  OwnMark mark;
  uint64_t counted_bytes = 0;  // of tables and counting lines, which nothing else reads
  size_t lines = 0, named = 0;
  size_t marked = 0;  // "20:24:30.297 rank 2: batch 10 is here"
  bool of_job = false;
  bool attended = false;          // a rank waits for somebody: "rank 1: waiting for the debugger to attach"
  bool asked = false;             // ... or a process without a name: "overwrite? [y/N]"
  bool stack_of_job = false;      // faulthandler shows a thread inside torch.distributed
  bool labels_are_ranks = false;  // the labels of srun, mpirun or torchrun count ranks
  bool tasks_are_ranks = false;   // ... those of srun, which a line of its own text may look like
};

// Launchers label lines by their tasks. "3: [rank13]: ..." shows that a task is a node.
bool AreLabelsRanks(std::string_view bytes, const LabelStyle& style) {
  LineReader reader(bytes);
  std::string_view line;
  while (reader.Next(&line)) {
    if (!Contains(line.substr(0, 160), "[rank")) continue;
    const LinePrefix prefix = SplitPrefix(line, style);
    const auto kind = prefix.launcher.kind;
    const bool labeled = kind == LauncherPrefix::Kind::task || kind == LauncherPrefix::Kind::local;
    if (prefix.rank >= 0 && labeled && prefix.launcher.number != prefix.rank) return false;
  }
  return true;
}

void KeepLastLine(int32_t rank, std::string_view text, const SourceRef& source, LogOutline& out) {
  auto& lines = out.last_of_ranks;
  const auto at = std::lower_bound(lines.begin(), lines.end(), rank,
                                   [](const LineOfRank& one, int32_t wanted) { return one.rank < wanted; });
  const bool known = at != lines.end() && at->rank == rank;
  if (!known && lines.size() >= kMostQuotedRanks) return;
  LineOfRank line{rank, std::string(text.substr(0, 200)), source};
  line.waits = ContainsAny(text, {"waiting for ", "Waiting for ", "waits for ", "waiting until ", "Waiting until "});
  if (const size_t lock = text.find(".lock"); line.waits && lock != std::string_view::npos) {
    const size_t blank = text.substr(0, lock).find_last_of(" '\"=");
    line.lock_file = text.substr(blank + 1, lock + 5 - blank - 1);
  }
  if (known)
    *at = std::move(line);
  else
    lines.insert(at, std::move(line));
}

void LookAtLine(std::string_view raw, const SourceRef& source, uint64_t size, const LabelStyle& style, Looks& look) {
  LogOutline& out = look.outline;
  const std::string plain = HasTerminalCodes(raw) ? DropTerminalCodes(raw) : std::string();
  const std::string_view line = WithoutQuotes((plain.empty() ? raw : std::string_view(plain)).substr(0, 2000));
  if (const size_t end = EndOfQuestion(line); end < line.size() && !Trim(line.substr(end)).empty()) {
    LookAtLine(line.substr(0, end), source, size, style, look);
    return LookAtLine(line.substr(end + (line[end] == ' ')), source, size, style, look);
  }
  std::string_view text = line;
  TakeLauncherPrefix(text);
  const std::string_view labelled = text;
  text = Trim(text);
  if (text.empty() || text.starts_with("```") || IsNcclLine(line)) return;
  ++look.lines;
  const LinePrefix prefix = SplitPrefix(line, style);
  const char level = prefix.severity != 0 ? prefix.severity : LevelOf(text);
  NamedRank named = RankOfLine(prefix.severity != 0 ? prefix.text : text);
  if (prefix.rank >= 0) named = {prefix.rank, -1, {}};
  std::string_view said = text;
  if (const RankMark mark = FindRankMark(line); named.rank < 0 && mark.rank >= 0) {
    named.rank = mark.rank;
    said = mark.rest;
  }
  std::string_view behind_mark = Trim(prefix.text);
  const int32_t marked = named.rank < 0 ? look.mark.Take(behind_mark) : -1;
  if (marked >= 0) {
    named.rank = marked;
    said = behind_mark;
  }
  const LauncherPrefix& launcher = prefix.launcher;
  if (named.rank < 0 && look.tasks_are_ranks && launcher.kind == LauncherPrefix::Kind::task &&
      launcher.number <= INT32_MAX)
    named.rank = static_cast<int32_t>(launcher.number);
  look.milestones.Read(said, named.rank, source, out);
  if (prefix.severity == 0) {
    const bool task = (!style.tasks || look.tasks_are_ranks) && launcher.kind == LauncherPrefix::Kind::task;
    const bool local = launcher.kind == LauncherPrefix::Kind::local;
    int32_t speaker = prefix.rank >= 0 ? prefix.rank : FindRankMark(line).rank;
    const bool by_label = speaker < 0 && (task || local) && launcher.number <= INT32_MAX;
    if (by_label) speaker = static_cast<int32_t>(launcher.number);
    if (marked >= 0)
      look.places.Read(behind_mark, marked, false, source);
    else
      look.places.Read(prefix.rank >= 0 ? prefix.text : labelled, speaker, by_label && local, source);
  }
  const PairSet pairs(text);
  const bool harmless = NoteHarmless(pairs, source, out);
  if (!harmless) out.says_done = std::string(WordsOfDone(pairs));
  int32_t printed_by = named.rank;
  if (printed_by < 0 && look.labels_are_ranks && launcher.number >= 0 && launcher.number < int64_t{kMostRanks} &&
      (launcher.kind == LauncherPrefix::Kind::task || launcher.kind == LauncherPrefix::Kind::local)) {
    printed_by = static_cast<int32_t>(launcher.number);
    out.local_labels = out.local_labels || launcher.kind == LauncherPrefix::Kind::local;
  }
  const std::string_view body = said.size() < text.size() ? said : prefix.rank >= 0 ? prefix.text : text;
  const FigureReader::Line told =
      harmless ? FigureReader::Line::none : look.figures.Read(body, printed_by, source, out);
  const bool of_table = told == FigureReader::Line::table;
  const bool figures = told != FigureReader::Line::none || ReadFigures(text, source, out);
  const bool counts = !figures && look.counting.Read(text);
  if (of_table || counts) look.counted_bytes += size;
  look.of_job = look.of_job || HasJobsWord(pairs);
  look.stack_of_job = look.stack_of_job || (text.starts_with("File \"") && Contains(text, "/torch/distributed/"));
  if (out.ended_well.empty() && TellsGoodEnd(pairs)) {
    out.ended_well = std::string(text.substr(0, 160));
    out.ended_source = source;
    out.bytes += size;
  }
  const bool starred = prefix.text.find_first_not_of("* ") == std::string_view::npos;
  out.warnings += level == 'W' && !starred && !harmless;
  if ((level == 'E' || level == 'F') && !harmless) {
    out.last_error = source;
    if (++out.errors == 1) {
      out.first_error = std::string(text.substr(0, 200));
      out.error_source = source;
    }
  }
  if (level != 0) ++out.shaped;
  if (WaitToldIn(text) == LineWait::person) (named.rank >= 0 ? look.attended : look.asked) = true;
  look.marked += named.rank < 0 && level == 0 && HasJobsWord(pairs) && RankOfOwnMark(text) >= 0;
  if (named.rank >= 0 && out.ranks.size() < kMostRanks) {
    ++look.named;
    out.ranks.push_back(named.rank);
    out.world = std::max(out.world, named.world);
  }
  if (const int64_t world = WorldOfLine(text); world > 0)
    out.stated_world = out.stated_world == -1 || out.stated_world == world ? world : -2;
  // initializing ddp: GLOBAL_RANK: 3, MEMBER: 4/8: Lightning's word, once for each process
  if (named.rank >= 0 && named.world > 0 && out.joining.size() < kMostQuotedRanks && TellsOfJoining(text))
    out.joining.push_back({named.rank, std::string(text.substr(0, 200)), source});
  if (!named.words.empty() && level != 'E' && level != 'F') KeepLastLine(named.rank, named.words, source, out);
  if (level == 0 && named.rank < 0 && !figures && harmless) out.bytes += size;
  if (level == 0 && named.rank < 0 && !figures && !counts && !FindProgress(text)) return;
  if (level != 0 || named.rank >= 0 || figures) out.bytes += size;
  if (starred || harmless || Contains(text, "----------")) return;  // a rule between two parts, a remark of a library
  out.last = std::string(text.substr(0, 200));
  out.last_source = source;
}

// A piece of a text, from the beginning of a line on.
struct TextPiece {
  std::string_view text;
  uint32_t lines_before = 0;
  uint64_t bytes_before = 0;
};

std::vector<TextPiece> PiecesOf(std::string_view bytes) {
  if (bytes.size() <= kMostOutlined) return {{bytes}};
  const size_t head = std::min(bytes.find('\n', kOutlinedHead), bytes.size() - 1) + 1;
  const size_t tail =
      std::min(bytes.find('\n', std::max(head, bytes.size() - (kMostOutlined - kOutlinedHead))), bytes.size() - 1) + 1;
  const auto lines =
      static_cast<uint32_t>(std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(tail), '\n'));
  return {{bytes.substr(0, head)}, {bytes.substr(tail), lines, tail}};
}

Looks LookAt(std::string_view bytes) {
  Looks look;
  const std::vector<TextPiece> pieces = PiecesOf(bytes);
  const std::string_view begin = pieces.front().text;
  const LabelStyle style = FindLabelStyle(begin);
  look.labels_are_ranks = AreLabelsRanks(begin, style);
  look.tasks_are_ranks = style.tasks && look.labels_are_ranks;
  look.mark = OwnMark::Find(begin, style);
  for (const TextPiece& piece : pieces) {
    LineReader reader(piece.text);
    std::string_view line;
    while (reader.Next(&line)) {
      const SourceRef source{FileId{}, piece.lines_before + reader.number(), piece.bytes_before + reader.offset()};
      LookAtLine(line, source, reader.line_bytes(), style, look);
    }
  }
  auto& ranks = look.outline.ranks;
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  FinishFigures(look.outline);
  look.places.Finish(look.outline);
  look.outline.cut_end = !bytes.empty() && bytes.back() != '\n';
  return look;
}

bool IsOfAJob(const Looks& look) {
  const LogOutline& outline = look.outline;
  const auto shaped = static_cast<size_t>(outline.shaped);
  constexpr size_t kFewLinesOfTraining = 5;
  if (look.figures.lines_of_training() >= kFewLinesOfTraining || look.attended) return true;
  constexpr size_t kFewRows = 3;  // below their heading
  if (look.figures.rows_of_training() >= kFewRows) return true;
  if (look.asked && !outline.ranks.empty()) return true;
  // Any program of Python may warn: only beside words of a job is it one's.
  const bool known = std::any_of(outline.harmless.begin(), outline.harmless.end(),
                                 [](const SeenWarning& seen) { return seen.what != HarmlessWarning::of_python; });
  if (known || (!outline.harmless.empty() && look.of_job) || TellsRates(outline) || !outline.ended_well.empty() ||
      ContainsAny(outline.served.words, {"/v1/", "/generate"}))
    return true;
  // What the program printed before its stack was written.
  constexpr size_t kFewestOwn = 2;
  if (look.stack_of_job && outline.own_lines.size() >= kFewestOwn) return true;
  // A quarter of the lines: the others are what the program prints by itself.
  constexpr size_t kFewestMarked = 4;
  if (!look.of_job || (shaped + look.named + look.marked) * 4 < look.lines) return false;
  return shaped >= 2 || look.marked >= kFewestMarked || look.named >= 2 || (shaped >= 1 && look.named >= 1);
}

}  // namespace

LogOutline FindOutline(std::string_view bytes) { return LookAt(bytes).outline; }

bool IsOutlineOfAJob(std::string_view bytes) { return IsOfAJob(LookAt(bytes)); }

void AddOutline(std::string_view bytes, Fragment& out) {
  Looks look = LookAt(bytes);
  const LogOutline& outline = look.outline;
  const bool rewarded = std::any_of(outline.series.begin(), outline.series.end(),
                                    [](const FigureSeries& one) { return one.kind >= FigureSeries::Kind::reward; });
  const bool tells = rewarded || !outline.harmless.empty() || !outline.at_work.empty() || outline.saved ||
                     outline.trained || outline.served || outline.stopped || look.asked;
  // Whether its process went on behind it is told by the lines that follow.
  const bool caught = std::any_of(out.events.begin(), out.events.end(), [](const Event& event) {
    return event.kind == EventKind::exception && event.As<Raised>().caught_there;
  });
  if (!tells && !caught && outline.ranks.empty() && outline.stated_world == -1 && !IsOfAJob(look)) {
    // Too few lines for anything but what a rank says of its settings.
    const auto marked = [](const OwnLine& line) { return line.rank >= 0; };
    if (std::none_of(outline.first_lines.begin(), outline.first_lines.end(), marked)) return;
    LogOutline first;
    first.first_lines = std::move(look.outline.first_lines);
    out.outlines.push_back(std::move(first));
    return;
  }
  if (out.bytes.understood == 0) {
    out.bytes.understood = std::min(look.outline.bytes, out.bytes.total);
    const uint64_t left = out.bytes.total - out.bytes.understood;
    out.bytes.not_understood = std::min(out.bytes.not_understood, left);
    out.bytes.ignored = left - out.bytes.not_understood;
  }
  const uint64_t counted = std::min(look.counted_bytes, out.bytes.not_understood);
  out.bytes.understood += counted;
  out.bytes.not_understood -= counted;
  out.outlines.push_back(std::move(look.outline));
}

}  // namespace tacet
