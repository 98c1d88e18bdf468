// SPDX-License-Identifier: Apache-2.0
// @ts-check
// Who makes the others wait, what that costs, and what the operations take.

/** @param {ProfilePageJobStraggler} one */
function nameStraggler(one) {
  if (one.rank >= 0) return "rank\u00a0" + one.rank;
  const place = [one.dp_rank >= 0 ? "data-parallel rank " + one.dp_rank : "", one.stage >= 0 ? "stage " + one.stage : ""].filter(Boolean);
  return place.join(", ") || "?";
}

// Late by `late_ns` in every step, or in its late steps only.
const lostBy = (one) => one.late_ns * (one.pattern === "persistent" ? one.steps : one.late_steps);

/** @param {ProfilePageJob} job */
function costLine(job) {
  const cost = figure(job.cost_share), lost = cost * job.step_ns;
  const alone = job.stragglers.length === 1 && figure(job.stragglers[0].high) > figure(job.stragglers[0].low) ? job.stragglers[0] : null;
  const parts = ["If " + (job.stragglers.length === 1 ? "it" : "they") + " kept pace with the slowest of the others, every rank would save ", h("b", percent(job.cost_share)), " of the step" + (alone ? interval(alone.low, alone.high) : "")];
  if (lost > 0) parts.push(": ", h("b", describeTime(lost)), " per step, ", describeTime(lost * job.steps), " in the " + count(job.steps, "recorded step") + ", ",
    describeTime(cost * 3.6e12), " of every hour.");
  return h("p", parts);
}

/** @param {ProfilePageJob} job */
function stragglerTable(job) {
  const worst = job.stragglers.reduce((most, one) => Math.max(most, lostBy(one)), 0);
  return plainTable(["Who", "Late by", "Of the step", "Cost", "Steps", "Late in all", "Compared", "When", "Why", "Confidence that it is late"], job.stragglers.slice(0, 64).map((one) =>
    [nameStraggler(one), describeTime(one.late_ns), percent(one.share), percent(one.cost) + (figure(one.high) > figure(one.low) ? interval(one.low, one.high) : ""), one.late_steps.toLocaleString("en") + " of " + one.steps.toLocaleString("en"), describeTime(lostBy(one)),
      stackBar([lostBy(one)], worst, ["p2"]), one.pattern, one.origin, confidence(one.confidence)]), (i) => i > 0 && i < 6);
}

// [rank, operations, last in, late steps, steps, mean ns, worst ns, share]
/** @param {(number | null)[]} row */
function readLateness([rank, operations, last, lateSteps, steps, mean, worst, share]) {
  return {rank, operations: figure(operations), last: figure(last), lateSteps: figure(lateSteps), steps: figure(steps), mean: figure(mean), worst: figure(worst), share};
}

function latenessTable(rows) {
  const most = rows.reduce((top, row) => Math.max(top, row.mean), 0);
  return dataTable([
    {label: "Rank", value: (row) => row.rank, cell: (row) => nameRank(row.rank), numeric: true},
    {label: "Late by, mean per step", value: (row) => row.mean, cell: (row) => describeTime(row.mean), numeric: true},
    {label: "Compared", value: (row) => row.mean, cell: (row) => stackBar([row.mean], most, ["p2"])},
    {label: "Of the step", value: (row) => row.share, cell: (row) => percent(row.share), numeric: true},
    {label: "Worst step", value: (row) => row.worst, cell: (row) => describeTime(row.worst), numeric: true},
    {label: "Late steps", value: (row) => row.lateSteps, cell: (row) => row.lateSteps.toLocaleString("en") + " of " + row.steps.toLocaleString("en"), numeric: true},
    {label: "Last to arrive in", value: (row) => row.last, cell: (row) => row.last.toLocaleString("en") + " of " + count(row.operations, "operation"), numeric: true},
  ], rows, {name: "rank", sort: 1, down: true, page: MANY_RANKS, search: (row) => "rank " + nameRank(row.rank) + "."});
}

function latenessChart(rows, find) {
  const sorted = [...rows].sort((a, b) => b.mean - a.mean);
  const said = (row) => "Rank " + nameRank(row.rank) + ": late by " + describeTime(row.mean) + " per step, " + percent(row.share) + " of it";
  return columnChart(sorted.map((row) => ({values: [row.mean], lines: () => [h("div", said(row))], said: () => said(row)})), {
    label: "Lateness of " + count(rows.length, "rank") + ", latest first", left: "latest", right: "earliest", single: "p2",
    pick: (index) => find("rank " + nameRank(sorted[index].rank) + "."),
  });
}

