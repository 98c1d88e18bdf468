// SPDX-License-Identifier: Apache-2.0
#include "evidence/nccl_tests/nccl_tests_import.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <set>

#include "base/advice.h"
#include "base/text_scan.h"
#include "evidence/nccl_tests/nccl_tests_operation.h"
#include "evidence/nccl_tests/nccl_tests_parse.h"
#include "model/events/nccl_warnings.h"

namespace tacet {
namespace {

constexpr size_t kMaxWords = 300;

int32_t ToInt32(int64_t value) { return static_cast<int32_t>(std::clamp<int64_t>(value, -1, INT32_MAX)); }

// 22803 is 2.28.3; before 2.9 one digit less: 2708 is 2.7.8.
std::string LibraryVersion(int64_t code) {
  if (code <= 0 || code > 10'000'000) return "";
  const int64_t base = code >= 10000 ? 10000 : 1000;
  return std::to_string(code / base) + "." + std::to_string(code % base / 100) + "." + std::to_string(code % 100);
}

ReduceOp ReductionOf(std::string_view name) {
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min, ReduceOp::avg})
    if (Name(op) == name) return op;
  return name == "mulsum" ? ReduceOp::user : ReduceOp::unknown;
}

DataType TypeOf(std::string_view name) {
  if (name == "half") return DataType::float16;
  if (name == "f8e4m3" || name == "fp8_e4m3") return DataType::float8_e4m3;
  if (name == "f8e5m2" || name == "fp8_e5m2") return DataType::float8_e5m2;
  return ParseDataType(name);
}

// Before 2.13 the column holds the largest difference, which is rounding as a rule; the summary says whether it was
// not. No difference at all (0e+00) is a passed check, with or without that line.
BenchmarkFigure FigureOf(NcclTestsFigure&& from, const NcclTestsTable& table) {
  double wrong = from.wrong;
  if (table.differences) wrong = wrong == 0 || (wrong > 0 && table.out_of_bounds == 0) ? 0 : -1;
  return {from.time_us, from.algorithm_gbs, from.bus_gbs, wrong,       std::move(from.iterations_us),
          from.min_us,  from.median_us,     from.p95_us,  from.p99_us, from.max_us};
}

// With NCCL_TESTS_SPLIT the ranks form several groups, each of which runs the operation by itself. A list that does not
// begin with rank 0, or from which ranks of the only group are missing, is cut: it does not tell how many there are.
int32_t RanksOf(const NcclTestsTable& table) {
  std::set<int64_t> ranks;
  bool split = false;
  for (const NcclTestsDevice& device : table.devices) {
    if (device.group == table.devices.front().group)
      ranks.insert(device.rank);
    else
      split = true;
  }
  if (ranks.empty()) return -1;
  const auto count = static_cast<int64_t>(ranks.size());
  const bool cut = !split && (*ranks.begin() != 0 || *ranks.rbegin() + 1 != count);
  return cut ? -1 : ToInt32(count);
}

// The figures of the fastest size, which have most digits.
const NcclTestsFigure* BestFigure(const NcclTestsTable& table) {
  const NcclTestsFigure* best = nullptr;
  for (const NcclTestsRow& row : table.rows)
    if (row.out_of_place.algorithm_gbs > (best ? best->algorithm_gbs : 0)) best = &row.out_of_place;
  return best;
}

// Bus over algorithm bandwidth, where the figures have digits enough.
double FactorOf(const NcclTestsTable& table) {
  const NcclTestsFigure* best = BestFigure(table);
  return best && best->algorithm_gbs >= 0.5 ? best->bus_gbs / best->algorithm_gbs : 0;
}

constexpr std::string_view kRatioClue = "the ratio of its bandwidths";

