// SPDX-License-Identifier: Apache-2.0
#include "evidence/layers/text_layers.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/line_reader.h"
#include "evidence/format.h"
#include "evidence/layers/csv_log.h"
#include "evidence/layers/log_envelope.h"
#include "evidence/layers/metric_record.h"
#include "evidence/layers/pasted_text.h"
#include "evidence/layers/shipper_head.h"
#include "evidence/layers/wrapped_error.h"

namespace tacet {
namespace {

std::string UnpackedFrom(std::string_view name) { return "unpacked from " + std::string(name); }

// Several pods or services in one text are told apart by a label that the readers of lines know.
TextLayer TakeOffHeads(std::string_view bytes, ShipperHead head, size_t most) {
  TextLayer layer{.done = UnpackedFrom(Name(head))};
  ShippedLine shipped;
  std::string first;
  bool several = false;
  std::string_view line;
  for (LineReader look(bytes.substr(0, kPrefixBytes)); look.Next(&line) && !several;) {
    if (!TakeShippedLine(line, head, &shipped) || shipped.source.empty()) continue;
    several = !first.empty() && first != shipped.source;
    first = std::move(shipped.source);
  }
  LineReader reader(bytes);
  while (reader.Next(&line)) {
    if (layer.text.size() + line.size() > most) {
      layer.limited = true;
      break;
    }
    if (!TakeShippedLine(line, head, &shipped)) {
      layer.text += line;
    } else {
      if (several && !shipped.source.empty() && head != ShipperHead::hydra)
        layer.text += "[pod/" + shipped.source + "/x] ";
      // One line for one: a record that holds several would move the rest.
      std::replace(shipped.text.begin(), shipped.text.end(), '\n', ' ');
      layer.text += shipped.text;
    }
    layer.text += '\n';
  }
  return layer;
}

}  // namespace

bool HasLayer(std::string_view prefix) {
  return FindEnvelope(prefix) != Envelope::none || FindShipperHead(prefix) != ShipperHead::none || IsCsvLog(prefix) ||
         HasMetricRecords(prefix) || FindPaste(prefix) != Paste::none || HasWrappedErrors(prefix);
}

std::optional<TextLayer> TakeOffLayer(std::string_view bytes, size_t most) {
  const std::string_view prefix = bytes.substr(0, kPrefixBytes);
  if (const Envelope envelope = FindEnvelope(prefix); envelope != Envelope::none) {
    Unwrapped inner = TakeOutOfEnvelope(bytes, envelope, most);
    return TextLayer{std::move(inner.text), UnpackedFrom(Name(envelope)), inner.limited};
  }
  if (const ShipperHead head = FindShipperHead(prefix); head != ShipperHead::none)
    return TakeOffHeads(bytes, head, most);
  if (IsCsvLog(prefix))
    return TextLayer{TakeCsvLines(bytes, most), UnpackedFrom("a table of a log store"), bytes.size() > most};
  if (HasMetricRecords(prefix)) return TextLayer{WriteMetricRecords(bytes), "read as a trainer's lines", false};
  if (bytes.size() > kMostPasted) return std::nullopt;
  const Paste paste = FindPaste(prefix);
  if (paste == Paste::none && HasWrappedErrors(prefix))
    return TextLayer{OpenWrappedErrors(bytes), "errors were extracted from the records that contain them", false};
  if (paste == Paste::none) return std::nullopt;
  return TextLayer{UndoPaste(bytes, paste), std::string(DescribeUndone(paste)), false};
}

void CiteOuterText(std::string_view outer, Fragment& fragment) {
  std::vector<uint64_t> begins;
  LineReader reader(outer);
  for (std::string_view line; reader.Next(&line);) begins.push_back(reader.offset());
  const auto begin_of = [&](uint32_t line, uint64_t otherwise) {
    return line >= 1 && line <= begins.size() ? begins[line - 1] : otherwise;
  };
  for (Event& event : fragment.events) event.source.offset = begin_of(event.source.line, event.source.offset);
  const auto cite = [&](SourceRef& source) { source.offset = begin_of(source.line, source.offset); };
  for (BenchmarkRun& run : fragment.benchmark_runs)
    for (SourceRef* place : {&run.source, &run.summary, &run.failed_at})
      place->offset = begin_of(place->line, place->offset);
  for (BenchmarkRun& run : fragment.benchmark_runs) {
    for (BenchmarkDevice& one : run.devices) cite(one.source);
    for (BenchmarkLine& one : run.lines) cite(one.source);
    for (BenchmarkMatrix& one : run.matrices) cite(one.source);
  }
  for (ThreadStack& thread : fragment.threads) cite(thread.source);
  for (CallStream& stream : fragment.streams)
    for (Call& call : stream.calls) call.offset = begin_of(call.line, call.offset);
  for (TrainingRecord& training : fragment.training) {
    for (SourceRef* place : {&training.source, &training.loss.run_source, &training.gradient.run_source,
                             &training.scale.first, &training.scale.last})
      cite(*place);
    for (OddValue* odd : {&training.zero_loss, &training.same_gradient}) cite(odd->source);
    for (StepTime& time : training.times) cite(time.source);
  }
  for (LogOutline& outline : fragment.outlines) {
    for (SourceRef* place :
         {&outline.last_source, &outline.error_source, &outline.last_error, &outline.ended_source,
          &outline.saved.source, &outline.trained.source, &outline.served.source, &outline.stopped.source})
      cite(*place);
    for (LineOfRank& one : outline.last_of_ranks) cite(one.source);
    for (LineOfRank& one : outline.at_work) cite(one.source);
    for (LineOfRank& one : outline.joining) cite(one.source);
    for (auto* lines : {&outline.own_lines, &outline.first_lines, &outline.barriers, &outline.outsiders})
      for (OwnLine& one : *lines) cite(one.source);
    for (SeenWarning& one : outline.harmless) cite(one.source);
    for (StepShare& one : outline.steps) cite(one.source);
    for (RankValue& one : outline.values) cite(one.source);
    for (StepDecimal& one : outline.decimals) cite(one.source);
    for (FigureSeries& one : outline.series) {
      cite(one.last);
      cite(one.value.run_source);
      cite(one.value.far_source);
    }
    for (GroupRate& one : outline.rates) cite(one.source);
    for (PairRate& one : outline.pairs) cite(one.source);
    for (Utilization& one : outline.utilizations) cite(one.source);
  }
  for (Diagnostic& diagnostic : fragment.diagnostics)
    diagnostic.source.offset = begin_of(diagnostic.source.line, diagnostic.source.offset);
}

}  // namespace tacet