// Folded away where no rank stands out.
function latenessPart(rows, found) {
  if (rows.length === 0) return null;
  const table = latenessTable(rows);
  table.node.classList.add("between");
  const title = "How late each rank arrives, compared with the median rank";
  const picture = rows.length > MANY_RANKS ? h("div.panel", latenessChart(rows, table.find)) : null;
  return found ? [h("h3.between", title), picture, table.node] : h("details.fold", h("summary", title), picture, table.node);
}

/** @param {ProfilePageJob} job */
function waitsSection(job) {
  const found = job.stragglers.length > 0;
  const nobody = "No rank is late enough to be called a straggler (see Definitions); " + count(job.operations, "operation") + (job.operations === 1 ? " was" : " were") + " compared.";
  return section("waits", "Who makes the others wait", found ? count(job.stragglers.length, "straggler") : job.not_judged ? "not judged" : "no rank stands out",
    found ? h("div.panel", costLine(job), stragglerTable(job)) : job.not_judged ? h("p.faint", "Not judged: " + job.not_judged + ".") : job.operations > 0 ? h("p.faint", nobody) : null,
    latenessPart(job.lateness.map(readLateness), found));
}

// In powers of two, as the classes of sizes and bucket_cap_mb count: "716 MiB".
/** @param {number} bytes */
function describeSize(bytes) {
  if (bytes < 1024) return bytes + " B";
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let value = bytes / 1024, unit = 0;
  for (; value >= 1023.5 && unit + 1 < units.length; ++unit) value /= 1024;
  return (value < 99.95 ? value.toFixed(1) : value.toFixed(0)) + " " + units[unit];
}

/** @param {ProfilePageJob} job */
function communicationSection(job) {
  const lonely = job.ranks.length === 1;
  const longest = job.table.reduce((most, row) => Math.max(most, Math.max(0, row.wait_ns) + Math.max(0, row.transfer_ns)), 0);
  const sized = (text) => (row) => (row.bytes > 0 ? text(row) : "?");
  const table = dataTable([
    {label: "Group", value: (row) => row.group, cell: (row) => word(row.group + (row.groups > 1 ? " x" + row.groups : ""))},
    {label: "Ranks", value: (row) => row.ranks, cell: (row) => (row.ranks > 0 ? row.ranks : ""), numeric: true},
    {label: "Operation", value: (row) => row.operation, cell: (row) => word(row.operation)},
    {label: "Up to", value: (row) => row.size, cell: (row) => row.size_class || "?", numeric: true},
    {label: "Calls", value: (row) => row.calls, cell: (row) => row.calls.toLocaleString("en"), numeric: true},
    {label: "Bytes", value: (row) => row.bytes, cell: sized((row) => describeSize(row.bytes)), numeric: true},
    {label: "Wait", value: (row) => row.wait_ns, cell: (row) => (row.wait_ns < 0 ? "?" : describeTime(row.wait_ns)), numeric: true},
    {label: "Transfer", value: (row) => row.transfer_ns, cell: (row) => (row.transfer_ns < 0 ? "?" : describeTime(row.transfer_ns)), numeric: true},
    {label: "A rank's time", value: (row) => Math.max(0, row.wait_ns) + Math.max(0, row.transfer_ns),
      cell: (row) => stackBar([Math.max(0, row.wait_ns), Math.max(0, row.transfer_ns)], longest, ["p2", "p1"])},
    {label: "Algbw GB/s", value: (row) => row.algorithm_gbs, cell: sized((row) => (row.algorithm_gbs > 0 ? describeRate(row.algorithm_gbs) : "?")), numeric: true},
    {label: "Busbw GB/s", value: (row) => row.bus_gbs, cell: sized((row) => (row.bus_gbs > 0 ? describeRate(row.bus_gbs) : "?")), numeric: true},
    {label: "Of peak", value: (row) => (row.peak_gbs > 0 ? row.bus_gbs / row.peak_gbs : null), cell: (row) => (row.peak_gbs > 0 && row.bytes > 0 ? smallPercent(row.bus_gbs / row.peak_gbs) : ""), numeric: true},
  ], job.table, {name: "line", search: (row) => [row.group, row.operation, row.size_class].join("\n")});
  const shares = job.groups.slice(0, 12).map((group) => [group.group + (group.groups > 1 ? " x" + group.groups : ""), [group.share], 1, percent(group.share)]);
  return section("communication", "Communication", "GB/s = 1e9 bytes per second",
    h("ul.legend", h("li", h("i.dot.p2"), lonely ? "waiting for peers (one rank does not show it)" : "waiting for peers, mean of a group's ranks"), h("li", h("i.dot.p1"), lonely ? "transfer, waiting included" : "transfer")),
    table.node, job.table_left_out > 0 ? h("p.faint", "The " + count(job.table_left_out, "shorter line") + " are left out; --format json has all.") : null,
    shares.length > 1 ? h("div.panel.between", h("h3", "Kernel time of a group's operations over the step, waiting included"), barLines(shares, ["p2"])) : null);
}
