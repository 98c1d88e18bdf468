// SPDX-License-Identifier: Apache-2.0
// @ts-check
// Pipelines, replays, buckets, shards, experts, utilisation and memory: each only where the job has it.

/** @param {ProfileJobPipeline} pipeline */
function pipelinePanel(pipeline) {
  const longest = pipeline.by_stage.reduce((most, stage) => Math.max(most, figure(stage.compute_ns) + figure(stage.waiting_ns) + figure(stage.idle_ns)), 0);
  const facts = h("dl.facts", fact("Stages", String(pipeline.stages)), fact("Microbatches", String(pipeline.microbatches)), fact("Schedule", pipeline.schedule),
    pipeline.chunks > 1 ? fact("Chunks per stage", String(pipeline.chunks)) : null, pipeline.replicas > 1 ? fact("Replicas", String(pipeline.replicas)) : null,
    fact("Bubble, measured", percent(pipeline.bubble)), fact("Bubble, theoretical", percent(pipeline.theoretical_bubble)));
  const heavy = pipeline.heaviest_stage >= 0
    ? h("p", "Stage " + pipeline.heaviest_stage + " computes " + fixed(pipeline.imbalance, 2) + " times as long as the median of the others; equal stages would save ", h("b", percent(pipeline.balance_gain)), ".") : null;
  return h("div.panel", h("h3", "Pipeline"), facts,
    h("ul.legend", [["p0", "compute"], ["p2", "waiting for other stages"], ["p5", "idle"]].map(([mark, word]) => h("li", h("i.dot." + mark), word + ", per step"))),
    barLines(pipeline.by_stage.map((stage) => ["stage " + stage.stage + ", " + describeRanks(stage.ranks, 4), [stage.compute_ns, stage.waiting_ns, stage.idle_ns].map(figure), longest,
      describeTime(stage.compute_ns) + " compute"]), ["p0", "p2", "p5"]), heavy);
}

// The slowest parts first; 1.00 costs nothing.
function slowdownLines(named) {
  const finite = named.filter(([, value]) => Number.isFinite(value)).sort((a, b) => b[1] - a[1]).slice(0, 8);
  const most = finite.reduce((top, [, value]) => Math.max(top, value - 1), 0.05);
  return finite.length > 0 ? barLines(finite.map(([name, value]) => [name, [value - 1], most, value.toFixed(2)]), ["p2"]) : null;
}

/** @param {ProfileJobWhatIfItem} replay */
function replayPanel(replay) {
  if (!replay.valid) return h("div.panel", h("h3", "What-if replay"), h("p", "Not possible: " + replay.problem));
  const indexed = (name, values) => values.map((value, i) => [name + " " + i, value]);
  return h("div.panel", h("h3", "What-if replay"),
    h("p", "The recorded step takes ", h("b", fixed(replay.slowdown, 2)), " times the ideal step, in which every operation takes the typical time of its kind: recorded " + describeTime(replay.recorded_ns) +
      ", replayed " + describeTime(replay.replayed_ns) + ", ideal " + describeTime(replay.ideal_ns) + " per step; " + count(replay.steps, "step") + "."),
    h("p", "Share of the slowdown that would go away with ideal times for " + (replay.worst_workers === 1 ? "the slowest worker" : "the " + replay.worst_workers + " slowest workers") + ": M_W = " + fixed(replay.m_w, 2) +
      "; for the last stage: M_S = " + fixed(replay.m_s, 2) + (Math.max(figure(replay.m_w), figure(replay.m_s)) >= 1.005 ? " (above 1: the step would be shorter than the ideal)" : "") +
      (Math.min(figure(replay.m_w), figure(replay.m_s)) <= -0.005 ? " (below 0: the step would be longer)" : "") + "."),
    replay.missing.length > 0 ? h("p.faint", "Not recorded: " + replay.missing.join(", ")) : null,
    [["Slowdown if only one kind of operation keeps its recorded times", Object.entries(replay.by_operation)],
      ["If only one data-parallel rank does", indexed("data-parallel rank", replay.by_dp_rank)],
      ["If only one stage does", indexed("stage", replay.by_stage)]].map(([title, values]) => {
      const lines = slowdownLines(values);
      return lines ? [h("h3.between", title), lines] : null;
    }));
}

