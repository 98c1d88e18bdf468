// SPDX-License-Identifier: Apache-2.0
// @ts-check
// Bars and columns of times. Colours come from the fixed classes p0..p6; widths are numbers, never text of the report.

/** @param {number | null | undefined} value */
function describeTime(value) {
  if (!isFigure(value)) return "?";
  const ns = value, size = Math.abs(ns);
  if (size < 1e3) return ns.toFixed(0) + " ns";
  if (size < 1e6) return (ns / 1e3).toFixed(size < 1e4 ? 2 : 1) + " µs";
  if (size < 1e9) return (ns / 1e6).toFixed(size < 1e7 ? 2 : 1) + " ms";
  return size < 6e10 ? (ns / 1e9).toFixed(2) + " s" : (ns / 6e10).toFixed(1) + " min";
}

/** @param {number | null | undefined} share */
const percent = (share) => (isFigure(share) ? (100 * share).toFixed(1) + " %" : "?");
// As DescribeSmallShare: what is there is not shown as nothing.
/** @param {number | null | undefined} share */
const smallPercent = (share) => (isFigure(share) && share > 0 && share < 0.0005 ? "< 0.1 %" : percent(share));
/** @param {number | null | undefined} gbs */
const describeRate = (gbs) => (!isFigure(gbs) ? "?" : gbs > 0 && gbs < 0.001 ? "< 0.001" : Number(gbs.toPrecision(3)).toString());
/** @param {number | null | undefined} value @param {number} digits */
const fixed = (value, digits) => (isFigure(value) ? value.toFixed(digits) : "?");
const sum = (values) => values.reduce((total, value) => total + value, 0);
const nameRank = (rank) => (rank >= 0 ? String(rank) : "?");

// Bars of a table are read by their neighbours' numbers, so screen readers are not sent there.
function stackBar(values, whole, classes = values.map((_, i) => "p" + i)) {
  const bar = h("div.stack");
  values.forEach((value, i) => {
    const piece = h("i." + classes[i]);
    piece.style.flexGrow = whole > 0 ? Math.max(0, value) / whole : 0;
    bar.append(piece);
  });
  const rest = h("i.blank");  // growth factors below one leave room; this says so to the browser
  rest.style.flexGrow = whole > 0 ? Math.max(0, 1 - sum(values) / whole) : 1;
  bar.append(rest);
  bar.setAttribute("aria-hidden", "true");
  return bar;
}

// Name, bar, figure: rows of [name, values, whole, text].
function barLines(rows, classes) {
  return h("div.lines", rows.map(([name, values, whole, text]) =>
    h("div.row", h("span.name", name), stackBar(values, whole, classes), h("span.number", text))));
}

// Of the parts that occur at all; `samples` are lists of their values.
function partsLegend(labels, samples) {
  return h("ul.legend", labels.map((label, i) => (samples.some((values) => values[i] > 0) ? h("li", h("i.dot.p" + i), label) : null)));
}

// Short names stay on one line; long ones may break.
const word = (text) => (String(text).length <= 26 ? h("span.word", text) : text);

// 0, half and the whole of a round number at or above `most`.
function niceTop(most) {
  if (!(most > 0)) return 1;
  const base = 10 ** Math.floor(Math.log10(most));
  return base * ([1, 1.5, 2, 3, 4, 5, 6, 8, 10].find((step) => step * base >= most * 0.999) ?? 10);
}

// One path a part: a thousand columns of seven parts would be too many elements.
function columnPaths(columns, top) {
  const parts = columns.length > 0 ? columns[0].values.length : 0;
  /** @type {string[][]} */
  const paths = Array.from({length: parts}, () => []);
  const width = 1000 / columns.length, gap = width > 8 ? width * 0.16 : 0;
  columns.forEach((column, at) => {
    let base = 0;
    column.values.forEach((value, part) => {
      const size = Math.max(0, value) / top * 200;
      if (size > 0) paths[part].push(`M${(at * width + gap / 2).toFixed(2)} ${(200 - base).toFixed(2)}h${(width - gap).toFixed(2)}v${(-size).toFixed(2)}h${(gap - width).toFixed(2)}z`);
      base += size;
    });
  });
  return paths.map((path, part) => svg("path", {class: columns.part ?? "p" + part, d: path.join("")}));
}

