// SPDX-License-Identifier: Apache-2.0
// @ts-check
// The page of tacet bandwidth: what is slow, then every sweep, stream and matrix with its picture and its figures.

/** @param {BandwidthPage} content */
function bandwidthVerdict(content) {
  const slow = content.findings.length > 0, measured = content.sweeps.length + content.streams.length + content.matrices.length > 0;
  const judged = content.sweeps.length > 0 ? content.sweeps.some((sweep) => sweep.model) : content.matrices.length > 0;
  const headline = slow ? content.findings[0].headline : !measured ? "No benchmark was found" : judged ? "Nothing is slower than expected, as far as these files show" : "These files do not show how fast this should be";
  const wrong = content.findings.some((finding) => finding.cause === "wrong-results");
  const tools = [...new Set([...content.sweeps, ...content.streams, ...content.matrices].map((one) => one.tool))].filter(Boolean);
  const peak = content.sweeps.flatMap((sweep) => sweep.points.map((point) => ({rate: rateOf(point), bytes: point.bytes}))).reduce((best, one) => (one.rate > best.rate ? one : best), {rate: 0, bytes: 0});
  const node = h("section.verdict" + (slow ? ".bound" : judged ? ".good" : ".calm"),
    h("p.line", h("span.status", wrong ? "wrong results" : slow ? "slow" : !measured ? "nothing found" : judged ? "as expected" : "not judged")), h("h1", unbroken(capitalise(headline))),
    h("dl.facts", fact("Measured with", tools.join(", ")), content.sweeps.length > 0 ? fact("Sweeps", String(content.sweeps.length)) : null,
      content.matrices.length > 0 ? fact("Pair matrices", String(content.matrices.length)) : null, content.streams.length > 0 ? fact("Streams", String(content.streams.length)) : null,
      peak.rate > 0 ? fact("Highest bandwidth", describeGbs(peak.rate) + " at " + describeSize(peak.bytes)) : null));
  node.id = "verdict";
  return node;
}

/** @param {BandwidthPage} content */
function slowSection(content) {
  const items = content.findings.map((finding) => h("li", h("p", finding.headline), h("figure", finding.file ? h("figcaption", finding.file) : null, finding.excerpt ? h("pre", finding.excerpt) : null),
    h("p.faint", "What to do: ", command("tacet explain " + finding.cause))));
  return section("slow", content.findings.some((finding) => finding.cause === "wrong-results") ? "What is wrong" : "What is slow", String(items.length), h("div.panel", h("ol.evidence", items)));
}

/** @param {BandwidthPageSweep} sweep */
function pointsTable(sweep) {
  const model = new Map((sweep.model ? sweep.model.points : []).map((point) => [point.bytes, point]));
  const has = (name) => sweep.points.some((point) => Number.isFinite(point[name]));
  const figure = (label, name, words) => ({label, value: (point) => point[name] ?? null, cell: (point) => (Number.isFinite(point[name]) ? words(point[name]) : ""), numeric: true, name});
  const layouts = new Set(sweep.points.map((point) => point.in_place)).size > 1;
  const columns = [
    {label: "Size", value: (point) => point.bytes, cell: (point) => describeSize(point.bytes), numeric: true},
    ...(layouts ? [{label: "Layout", value: (point) => (point.in_place ? "in place" : "out of place")}] : []),
    ...[figure("Time", "time_us", describeMicroseconds), figure("Algorithm GB/s", "algorithm_gbs", describeRate), figure("Bus GB/s", "bus_gbs", describeRate), figure("Spread", "spread", percent),
      figure("Median", "median_us", describeMicroseconds), figure("99 % of calls", "p99_us", describeMicroseconds), figure("Slowest", "max_us", describeMicroseconds)].filter((column) => has(column.name)),
    ...(model.size > 0 ? [{label: "Model GB/s", value: (point) => model.get(point.bytes)?.predicted_gbs ?? null, cell: (point) => (model.has(point.bytes) ? describeRate(model.get(point.bytes)?.predicted_gbs) : ""), numeric: true},
      {label: "Of the model", value: (point) => model.get(point.bytes)?.share ?? null, cell: (point) => (model.has(point.bytes) ? percent(model.get(point.bytes)?.share) : ""), numeric: true}] : []),
  ];
  return dataTable(columns, sweep.points, {name: "size", page: 12, search: (point) => describeSize(point.bytes)}).node;
}

