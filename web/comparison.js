// SPDX-License-Identifier: Apache-2.0
// @ts-check
// The page of tacet compare: every line with its old and new value, the change and how sure it is.

const RESULTS = {slower: "slower", faster: "faster"};
const CHANGES = ["slower", "faster", "more overlap", "less overlap"];
let saidScale = 0;  // by the caption of the table before
const signed = (share) => (Number.isFinite(share) ? (share < 0 ? "" : "+") + (100 * share).toFixed(1) + " %" : "");
const describeChance = (p) => (p < 1e-15 ? "< 1e-15" : p < 0.001 ? p.toExponential(1) : p.toFixed(3));
const isTested = (line) => line.count_a > 1 && line.count_b > 1 || line.result === "slower" || line.result === "faster";

// The scale of the bars: changes that count are shown whole, up to a doubling; one odd line must not flatten the others.
/** @param {ComparisonLine[]} lines */
function changeScale(lines) {
  const largest = (some) => some.reduce((most, line) => (Number.isFinite(line.change) ? Math.max(most, Math.abs(line.change)) : most), 0);
  const sure = lines.filter((line) => RESULTS[line.result]);
  return Math.max(0.05, Math.min(1, sure.length > 0 ? 1.2 * largest(sure) : Math.min(0.5, largest(lines))));
}

// To the right slower, to the left faster; the thin line is the interval.
/** @param {ComparisonLine} line */
function changeBar(line, scale) {
  if (!Number.isFinite(line.change) || line.count_a === 0 || line.count_b === 0) return "";
  const bar = h("div.delta");
  const place = (share) => 50 + 50 * Math.max(-1, Math.min(1, share / scale));
  const piece = (tag, from, to) => {
    const node = h(tag);
    node.style.left = Math.min(place(from), place(to)) + "%";
    node.style.width = Math.abs(place(to) - place(from)) + "%";
    return node;
  };
  bar.append(piece("i." + (RESULTS[line.result] || "none"), 0, line.change));
  const [low, high] = line.interval;
  if (isTested(line) && isFigure(low) && isFigure(high) && high > low) bar.append(piece("b", low, high));
  bar.setAttribute("aria-hidden", "true");
  return bar;
}

/** @param {ComparisonLine[]} lines */
function linesTable(lines, noun) {
  const scale = changeScale(lines);
  const time = (label, count, mean) => ({label, value: (line) => line[mean], cell: (line) => (line[count] > 0 ? describeTime(line[mean]) : ""), numeric: true});
  const bus = lines.some((line) => figure(line.bus_gbs_a) > 0 || figure(line.bus_gbs_b) > 0);
  const rate = (value) => (value > 0 ? describeRate(value) : "?");
  const columns = [
    {label: "Line", value: (line) => line.name, cell: (line) => h("span.line-name", line.name)},
    time("A", "count_a", "mean_a_ns"), time("B", "count_b", "mean_b_ns"),
    ...(bus ? [{label: "Busbw GB/s", value: (line) => line.bus_gbs_b ?? null, cell: (line) => (line.bus_gbs_a > 0 || line.bus_gbs_b > 0 ? rate(line.bus_gbs_a) + " to " + rate(line.bus_gbs_b) : ""), numeric: true}] : []),
    {label: "Change", value: (line) => line.change, cell: (line) => signed(line.change), numeric: true},
    {label: "Faster | slower", value: (line) => line.change, cell: (line) => changeBar(line, scale)},
    {label: "Interval", value: (line) => (isTested(line) ? line.interval[0] : null), cell: (line) => (isTested(line) && line.interval[0] !== null ? signed(line.interval[0]) + " .. " + signed(line.interval[1]) : ""), numeric: true},
    {label: "Adjusted p", value: (line) => (isTested(line) ? line.adjusted_p : null), cell: (line) => (isTested(line) ? describeChance(line.adjusted_p) : ""), numeric: true},
    {label: "Samples", value: (line) => line.count_a + line.count_b, cell: (line) => line.count_a + " / " + line.count_b, numeric: true},
    {label: "Result", value: (line) => ["slower", "faster"].indexOf(line.result) < 0 ? 2 : ["slower", "faster"].indexOf(line.result), cell: (line) => h("span.result." + (RESULTS[line.result] || "none"), line.result)},
  ].filter((column) => !["Interval", "Adjusted p"].includes(column.label) || lines.some(isTested));
  const present = [...new Set(lines.map((line) => line.result))];
  const table = dataTable(columns, lines, {
    name: noun, search: (line) => line.name + "\n" + line.result,
    choices: present.length > 1 ? present.sort((a, b) => Number(!RESULTS[a]) - Number(!RESULTS[b])).map((result) => ({label: result, test: (line) => line.result === result})) : [],
  });
  const said = scale === saidScale;
  saidScale = scale;
  return [said ? null : h("p.faint", "The bars end at a change of " + percent(scale) + "; larger ones are cut. The thin line is the " + Number((100 - 100 * figure(loaded.alpha)).toPrecision(3)) + " % interval of the change."), table.node];
}