// A thin line from the least to the most of a column that stands for several steps.
function extentPath(columns, top) {
  const width = 1000 / columns.length;
  const place = (value) => Math.max(0, 200 - value / top * 200).toFixed(2);
  const lines = columns.map((column, at) => (column.extent ? `M${((at + 0.5) * width).toFixed(2)} ${place(column.extent[0])}V${place(column.extent[1])}` : ""));
  return svg("path", {class: "extent", d: lines.join("")});
}

// columns: [{values: [ns...], extent: [least, most] or none, lines: () => nodes for the card, said: () => text}]
// options: {label, left, right: what stands under the ends, single: class of a one-part chart, pick(index)}
function columnChart(columns, options) {
  if (options.single) columns.part = options.single;
  const top = niceTop(columns.reduce((most, column) => Math.max(most, sum(column.values)), 0));
  const mark = svg("rect", {class: "mark", y: 0, height: 200, width: 1000 / columns.length});
  mark.style.display = "none";
  const picture = svg("svg", {viewBox: "0 0 1000 200", preserveAspectRatio: "none", role: "img", tabindex: "0",
    "aria-label": options.label + ". Arrow keys move from column to column" + (options.pick ? "; Enter finds it in the table." : ".")},
    svg("path", {class: "rule", d: "M0 100H1000"}), columnPaths(columns, top), extentPath(columns, top), mark);
  const readout = h("p.readout", "Point at a column, or move with the arrow keys.");
  readout.setAttribute("aria-live", "polite");
  let cursor = -1;
  function move(to) {
    cursor = Math.max(0, Math.min(columns.length - 1, to));
    mark.style.display = "";
    mark.setAttribute("x", cursor * 1000 / columns.length);
    readout.textContent = clean(columns[cursor].said());
  }
  picture.addEventListener("pointermove", (event) => {
    const box = picture.getBoundingClientRect();
    move(Math.floor((event.clientX - box.left) / box.width * columns.length));
    showHover(event.clientX, event.clientY, ...columns[cursor].lines());
  });
  picture.addEventListener("pointerleave", hideHover);
  picture.addEventListener("click", () => { if (options.pick && cursor >= 0) options.pick(cursor); });
  picture.addEventListener("keydown", (event) => {
    const step = {ArrowRight: 1, ArrowLeft: -1, PageDown: 16, PageUp: -16}[event.key];
    if (step) move(cursor + step);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(columns.length - 1);
    else if (event.key === "Enter" && options.pick && cursor >= 0) options.pick(cursor);
    else return;
    event.preventDefault();
  });
  return h("div", h("div.chart", h("div.scale", [1, 0.5, 0].map((share) => h("span", share === 0 ? "0" : describeTime(top * share)))), picture,
    h("div.across", h("span", options.left), h("span", options.right))), readout);
}

// Buttons of which one is on; `draw(choice)` fills the place below.
/** @template {{label: string}} T @param {T[]} choices @param {(choice: T) => Node} draw */
function chooser(choices, draw) {
  const place = h("div");
  const bar = h("div.choices");
  const buttons = choices.map((choice) => button(choice.label, () => pick(choice)));
  /** @param {T} choice */
  function pick(choice) {
    buttons.forEach((one, i) => one.setAttribute("aria-pressed", String(choices[i] === choice)));
    place.replaceChildren(draw(choice));
  }
  bar.append(...buttons);
  pick(choices[0]);
  return h("div", h("div.controls", bar), place);
}

// A table that neither sorts nor filters; rows of text and nodes. `numeric` tells which columns hold figures.
/** @param {string[]} heads @param {any[][]} rows @param {(index: number) => boolean} [numeric] */
function plainTable(heads, rows, numeric = () => true) {
  const cell = (tag, index, content) => {
    const node = h(tag + (numeric(index) ? ".number" : ""), content);
    node.dataset.label = heads[index];
    return node;
  };
  const table = h("div.plain", h("table", h("thead", h("tr", heads.map((head, i) => cell("th", i, head)))),
    h("tbody", rows.map((row) => h("tr", row.map((content, i) => cell("td", i, content)))))));
  table.tabIndex = 0; // it scrolls where it does not fit
  return table;
}