// No list of devices: the bandwidths tell one rank (whose bus bandwidth is 0) from several, the command how many.
void CountRanks(const NcclTestsTable& table, BenchmarkRun& run) {
  if (run.ranks > 0) return;
  const NcclTestsFigure* best = BestFigure(table);
  if (!best || best->algorithm_gbs < 0.5) return;
  const double factor = FactorOf(table);
  const auto asked = table.settings.ranks();
  const std::string operation = OperationOfProgram(table.program);
  run.ranks_clue = kRatioClue;
  if (best->bus_gbs == 0) {
    run.ranks = 1;
    run.ranks_clue = "its bus bandwidth, which is 0";
  } else if (asked > 1 && asked < INT32_MAX && FitsFactor(operation, ToInt32(asked), factor)) {
    run.ranks = ToInt32(asked);
    run.ranks_clue = "the command line";
  } else if (operation == "all_reduce" || (operation.empty() && factor > 1.1)) {
    run.ranks = RanksOfFactor(best->algorithm_gbs, best->bus_gbs);
  }
  run.ranks_assumed = run.ranks > 0;
}

void NameOperation(const NcclTestsTable& table, std::string_view path, BenchmarkRun& run) {
  run.operation = OperationOfProgram(table.program);
  if (!run.operation.empty()) return;
  const double factor = FactorOf(table);
  run.operation = OperationOfPath(path);
  run.operation_clue = "the file's name";
  if (!FitsFactor(run.operation, run.ranks, factor)) run.operation.clear();
  if (run.operation.empty()) {
    run.operation = OperationOfFactor(run.ranks, factor);
    run.operation_clue = kRatioClue;
  }
  run.operation_assumed = !run.operation.empty();
}

// "all_reduce_ring_ll128.txt": people who sweep name their files so. An algorithm must be named, alone or with a
// protocol.
void NameWayByPath(std::string_view path, BenchmarkRun& run) {
  if (!run.algorithm.empty() || !run.protocol.empty()) return;
  if (const size_t slash = path.rfind('/'); slash != std::string_view::npos) path.remove_prefix(slash + 1);
  std::string algorithm, protocol, word;
  const auto take = [&] {
    for (const std::string_view one : {"ring", "tree", "nvls", "nvlstree", "collnetdirect", "collnetchain", "pat"})
      if (word == one) algorithm = word;
    for (const std::string_view one : {"ll", "ll128", "simple"})
      if (word == one) protocol = word;
    word.clear();
  };
  for (const char c : path) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else
      take();
  }
  take();
  if (algorithm.empty()) return;
  run.algorithm = algorithm;
  run.protocol = protocol;
  run.way_assumed = true;
}

BenchmarkRun RunOf(NcclTestsTable&& table, std::string_view path) {
  BenchmarkRun run;
  run.tool = "nccl-tests";
  run.version = table.version.substr(0, kMaxWords);
  run.library = LibraryVersion(table.library);
  run.ranks = RanksOf(table);
  run.source = {FileId{}, table.line, table.offset};
  run.summary = {FileId{}, table.summary_line, table.summary_offset};
  run.failed_at = {FileId{}, table.failure_line, table.failure_offset};
  run.host_times = table.host_times;
  run.concluded = table.concluded;
  run.failed_checks = table.out_of_bounds;
  run.average_bus_gbs = table.average_gbs;
  run.average_too_low = table.average_failed;
  run.failure =
      WithoutHints((table.failure.empty() && !table.concluded ? table.last_error : table.failure).substr(0, kMaxWords));
  run.algorithm = table.algorithm.substr(0, kMaxWords);
  run.protocol = table.protocol.substr(0, kMaxWords);
  NameWayByPath(path, run);
  CountRanks(table, run);
  run.separate_runs = table.separate_runs;
  run.largest_bytes = table.settings.max_bytes;
  run.reached_largest = !table.rows.empty() && IsLastSize(table.settings, table.rows.back().bytes);
  NameOperation(table, path, run);
  for (const NcclTestsDevice& device : table.devices)
    run.devices.push_back({Rank{ToInt32(device.rank)},
                           std::string(device.host.substr(0, kMaxWords)),
                           std::string(device.name.substr(0, kMaxWords)),
                           device.pid,
                           ToInt32(device.device),
                           {FileId{}, device.line, device.offset}});
  run.lines.reserve(table.rows.size());
  for (NcclTestsRow& row : table.rows) {
    BenchmarkLine& line = run.lines.emplace_back();
    line.bytes = row.bytes;
    line.type = TypeOf(row.type);
    line.reduction = ReductionOf(row.redop);
    line.root = ToInt32(row.root);
    line.source = {FileId{}, row.line, row.offset};
    line.out_of_place = FigureOf(std::move(row.out_of_place), table);
    line.in_place = FigureOf(std::move(row.in_place), table);
  }
  return run;
}

