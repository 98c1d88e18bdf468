// SPDX-License-Identifier: Apache-2.0
// @ts-check
// Where the time of a step goes: on average, by rank and by step.

const SHORT_PARTS = ["Only compute", "Hidden", "Exposed", "Copies", "Host wait", "Launch", "Data"];
const MANY_RANKS = 16;  // more get a picture of their own

// [rank, host, device, steps, hidden, efficiency, parts...] -> an object
/** @param {ProfilePageJob} job */
function readRank(job, row) {
  const parts = row.slice(6);
  return {rank: row[0], host: job.hosts[row[1]], device: job.devices[row[2]], steps: row[3], hidden: row[4], efficiency: row[5],
    parts, step: sum(parts), compute: parts[0] + parts[1], exposed: parts[2], idle: parts[4] + parts[5] + parts[6]};
}

/** @param {string[]} labels */
function partLines(parts, labels) {
  const whole = sum(parts);
  return h("div.lines", labels.map((label, i) => (parts[i] > 0 ? [h("span", h("i.dot.p" + i), label),
    h("span.number", describeTime(parts[i]) + ", " + percent(parts[i] / whole))] : null)));
}

// Every part with its mean, and which ranks have least and most of it.
/** @param {ProfilePageJob} job @param {string[]} labels */
function partsTable(job, labels, ranks) {
  const whole = sum(job.mean);
  const several = ranks.length > 1;
  const extreme = (part, better) => ranks.reduce((best, rank) => (better(rank.parts[part], best.parts[part]) ? rank : best));
  const tell = (rank, part) => describeTime(rank.parts[part]) + " (rank " + nameRank(rank.rank) + ")";
  const rows = labels.map((label, part) => (ranks.every((rank) => rank.parts[part] === 0) ? null : [h("span", h("i.dot.p" + part), label), describeTime(job.mean[part]), percent(job.mean[part] / whole),
    several ? tell(extreme(part, (a, b) => a < b), part) : null, several ? tell(extreme(part, (a, b) => a > b), part) : null].filter((cell) => cell !== null)));
  return plainTable(["Part", "Mean per step", "Share"].concat(several ? ["Least", "Most"] : []), rows.flatMap((row) => (row ? [row] : [])), (i) => i > 0);
}

/** @param {ProfilePageJob} job */
function overlapFacts(job) {
  const facts = [];
  if (job.mean[1] + job.mean[2] > 0) {
    facts.push(fact("Communication hidden behind compute", percent(job.hidden_fraction)));
    facts.push(fact("Overlap efficiency (100 %: the shorter part is completely hidden)", percent(job.overlap_efficiency)));
  }
  if (figure(job.wait_share) > 0) facts.push(fact("Of communication, waiting for peers", percent(job.wait_share)));
  if (figure(job.communication_efficiency) > 0) facts.push(fact("Communication efficiency (of the link's peak)", smallPercent(job.communication_efficiency)));
  return facts.length > 0 ? h("dl.facts", facts) : null;
}

/** @param {ProfilePageJob} job @param {string[]} labels */
function budgetSection(job, labels, ranks) {
  const whole = sum(job.mean);
  return section("budget", "Where the step time goes", describeTime(whole) + " on average" + (ranks.length > 1 ? " over " + count(ranks.length, "rank") : ""),
    h("div.panel", overlapFacts(job), tallBar(job.mean), partsTable(job, labels, ranks)));
}

function tallBar(parts) {
  const bar = stackBar(parts, sum(parts));
  bar.classList.add("tall");
  return bar;
}

/** @param {ProfilePageJob} job @param {string[]} labels */
function rankChart(job, labels, ranks, pick) {
  const orders = [
    {label: "by rank", value: null},
    {label: "by step time", value: (rank) => rank.step},
    {label: "by compute", value: (rank) => rank.compute},
    {label: "by exposed communication", value: (rank) => rank.exposed},
    {label: "by idle time", value: (rank) => rank.idle},
  ];
  return chooser(orders, (order) => {
    const sorted = order.value ? [...ranks].sort((a, b) => order.value(b) - order.value(a)) : ranks;
    const columns = sorted.map((rank) => ({
      values: rank.parts,
      lines: () => [h("strong", "Rank " + nameRank(rank.rank), rank.host ? " on " + rank.host : ""), h("div", "step " + describeTime(rank.step)), partLines(rank.parts, labels)],
      said: () => "Rank " + nameRank(rank.rank) + (rank.host ? " on " + rank.host : "") + ": step " + describeTime(rank.step) + ", compute " + percent(rank.compute / rank.step) +
        ", exposed communication " + percent(rank.exposed / rank.step) + ", idle " + percent(rank.idle / rank.step),
    }));
    return columnChart(columns, {
      label: "Mean step of " + count(ranks.length, "rank") + ", " + order.label,
      left: order.value ? "most" : "rank " + nameRank(sorted[0].rank),
      right: order.value ? "least" : "rank " + nameRank(sorted[sorted.length - 1].rank),
      pick: (index) => pick(sorted[index].rank),
    });
  });
}