/** @param {ProfileJobDdpBucket} bucket */
function bucketRow(bucket, index, end) {
  const bar = h("div.gantt");
  for (const [mark, from, to] of /** @type {[string, number, number][]} */ ([["p4", figure(bucket.ready_ns), figure(bucket.start_ns)], ["p1", figure(bucket.start_ns), figure(bucket.end_ns)]])) {
    if (!(to > from) || !(end > 0)) continue;
    const piece = h("i." + mark);
    piece.style.left = 100 * from / end + "%";
    piece.style.width = 100 * (to - from) / end + "%";
    bar.append(piece);
  }
  bar.setAttribute("aria-hidden", "true");
  return h("div.row", h("span.name", "bucket " + index + ", " + describeSize(bucket.bytes)), bar, h("span.number", describeTime(bucket.start_ns) + " to " + describeTime(bucket.end_ns)));
}

/** @param {ProfileJobDdp} ddp */
function ddpPanel(ddp) {
  const end = ddp.buckets.reduce((last, bucket) => Math.max(last, figure(bucket.end_ns)), 0);
  const best = ddp.recommended_bucket_cap_mb;
  const longest = ddp.predictions.reduce((most, one) => Math.max(most, figure(one.step_ns)), 0);
  return h("div.panel", h("h3", "Data parallel: DDP on " + clean(ddp.group)),
    h("p", count(ddp.buckets.length, "bucket") + ". ",
      ddp.predictions.length === 0 ? "Other bucket sizes are not predicted." : best === null ? "No other bucket_cap_mb is predicted to be clearly better." : ["bucket_cap_mb=" + fixed(best, 0) + " is predicted to save ", h("b", percent(ddp.gain)), " of the step."]),
    h("ul.legend", h("li", h("i.dot.p4"), "gradients ready, all-reduce not begun"), h("li", h("i.dot.p1"), "all-reduce runs"), h("li.faint", "time from the start of the step")),
    h("div.lines", ddp.buckets.slice(0, 48).map((bucket, i) => bucketRow(bucket, i, end))),
    ddp.buckets.length > 48 ? h("p.faint", "The first 48 of " + ddp.buckets.length + " buckets.") : null,
    ddp.predictions.length > 0 ? [h("h3.between", "Predicted step by bucket_cap_mb"),
      barLines(ddp.predictions.map((one) => [fixed(one.bucket_cap_mb, 0), [one.step_ns], longest, describeTime(one.step_ns)]), ["p0"])] : null);
}

/** @param {ProfileJobFsdp} fsdp */
function fsdpPanel(fsdp) {
  return h("div.panel", h("h3", "Sharded: FSDP or ZeRO on " + clean(fsdp.group)),
    h("p", "Parameters " + describeSize(fsdp.parameter_bytes) + (fsdp.parameters_known ? "" : " (from reduce_scatter)") + ", " + describeSize(fsdp.kept_bytes) + " kept after the forward pass."),
    plainTable(["Per step", "Measured", "Theory", "Ratio", "Hidden"], [
      ["all_gather", describeSize(fsdp.gather_bytes), describeSize(fsdp.expected_gather_bytes), fixed(fsdp.gather_ratio, 2), percent(fsdp.hidden_gathers)],
      ["reduce_scatter", describeSize(fsdp.scatter_bytes), describeSize(fsdp.expected_scatter_bytes), fixed(fsdp.scatter_ratio, 2), percent(fsdp.hidden_scatters)]], (i) => i > 0),
    fsdp.units.length > 0 ? [h("h3.between", "Units, in order"), barLines(fsdp.units.slice(0, 48).map((unit, i) => ["unit " + i + ", " + describeSize(unit.bytes),
      [figure(unit.gather_ns) * figure(unit.hidden), figure(unit.gather_ns) * (1 - figure(unit.hidden))], fsdp.units.reduce((most, one) => Math.max(most, figure(one.gather_ns)), 0),
      describeTime(unit.gather_ns) + " per gather, " + percent(unit.hidden) + " hidden"]), ["p1", "p2"])] : null);
}