/** @param {BandwidthPageSweepFit | undefined} fit */
function fitTable(fit) {
  if (!fit || fit.segments.length === 0) return null;
  return h("div", h("h3.between", "Fit"), h("p.faint", "time = latency + size / algorithm bandwidth, with 95 % intervals; R² " + fixed(fit.r_squared, 4) + ", mean error " + percent(fit.mean_error) + "."),
    plainTable(["Sizes", "Latency", "Bandwidth", "R²", "Mean error", "Worst error"], fit.segments.map((one) => [
      describeSize(one.first_bytes) + " to " + describeSize(one.last_bytes),
      one.tells_alpha ? describeMicroseconds(one.alpha_us) + " ± " + describeMicroseconds(one.alpha_error_us) : "unknown",
      one.tells_bandwidth ? describeGbs(one.bandwidth_gbs) + " ± " + describeGbs(one.bandwidth_error_gbs) : "unknown",
      fixed(one.r_squared, 3), percent(one.mean_error), percent(one.worst_error) + " at " + describeSize(one.worst_bytes)]), (i) => i > 0));
}

const OUTLIERS = {lasting: "persistent", passing: "transient"};

/** @param {BandwidthPageSweepOutlier} one */
function outlierWords(one) {
  const kind = OUTLIERS[one.kind];
  const often = one.kind === "passing" ? ", in " + one.slow + " of " + count(figure(one.of), "measurement") : kind ? "" : "; measured once, so it is unknown whether it persists";
  return describeSize(one.bytes) + " took up to " + fixed(one.factor, 1) + " times as long as the other sizes suggest" + (kind ? ": " + kind : "") + often + ".";
}

/** @param {BandwidthPageSweep} sweep */
function sweepPanel(sweep) {
  const peak = sweep.points.find((point) => rateOf(point) > 0 && sweep.points.every((other) => rateOf(other) <= rateOf(point)));
  return h("div.panel", h("h3", sweep.title + (sweep.way_assumed ? " (according to the file's name)" : "")),
    h("dl.facts", fact("Tool", sweep.tool + (sweep.library ? ", NCCL " + sweep.library : "")), fact("Runs", String(sweep.runs)), fact("File", h("code", sweep.file ?? "")),
      peak ? fact("Highest " + (figure(peak.bus_gbs) > 0 ? "bus" : "algorithm") + " bandwidth", describeGbs(rateOf(peak)) + " at " + describeSize(peak.bytes)) : null),
    sweep.is_normal ? h("p", h("b", "Is this normal? "), sweep.is_normal) : null,
    sweepChart(sweep), pointsTable(sweep), fitTable(sweep.fit),
    sweep.outliers.length > 0 ? [h("h3.between", "Out of line"), list("ul", sweep.outliers.slice(0, 12).map(outlierWords))] : null,
    sweep.model && (sweep.model.share ?? 0) <= 1.2 ? waterfallPanel(sweep.model.waterfall) : null);
}

/** @param {BandwidthPageStream} stream */
function streamPanel(stream) {
  const rate = (label, value) => (Number.isFinite(value) ? fact(label, describeGbs(value)) : null);
  return h("div.panel", h("h3", [stream.tool, stream.operation].filter(Boolean).join(", ") + (stream.from || stream.to ? ": " + stream.from + " to " + stream.to : "")),
    stream.error ? h("p.bad", stream.error) : null,
    h("dl.facts", rate("Sent", stream.sent_gbs), rate("Received", stream.received_gbs), rate("Median", stream.median_gbs), rate("Least", stream.least_gbs), rate("Most", stream.most_gbs),
      isFigure(stream.retransmits) ? fact("Retransmits", stream.retransmits.toLocaleString("en")) : null, figure(stream.dips) > 0 ? fact("Dips", String(stream.dips)) : null,
      Number.isFinite(stream.lost_share) ? fact("Lost", percent(stream.lost_share)) : null),
    streamChart(stream.intervals));
}

const MOST_CELLS = 10000;