/** @param {ProfilePageJob} job */
function rankBudgetTable(job, ranks) {
  const longest = ranks.reduce((most, rank) => Math.max(most, rank.step), 0);
  const share = (label, part) => ({label, value: (rank) => rank.parts[part] / rank.step, cell: (rank) => percent(rank.parts[part] / rank.step), numeric: true});
  const columns = [
    {label: "Rank", value: (rank) => rank.rank, cell: (rank) => nameRank(rank.rank), numeric: true},
    {label: "Host", value: (rank) => rank.host},
    {label: "Mean step", value: (rank) => rank.step, cell: (rank) => describeTime(rank.step), numeric: true},
    {label: "Parts", value: (rank) => rank.compute, cell: (rank) => stackBar(rank.parts, longest)},
    ...SHORT_PARTS.map((label, part) => share(label, part)).filter((_, part) => ranks.some((rank) => rank.parts[part] > 0)),
  ].filter((column) => column.label !== "Host" || new Set(ranks.map((rank) => rank.host)).size > 1);
  const byCompute = [...ranks].sort((a, b) => b.compute - a.compute);
  const most = new Set(byCompute.slice(0, MANY_RANKS)), least = new Set(byCompute.slice(-MANY_RANKS));
  const late = new Set(job.stragglers.map((one) => one.rank));
  const choices = ranks.length <= MANY_RANKS ? [] : [
    {label: "compute longest", test: (rank) => most.has(rank)},
    {label: "compute least", test: (rank) => least.has(rank)},
  ];
  if (late.size > 0 && ranks.length > MANY_RANKS) choices.push({label: "make others wait", test: (rank) => late.has(rank.rank)});
  return dataTable(columns, ranks, {name: "rank", search: (rank) => "rank " + nameRank(rank.rank) + ".\n" + rank.host + "\n" + rank.device, choices, page: MANY_RANKS});
}

/** @param {ProfilePageJob} job @param {string[]} labels */
function ranksSection(job, labels, ranks) {
  const table = rankBudgetTable(job, ranks);
  table.node.classList.add("between");
  const pick = (rank) => { table.find("rank " + nameRank(rank) + "."); table.node.scrollIntoView({block: "start"}); };
  const missing = job.world_size > ranks.length ? " of " + job.world_size.toLocaleString("en") : "";
  return section("ranks", "By rank", "mean step of " + ranks.length.toLocaleString("en") + missing + (ranks.length === 1 ? " rank" : " ranks"), partsLegend(labels, ranks.map((rank) => rank.parts)),
    ranks.length > MANY_RANKS ? h("div.panel", rankChart(job, labels, ranks, pick)) : null, table.node);
}

// [first, how many, mean, least, most, parts...]
/** @param {ProfilePageJob} job @param {string[]} labels */
function stepsSection(job, labels) {
  const divided = job.steps_drawn[0].length > 5;
  /** @param {(number | null)[]} row */
  const name = ([first, many]) => numbered(figure(first), figure(many));
  const numbered = (first, many) => (many > 1 ? "Steps " + first.toLocaleString("en") + " to " + (first + many - 1).toLocaleString("en") : "Step " + first.toLocaleString("en"));
  const columns = job.steps_drawn.map((row) => {
    const [, many, mean, least, most] = row.map(figure);
    const extent = many > 1 ? ", " + describeTime(least) + " to " + describeTime(most) : "";
    const parts = divided ? row.slice(5).map(figure) : [mean];
    return {
      values: parts,
      extent: many > 1 ? [least, most] : null,
      lines: () => [h("strong", name(row)), h("div", (many > 1 ? "mean " : "") + describeTime(mean) + extent), divided ? partLines(parts, labels) : null],
      said: () => name(row) + ": " + describeTime(mean) + extent,
    };
  });
  const [first, last] = [job.steps_drawn[0], job.steps_drawn[job.steps_drawn.length - 1]];
  const joined = figure(first[1]) > 1 || figure(last[1]) > 1;
  return section("steps", "By step", count(job.steps, "recorded step"), divided ? partsLegend(labels, columns.map((column) => column.values)) : null,
    h("div.panel", columnChart(columns, {
      label: "Time of " + count(job.steps, "step") + (divided ? " by parts, mean of all ranks" : ""),
      left: "step 1", right: "step " + (figure(last[0]) + figure(last[1]) - 1).toLocaleString("en"), single: divided ? null : "p0",
    }), joined ? h("p.faint", "A column is the mean of several steps; the thin line reaches from the shortest to the longest of them, and is cut at the top.") : null));
}