// "remote process exited or there was a network error / socketProgress: Connection closed by remote
// peer 10.0.3.3<4100>" NCCL's last warning stands behind its result.
void AddLastWarning(const BenchmarkRun& run, Fragment& out) {
  const size_t slash = run.failure.find(" / ");
  if (slash == std::string::npos) return;
  const std::string_view message = Trim(std::string_view(run.failure).substr(slash + 3));
  const NcclWarning& known = ClassifyWarning(message);
  if (known.id == "other" || known.id == "cuda-failure") return;
  const NcclWarningNumbers numbers = ParseWarningNumbers(known, message);
  Event event;
  event.kind = IsConnectionLoss(known) ? EventKind::connection_lost : EventKind::nccl_warning;
  event.speaker = kNobody;
  event.source = run.failed_at;
  event.text = message;
  if (event.kind == EventKind::connection_lost) {
    event.Make<LostPeer>().address = ParsePeerAddress(message);
  } else {
    auto& warning = event.Make<Warning>();
    warning.id = known.id;
    warning.number = numbers.value;
    warning.role = RoleOf(known, numbers, false);
    warning.object = ParseWarningObject(known, message);
  }
  out.events.push_back(std::move(event));
}

void AddRemarks(const BenchmarkRun& run, Fragment& out) {
  if (run.reached_largest && !run.concluded && run.failure.empty())
    out.Note(DiagnosticSeverity::note, "closing-lines-missing",
             "the table reaches its largest size; only the closing lines are missing", run.source);
  else if (!run.concluded && run.failure.empty())
    out.Note(DiagnosticSeverity::warning, "truncated",
             "the benchmark's closing lines are missing: the benchmark was stopped, or the file is truncated; the "
             "lines it has were read",
             run.source);
  if (run.operation.empty())
    out.Note(DiagnosticSeverity::note, "operation-unknown", "the output does not show which operation was measured",
             run.source, "keep the command line in the output, or name the file after the operation");
  else if (run.operation_assumed)
    out.Note(DiagnosticSeverity::note, "operation-assumed",
             "treated as " + run.operation + ", judging by " + std::string(run.operation_clue), run.source);
  if (run.ranks_assumed)
    out.Note(DiagnosticSeverity::note, "ranks-assumed",
             "treated as a run of " + std::to_string(run.ranks) + (run.ranks == 1 ? " rank" : " ranks") +
                 ", judging by " + std::string(run.ranks_clue),
             run.source);
  if (run.average_too_low)
    out.Note(DiagnosticSeverity::warning, "bandwidth-below-minimum",
             "the benchmark calls its average bus bandwidth too low: it was set to expect more", run.summary);
}

}  // namespace

void ReadNcclTests(const FileView& file, Fragment& out) {
  NcclTestsOutput parsed =
      IsNcclTestsJson(file.bytes) ? ParseNcclTestsJson(file.bytes) : ParseNcclTestsText(file.bytes);
  out.bytes.total = file.bytes.size();
  out.bytes.understood = parsed.understood;
  out.bytes.ignored = parsed.ignored;
  out.bytes.not_understood = parsed.not_understood;
  for (NcclTestsTable& table : parsed.tables) {
    // A bare command line, or a failure before anything began, is still a run that says so.
    if (table.rows.empty() && table.devices.empty() && table.failure.empty() && !table.concluded && !table.headed)
      continue;
    out.benchmark_runs.push_back(RunOf(std::move(table), file.path));
    AddLastWarning(out.benchmark_runs.back(), out);
    AddRemarks(out.benchmark_runs.back(), out);
  }
}

}  // namespace tacet