// Which cells the analysis calls slow; what is near is not compared with what is far.
/** @param {BandwidthPageMatrice} matrix */
function slowCells(matrix) {
  const rows = new Set([...matrix.slow_rows, ...matrix.slow_members]), columns = new Set([...matrix.slow_columns, ...matrix.slow_members]);
  const cells = new Set(matrix.slow_cells.map(([row, column]) => row + ":" + column));
  return (row, column) => rows.has(row) || columns.has(column) || cells.has(row + ":" + column);
}

/** @param {BandwidthPageMatrice} matrix */
function matrixPanel(matrix) {
  const latency = matrix.unit !== "GB/s", unit = latency ? "µs" : "GB/s";
  const head = [h("h3", matrix.title + ", " + unit), h("p.faint", "Median " + describeRate(matrix.typical) + " " + unit + ".")];
  const slow = matrix.slow.map((part) => h("li", part.name + ": " + percent(part.share) + " of comparable cells (" + describeRate(part.value) + " instead of " + describeRate(part.expected) + " " + unit + ")"));
  if (matrix.rows.length * matrix.columns.length > MOST_CELLS) return h("div.panel", head, h("ul.slow", slow), h("p", "Too many cells to show; tacet bandwidth --json has them."));
  const isSlow = slowCells(matrix);
  const corner = h("td.corner");
  const headOf = (scope, text) => { const node = h("th", text); node.scope = scope; return node; };
  const rows = matrix.cells.map((cells, r) => h("tr", headOf("row", matrix.rows[r] ?? ""), cells.map((value, c) => h(isFigure(value) && isSlow(r, c) ? "td.number.slow" : "td.number", isFigure(value) ? value.toFixed(2) : ""))));
  const frame = h("div.matrix", h("table", h("thead", h("tr", corner, matrix.columns.map((column) => headOf("col", column)))), h("tbody", rows)));
  frame.tabIndex = 0;
  frame.setAttribute("role", "group");
  frame.setAttribute("aria-label", clean(matrix.title) + ", table");
  return h("div.panel", head, slow.length > 0 ? h("ul.slow", slow) : null, frame);
}

/** @param {BandwidthPageBetterItem} way */
function betterPanel(way) {
  return h("div.panel", h("h3", way.operation + ", " + count(way.ranks, "rank") + " on " + count(way.nodes, "node")),
    plainTable(["Size", "Chosen", "Time", "Better", "Time", "Gain"], way.cells.map((cell) => [describeSize(cell.bytes), cell.chosen, describeMicroseconds(cell.chosen_us),
      cell.algorithm ? cell.algorithm + " " + cell.protocol : "none", Number.isFinite(cell.better_us) ? describeMicroseconds(cell.better_us) : "", Number.isFinite(cell.gain) ? percent(cell.gain) : ""]), (i) => i !== 1 && i !== 3));
}

/** @param {BandwidthPage} content */
function showBandwidth(content) {
  const sections = [
    bandwidthVerdict(content),
    content.findings.length > 0 ? slowSection(content) : null,
    content.sweeps.length > 0 ? section("sweeps", "Bandwidth by size", count(content.sweeps.length, "sweep"), content.sweeps.slice(0, 200).map(sweepPanel)) : null,
    content.streams.length > 0 ? section("streams", "Streams", count(content.streams.length, "stream"), content.streams.slice(0, 200).map(streamPanel)) : null,
    content.matrices.length > 0 ? section("matrices", "Pairs", null, content.matrices.slice(0, 50).map(matrixPanel)) : null,
    content.better.some((way) => way.cells.length > 0) ? section("better", "Better ways", "measured with NCCL_ALGO and NCCL_PROTO forced", content.better.filter((way) => way.cells.length > 0).map(betterPanel)) : null,
    content.remarks.length > 0 ? section("remarks", "Remarks", null, list("ul", content.remarks.map((remark) => (remark.file ? remark.file + ": " : "") + remark.message))) : null,
  ].filter((node) => node !== null);
  showSections(sections, ["Made by ", h("code", "tacet bandwidth"), ". GB/s = 1e9 bytes per second; the same as data: ", command("tacet bandwidth --format json")]);
}

showBandwidth(/** @type {BandwidthPage} */ (readContent()));
