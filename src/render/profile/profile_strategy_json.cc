// SPDX-License-Identifier: Apache-2.0
#include "render/profile/profile_strategy_json.h"

#include "render/profile/profile_words.h"

namespace tacet {
namespace {

void WritePipeline(JsonWriter& json, const PipelineReport& pipeline) {
  json.Key("pipeline");
  if (!pipeline.found) {
    json.Null();
    return;
  }
  json.BeginObject();
  json.Key("stages").Int(pipeline.stages);
  json.Key("microbatches").Int(pipeline.microbatches);
  json.Key("chunks").Int(pipeline.chunks);
  json.Key("replicas").Int(static_cast<int64_t>(pipeline.pipelines));
  json.Key("schedule").String(Name(pipeline.schedule));
  json.Key("bubble").Double(pipeline.bubble);
  json.Key("theoretical_bubble").Double(pipeline.ideal_bubble);
  json.Key("idle").Double(pipeline.idle);
  json.Key("heaviest_stage").Int(pipeline.heaviest);
  json.Key("imbalance").Double(pipeline.imbalance);
  json.Key("balance_gain").Double(pipeline.balance_gain);
  json.Key("by_stage").BeginArray();
  for (const PipelineStage& stage : pipeline.by_stage) {
    json.BeginObject().Key("stage").Int(stage.stage);
    json.Key("ranks").BeginArray();
    for (const Rank rank : stage.ranks) json.Int(rank.value);
    json.EndArray();
    json.Key("compute_ns").Int(stage.compute_ns);
    json.Key("waiting_ns").Int(stage.waiting_ns);
    json.Key("idle_ns").Int(stage.idle_ns);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

void WriteNumbers(JsonWriter& json, std::string_view key, const std::vector<double>& values) {
  json.Key(key).BeginArray();
  for (const double value : values) json.Double(value);
  json.EndArray();
}

void WriteReplay(JsonWriter& json, const WhatIfReport& report) {
  json.BeginObject();
  json.Key("valid").Bool(report.valid);
  json.Key("problem").String(report.problem);
  json.Key("dp_size").Int(report.dp_size);
  json.Key("stages").Int(report.stages);
  json.Key("chunks").Int(report.chunks);
  json.Key("steps").Int(static_cast<int64_t>(report.steps));
  json.Key("dropped_steps").Int(static_cast<int64_t>(report.dropped_steps));
  json.Key("missing").BeginArray();
  for (const std::string& one : report.missing) json.String(one);
  json.EndArray();
  json.Key("recorded_ns").Double(report.recorded_ns);
  json.Key("replayed_ns").Double(report.replayed_ns);
  json.Key("ideal_ns").Double(report.ideal_ns);
  json.Key("slowdown").Double(report.slowdown);
  json.Key("by_operation").BeginObject();
  for (const auto& [name, slowdown] : report.by_operation) json.Key(name).Double(slowdown);
  json.EndObject();
  WriteNumbers(json, "by_dp_rank", report.by_dp_rank);
  WriteNumbers(json, "by_stage", report.by_stage);
  json.Key("worst_dp_rank").Int(report.worst_dp_rank);
  json.Key("worst_stage").Int(report.worst_stage);
  json.Key("worst_workers").Int(static_cast<int64_t>(report.worst_workers));
  json.Key("m_w").Double(report.worst_workers_share);
  json.Key("m_s").Double(report.last_stage_share);
  json.EndObject();
}

void WriteDdp(JsonWriter& json, const ProfileReport& profile) {
  const DdpReport& ddp = profile.ddp;
  json.Key("ddp");
  if (!ddp.found) {
    json.Null();
    return;
  }
  json.BeginObject();
  json.Key("group").String(profile.ddp_group);
  json.Key("gradient_bytes").Int(ddp.gradient_bytes);
  json.Key("step_ns").Double(ddp.step_ns);
  json.Key("predicted_ns").Double(ddp.predicted_ns);
  json.Key("latency_ns").Double(ddp.fit.latency_ns);
  json.Key("latency_measured").Bool(ddp.fit.latency_measured);
  json.Key("per_byte_ns").Double(ddp.fit.per_byte_ns);
  json.Key("buckets").BeginArray();
  for (const DdpBucket& bucket : ddp.buckets) {
    json.BeginObject();
    json.Key("bytes").Int(bucket.bytes);
    json.Key("ready_ns").Int(bucket.ready_ns);
    json.Key("start_ns").Int(bucket.start_ns);
    json.Key("end_ns").Int(bucket.end_ns);
    json.Key("transfer_ns").Int(bucket.transfer_ns);
    json.EndObject();
  }
  json.EndArray().Key("predictions").BeginArray();
  for (const DdpPrediction& one : ddp.predictions) {
    json.BeginObject();
    json.Key("bucket_cap_mb").Double(one.cap_mb);
    json.Key("buckets").Int(static_cast<int64_t>(one.buckets));
    json.Key("step_ns").Double(one.step_ns);
    json.EndObject();
  }
  json.EndArray();
  json.Key("recommended_bucket_cap_mb");
  ddp.gain > 0 ? json.Double(ddp.recommended_cap_mb) : json.Null();
  json.Key("gain").Double(ddp.gain);
  json.EndObject();
}

void WriteFsdp(JsonWriter& json, const ProfileReport& profile) {
  const FsdpReport& fsdp = profile.fsdp;
  json.Key("fsdp");
  if (!fsdp.found) {
    json.Null();
    return;
  }
  json.BeginObject();
  json.Key("group").String(profile.fsdp_group);
  json.Key("ranks").Int(fsdp.ranks);
  json.Key("parameter_bytes").Int(fsdp.parameter_bytes);
  json.Key("parameters_known").Bool(fsdp.parameters_known);
  json.Key("kept_bytes").Int(fsdp.kept_bytes);
  json.Key("gather_bytes").Int(fsdp.gather_bytes);
  json.Key("expected_gather_bytes").Int(fsdp.expected_gather_bytes);
  json.Key("gather_ratio").Double(fsdp.gather_ratio);
  json.Key("scatter_bytes").Int(fsdp.scatter_bytes);
  json.Key("expected_scatter_bytes").Int(fsdp.expected_scatter_bytes);
  json.Key("scatter_ratio").Double(fsdp.scatter_ratio);
  json.Key("hidden_gathers").Double(fsdp.hidden_gathers);
  json.Key("hidden_scatters").Double(fsdp.hidden_scatters);
  json.Key("units").BeginArray();
  for (const FsdpUnit& unit : fsdp.units) {
    json.BeginObject();
    json.Key("bytes").Int(unit.bytes);
    json.Key("gathers").Double(unit.gathers);
    json.Key("gather_ns").Int(unit.gather_ns);
    json.Key("hidden").Double(unit.hidden);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

void WriteExperts(JsonWriter& json, const ProfileReport& profile) {
  const ExpertReport& experts = profile.experts;
  json.Key("all_to_all");
  if (!experts.found) {
    json.Null();
    return;
  }
  json.BeginObject();
  json.Key("group").String(profile.expert_group);
  json.Key("ranks").Int(experts.ranks);
  json.Key("calls").Double(experts.calls);
  json.Key("sized").Bool(experts.sized);
  json.Key("imbalance").Double(experts.imbalance);
  json.Key("lasting_imbalance").Double(experts.lasting_imbalance);
  json.Key("busiest").Int(experts.busiest.value);
  json.Key("transfer_ns").Int(experts.transfer_ns);
  json.Key("transfer_share").Double(experts.transfer_share);
  json.Key("balance_gain").Double(experts.balance_gain);
  json.Key("members").BeginArray();
  for (const ExpertMember& member : experts.members) {
    json.BeginObject();
    json.Key("rank").Int(member.rank.value);
    json.Key("sent_bytes").Int(member.sent_bytes);
    json.Key("received_bytes").Int(member.received_bytes);
    json.Key("kernel_ns").Int(member.kernel_ns);
    json.Key("wait_ns").Int(member.wait_ns);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

}  // namespace

void WriteStrategies(JsonWriter& json, const ProfileReport& profile) {
  WritePipeline(json, profile.pipeline);
  json.Key("what_if").BeginArray();
  for (const WhatIfReport& report : profile.what_if) WriteReplay(json, report);
  json.EndArray();
  json.Key("replay_compute_share").Double(profile.replay_compute_share);
  WriteDdp(json, profile);
  WriteFsdp(json, profile);
  WriteExperts(json, profile);
  json.Key("utilisation");
  if (!profile.utilisation) {
    json.Null();
    return;
  }
  const ProfileUtilisation& one = *profile.utilisation;
  json.BeginObject();
  json.Key("source").String(one.source);
  json.Key("mfu");
  one.mfu > 0 ? json.Double(one.mfu) : json.Null();
  json.Key("hfu");
  one.hfu > 0 ? json.Double(one.hfu) : json.Null();
  json.Key("flops").Double(one.flops);
  json.Key("peak_tflops").Double(one.peak_tflops);
  json.EndObject();
}

}  // namespace tacet
