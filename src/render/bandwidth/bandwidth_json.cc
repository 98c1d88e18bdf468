// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/json_writer.h"
#include "render/bandwidth/bandwidth_render.h"

namespace tacet {
namespace {

void Figure(JsonWriter& out, std::string_view key, double value) {
  if (value >= 0) out.Key(key).Double(value);
}

void Strings(JsonWriter& out, std::string_view key, const std::vector<std::string>& values) {
  out.Key(key).BeginArray();
  for (const std::string& value : values) out.String(value);
  out.EndArray();
}

void Indices(JsonWriter& out, std::string_view key, const std::vector<uint32_t>& values) {
  out.Key(key).BeginArray();
  for (const uint32_t value : values) out.Int(value);
  out.EndArray();
}

void Point(JsonWriter& out, const SweepPoint& point) {
  out.BeginObject().Key("bytes").Int(point.bytes).Key("in_place").Bool(point.in_place);
  Figure(out, "time_us", point.time_derived ? -1 : point.time_us);
  Figure(out, "algorithm_gbs", point.algorithm_gbs);
  Figure(out, "bus_gbs", point.bus_gbs);
  Figure(out, "spread", point.spread);
  Figure(out, "min_us", point.min_us);
  Figure(out, "median_us", point.median_us);
  Figure(out, "p95_us", point.p95_us);
  Figure(out, "p99_us", point.p99_us);
  Figure(out, "max_us", point.max_us);
  out.Key("measurements").Int(static_cast<int64_t>(point.times_us.size()));
  out.Key("iterations").Int(static_cast<int64_t>(point.iterations_us.size())).EndObject();
}

void Fit(JsonWriter& out, const PiecewiseFit& fit) {
  out.Key("fit").BeginObject().Key("r_squared").Double(fit.r_squared).Key("mean_error").Double(fit.mean_error);
  out.Key("worst_error")
      .Double(fit.worst_error)
      .Key("worst_bytes")
      .Double(fit.worst_bytes)
      .Key("noise")
      .Double(fit.noise);
  out.Key("segments").BeginArray();
  for (const FitSegment& one : fit.segments) {
    const double gbs = one.BandwidthGbs();
    out.BeginObject().Key("first_bytes").Double(one.first_bytes).Key("last_bytes").Double(one.last_bytes);
    out.Key("alpha_us").Double(one.alpha_us).Key("alpha_error_us").Double(one.alpha_error_us);
    out.Key("tells_alpha").Bool(one.TellsAlpha()).Key("tells_bandwidth").Bool(one.TellsBandwidth());
    out.Key("bandwidth_gbs").Double(gbs).Key("bandwidth_error_gbs");
    out.Double(one.beta_us_per_byte > 0 ? gbs * one.beta_error_us_per_byte / one.beta_us_per_byte : 0);
    out.Key("beta_us_per_byte").Double(one.beta_us_per_byte).Key("r_squared").Double(one.r_squared);
    out.Key("mean_error").Double(one.mean_error).Key("worst_error").Double(one.worst_error);
    out.Key("worst_bytes").Double(one.worst_bytes).Key("sizes").Int(static_cast<int64_t>(one.sizes)).EndObject();
  }
  out.EndArray().EndObject();
}

void Check(JsonWriter& out, const ModelCheck& check) {
  out.Key("model").BeginObject().Key("communicator").String(check.communicator);
  out.Key("share").Double(check.share).Key("large_sizes").Int(static_cast<int64_t>(check.large_points));
  out.Key("latency_ratio").Double(check.latency_ratio);
  Strings(out, "assumptions", check.assumptions);
  out.Key("points").BeginArray();
  for (const ModelPoint& point : check.points) {
    out.BeginObject().Key("bytes").Int(point.bytes).Key("measured_us").Double(point.measured_us);
    out.Key("predicted_us").Double(point.predicted_us).Key("measured_gbs").Double(point.measured_gbs);
    out.Key("predicted_gbs").Double(point.predicted_gbs).Key("share").Double(point.Share());
    out.Key("algorithm").String(Name(point.algorithm)).Key("protocol").String(Name(point.protocol)).EndObject();
  }
  out.EndArray();
  const Waterfall& fall = check.waterfall;
  out.Key("waterfall").BeginObject().Key("bytes").Int(fall.bytes).Key("top").String(fall.top);
  out.Key("line_gbs")
      .Double(fall.line_gbs)
      .Key("measured_gbs")
      .Double(fall.measured_gbs)
      .Key("missing")
      .String(fall.missing);
  out.Key("steps").BeginArray();
  for (const WaterfallLoss& loss : fall.losses) {
    out.BeginObject().Key("step").String(Name(loss.step)).Key("lost_gbs").Double(loss.Lost());
    out.Key("left_gbs").Double(loss.after_gbs).Key("taken_by").String(loss.who).EndObject();
  }
  out.EndArray().EndObject().EndObject();
}

void SweepAsJson(JsonWriter& out, const BandwidthAnswer& answer, size_t index) {
  const Sweep& sweep = answer.view.sweeps[index];
  out.BeginObject().Key("title").String(SweepWords(sweep));
  out.Key("tool").String(sweep.tool).Key("operation").String(sweep.operation);
  out.Key("ranks").Int(sweep.ranks);
  Strings(out, "hosts", sweep.hosts);
  out.Key("type").String(sweep.type == DataType::unknown ? "" : Name(sweep.type)).Key("library").String(sweep.library);
  out.Key("algorithm")
      .String(sweep.algorithm)
      .Key("protocol")
      .String(sweep.protocol)
      .Key("way_assumed")
      .Bool(sweep.way_assumed);
  out.Key("device")
      .String(sweep.network_device)
      .Key("link")
      .String(sweep.link)
      .Key("from")
      .String(sweep.from)
      .Key("to")
      .String(sweep.to);
  out.Key("runs").Int(static_cast<int64_t>(sweep.runs.size()));
  if (!sweep.runs.empty()) out.Key("file").String(answer.PathOf(sweep.incident, sweep.runs.front()->source));
  Figure(out, "out_of_place_over_in_place", sweep.in_place_ratio);
  out.Key("points").BeginArray();
  for (const SweepPoint& point : sweep.points) Point(out, point);
  out.EndArray();
  if (!sweep.fit.segments.empty()) Fit(out, sweep.fit);
  out.Key("outliers").BeginArray();
  for (const SweepOutlier& one : sweep.outliers) {
    out.BeginObject().Key("bytes").Int(one.bytes).Key("kind");
    out.String(one.kind == OutlierKind::lasting   ? "lasting"
               : one.kind == OutlierKind::passing ? "passing"
                                                  : "measured once");
    out.Key("factor")
        .Double(one.factor)
        .Key("slow")
        .Int(static_cast<int64_t>(one.slow))
        .Key("of")
        .Int(static_cast<int64_t>(one.of));
    out.EndObject();
  }
  out.EndArray();
  bool normal = false;
  const std::string words = NormalWords(answer.view, index, &normal);
  if (!words.empty()) out.Key("is_normal").String(words);
  if (const ModelCheck* check = answer.view.CheckOf(index)) Check(out, *check);
  out.EndObject();
}

void StreamAsJson(JsonWriter& out, const StreamView& stream) {
  const BenchmarkRun& run = *stream.run;
  out.BeginObject().Key("tool").String(run.tool).Key("operation").String(run.operation);
  out.Key("from").String(run.from).Key("to").String(run.to).Key("error").String(run.failure);
  Figure(out, "sent_gbs", run.sent_gbs);
  Figure(out, "received_gbs", run.received_gbs);
  Figure(out, "median_gbs", stream.median_gbs);
  Figure(out, "p5_gbs", stream.p5_gbs);
  Figure(out, "least_gbs", stream.least_gbs);
  Figure(out, "most_gbs", stream.most_gbs);
  Figure(out, "spread", stream.spread);
  Figure(out, "lost_share", run.lost_share);
  if (stream.retransmits >= 0) out.Key("retransmits").Int(stream.retransmits);
  if (stream.shift) out.Key("slower_from_interval").Int(static_cast<int64_t>(stream.shift->first + 1));
  out.Key("dips").Int(static_cast<int64_t>(stream.dips.size())).Key("intervals").BeginArray();
  for (const BenchmarkRate& rate : run.rates) out.Double(rate.gbs);
  out.EndArray().EndObject();
}

void MatrixAsJson(JsonWriter& out, const PairMatrixView& view) {
  out.BeginObject()
      .Key("tool")
      .String(view.tool)
      .Key("operation")
      .String(view.operation)
      .Key("title")
      .String(view.matrix.title);
  out.Key("unit").String(view.matrix.is_latency ? "us" : "GB/s");
  Strings(out, "rows", view.matrix.rows);
  Strings(out, "columns", view.matrix.columns);
  out.Key("cells").BeginArray();
  for (const auto& row : view.matrix.cells) {
    out.BeginArray();
    for (const double cell : row) out.Double(cell);
    out.EndArray();
  }
  out.EndArray().Key("typical").Double(view.typical).Key("sum").Double(view.sum).Key("levels").BeginArray();
  for (const double level : view.levels) out.Double(level);
  out.EndArray().Key("slow").BeginArray();
  for (const SlowPart& part : SlowPartsOf(view)) {
    out.BeginObject().Key("name").String(part.name).Key("share").Double(part.share).Key("value").Double(part.value);
    out.Key("expected").Double(part.expected).EndObject();
  }
  out.EndArray();
  Indices(out, "slow_rows", view.slow_rows);
  Indices(out, "slow_columns", view.slow_columns);
  Indices(out, "slow_members", view.slow_members);
  out.Key("slow_cells").BeginArray();
  for (const PairCell& cell : view.slow_cells) out.BeginArray().Int(cell.row).Int(cell.column).EndArray();
  out.EndArray().EndObject();
}

}  // namespace

std::string RenderBandwidthJson(const BandwidthAnswer& answer) {
  JsonWriter out;
  out.BeginObject().Key("schema").String("tacet.bandwidth.v1").Key("findings").BeginArray();
  for (const BandwidthFault& fault : answer.faults) {
    out.BeginObject().Key("cause").String(fault.cause).Key("headline").String(fault.headline);
    out.Key("file").String(answer.PathOf(fault.incident, fault.source)).Key("excerpt").String(fault.excerpt);
    Strings(out, "hosts", fault.hosts);
    out.EndObject();
  }
  out.EndArray().Key("sweeps").BeginArray();
  for (size_t i = 0; i < answer.view.sweeps.size(); ++i) SweepAsJson(out, answer, i);
  out.EndArray().Key("streams").BeginArray();
  for (const StreamView& stream : answer.view.streams) StreamAsJson(out, stream);
  out.EndArray().Key("matrices").BeginArray();
  for (const PairMatrixView& matrix : answer.view.matrices) MatrixAsJson(out, matrix);
  out.EndArray().Key("better").BeginArray();
  for (const BetterWay& way : answer.view.better) {
    out.BeginObject().Key("operation").String(way.operation).Key("ranks").Int(way.ranks).Key("nodes").Int(way.nodes);
    out.Key("ways").Int(static_cast<int64_t>(way.ways)).Key("run_noise").Double(way.run_noise);
    out.Key("cells").BeginArray();
    for (const BetterCell& cell : way.cells) {
      out.BeginObject()
          .Key("bytes")
          .Int(cell.bytes)
          .Key("chosen")
          .String(cell.chosen)
          .Key("chosen_us")
          .Double(cell.chosen_us);
      out.Key("algorithm")
          .String(cell.algorithm)
          .Key("protocol")
          .String(cell.protocol)
          .Key("better_us")
          .Double(cell.better_us);
      out.Key("gain")
          .Double(cell.Gain())
          .Key("noise")
          .Double(cell.noise)
          .Key("calls")
          .Int(static_cast<int64_t>(cell.calls))
          .Key("calls_per_step")
          .Double(cell.calls_per_step)
          .EndObject();
    }
    out.EndArray().EndObject();
  }
  out.EndArray().Key("remarks").BeginArray();
  for (const ReportDiagnostic& remark : answer.remarks) {
    out.BeginObject()
        .Key("code")
        .String(remark.code)
        .Key("message")
        .String(remark.message)
        .Key("file")
        .String(remark.file)
        .EndObject();
  }
  return out.EndArray().EndObject().Take() + "\n";
}

}  // namespace tacet