const TONES = {slower: ".bound", faster: ".good", "B is faulty": ""};

/** @param {ComparisonPage} content */
function comparisonVerdict(content) {
  const node = h("section.verdict" + (TONES[content.verdict] ?? ".calm"),
    h("p.line", h("span.status", content.verdict)), h("h1", unbroken(capitalise(content.headline))),
    h("dl.facts", fact("A, before", h("code", content.a)), fact("B, after", h("code", content.b)),
      fact("Tested", count(content.tested, "measure") + ": " + content.slower + " slower, " + content.faster + " faster"),
      fact("Reported", "changes of " + percent(content.min_change) + " or more; " + percent(content.alpha) + " false alarms allowed")),
    content.stragglers.length > 0 ? h("div.now", h("h2", "Stragglers"), list("ul", content.stragglers.map(capitalise))) : null,
    content.faults.length > 0 ? h("div.now", h("h2", "What is wrong with B"), list("ul", content.faults)) : null);
  node.id = "verdict";
  return node;
}

// [part, A, B]: two bars on one scale.
/** @param {ComparisonPage} content */
function budgetsSection(content) {
  const sides = [1, 2].map((side) => content.budgets.map((part) => figure(part[side])));
  const whole = Math.max(...sides.map(sum));
  if (!(whole > 0)) return null;
  const labels = content.budgets.map((part) => part[0]);
  return section("budget", "Where the step time goes", "mean of all ranks and steps", partsLegend(labels, sides),
    h("div.panel", barLines(["A", "B"].map((name, i) => [name, sides[i], whole, describeTime(sum(sides[i]))])),
      plainTable(["Part", "A", "B", "Difference"], labels.map((label, i) => [h("span", h("i.dot.p" + i), label), describeTime(sides[0][i]), describeTime(sides[1][i]),
        (sides[1][i] > sides[0][i] ? "+" : "") + describeTime(sides[1][i] - sides[0][i])]), (i) => i > 0)));
}

/** @param {ComparisonPage} content */
function showComparison(content) {
  const cost = (line) => Math.abs(figure(line.mean_b_ns) - figure(line.mean_a_ns));
  const changed = content.lines.filter((line) => CHANGES.includes(line.result)).sort((a, b) => cost(b) - cost(a));
  const summaries = content.lines.filter((line) => line.summary);
  const rest = content.lines.filter((line) => !line.summary);
  const sections = [
    comparisonVerdict(content),
    summaries.length > 0 ? section("classes", "By size class", "geometric means", linesTable(summaries, "class")) : null,
    changed.length > 0 ? section("changed", "What changed", "the largest difference first", linesTable(changed, "measure")) : null,
    content.budgets.length > 0 ? budgetsSection(content) : null,
    section("lines", summaries.length > 0 ? "By size" : "All measures", String(rest.length), linesTable(rest, "measure")),
    content.remarks.length > 0 ? section("remarks", "Remarks", null, list("ul", content.remarks)) : null,
  ].filter(Boolean);
  showSections(sections, ["Made by ", h("code", "tacet compare"), ". Welch's t-test and a bootstrap interval; the p-values of all measures but the step time are corrected for their number."]);
}

/** @type {ComparisonPage} */
const loaded = readContent();
showComparison(loaded);