/** @param {ProfileJobAllToAll} experts */
function expertsPanel(experts) {
  const most = experts.members.reduce((top, one) => Math.max(top, one.received_bytes), 0);
  const busiest = [...experts.members].sort((a, b) => b.received_bytes - a.received_bytes).slice(0, MANY_RANKS);
  return h("div.panel", h("h3", "All-to-all on " + clean(experts.group)),
    h("p", Number(figure(experts.calls).toPrecision(3)) + " calls and " + describeTime(experts.transfer_ns) + " of transfer per step (" + percent(experts.transfer_share) + "). ",
      experts.sized ? ["The busiest rank receives " + fixed(experts.imbalance, 2) + " times the mean in a call, " + fixed(experts.lasting_imbalance, 2) + " times over all; perfectly even calls would save ",
        h("b", percent(experts.balance_gain)), " of the step."] : "The trace has no sizes: it is unknown whether the calls are even."),
    most > 0 ? barLines(busiest.map((one) => ["rank " + one.rank, [one.received_bytes], most, one.received_bytes < 0 ? "?" : describeSize(one.received_bytes) + " received"]), ["p1"]) : null,
    most > 0 && busiest.length < experts.members.length ? h("p.faint", "The " + busiest.length + " that receive most of " + experts.members.length + ".") : null);
}

/** @param {ProfileJobUtilisation} one */
function utilisationPanel(one) {
  if (figure(one.peak_tflops) <= 0) return h("div.panel", h("h3", "Utilization"), h("p", "The device's peak is unknown; give --peak-tflops."));
  return h("div.panel", h("h3", "Utilization, from " + clean(one.source)), h("dl.facts",
    one.mfu !== null ? fact("MFU", smallPercent(one.mfu)) : null, one.hfu !== null ? fact("HFU", smallPercent(one.hfu)) : null,
    fact("Peak of a device", figure(one.peak_tflops).toPrecision(3) + " TFLOP/s"), fact("Work per device and step", Number((figure(one.flops) / 1e12).toPrecision(3)) + " TFLOP")));
}

// [rank, allocated, reserved, device, persistent, transient, parameters, fragmentation, out of memory, pressure]
/** @param {ProfilePageJob} job */
function memorySection(job) {
  const whole = job.memory.reduce((most, row) => Math.max(most, figure(row[2])), 0);
  const bytes = (label, at) => ({label, value: (row) => row[at], cell: (row) => (row[at] === null || row[at] < 0 ? "?" : describeSize(row[at])), numeric: true});
  const table = dataTable([
    {label: "Rank", value: (row) => row[0], cell: (row) => nameRank(row[0]), numeric: true},
    bytes("Allocated", 1), bytes("Reserved", 2), bytes("Device", 3),
    {label: "Parts of reserved", value: (row) => row[2], cell: (row) => stackBar([row[6] ?? 0, row[4], row[5], Math.max(0, row[2] - row[1])], whole, ["p0", "p1", "p4", "p5"])},
    bytes("Parameters", 6), bytes("Persistent", 4), bytes("Transient", 5),
    {label: "Fragmented", value: (row) => row[7], cell: (row) => percent(row[7]), numeric: true},
    {label: "Pressure", value: (row) => (row[8] ? 2 : row[9] ? 1 : 0), cell: (row) => (row[8] ? "out of memory" : row[9] ? "yes" : "")},
  ], job.memory, {name: "rank", sort: 2, down: true, page: MANY_RANKS, search: (row) => "rank " + nameRank(row[0]) + "."});
  const words = [["p0", "parameters"], ["p1", "persistent: optimizer state, buckets"], ["p4", "transient: activations, gradients, workspace"], ["p5", "reserved beyond the peak of tensors"]];
  return section("memory", "Memory", "at its peak", h("ul.legend", words.map(([mark, word]) => h("li", h("i.dot." + mark), word))), table.node);
}

/** @param {ProfilePageJob} job */
function strategiesSection(job) {
  const panels = [
    job.pipeline ? pipelinePanel(job.pipeline) : null, job.what_if.map(replayPanel), job.ddp ? ddpPanel(job.ddp) : null,
    job.fsdp ? fsdpPanel(job.fsdp) : null, job.all_to_all ? expertsPanel(job.all_to_all) : null, job.utilisation ? utilisationPanel(job.utilisation) : null,
  ].flat().filter(Boolean);
  return panels.length > 0 ? section("strategy", "How the work is split", null, panels) : null;
}
