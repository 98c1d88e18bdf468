// SPDX-License-Identifier: Apache-2.0
// @ts-check
// Drawings of measured bandwidth. Each is drawn for the width it has, so that its words stay readable on a phone.

const MEASURED = ["KiB", "MiB", "GiB", "TiB"];

// Sizes of messages are powers of two: "64 KiB", "1.5 MiB".
/** @param {number} bytes */
function describeSize(bytes) {
  let value = bytes, unit = "B";
  for (const larger of MEASURED) {
    if (value < 1024) break;
    value /= 1024;
    unit = larger;
  }
  return Number(value.toPrecision(4)).toString() + " " + unit;
}

const describeGbs = (gbs) => describeRate(gbs) + " GB/s";
const describeMicroseconds = (us) => describeTime(us * 1000);
/** @param {BandwidthPageSweepPoint} point */
const rateOf = (point) => Math.max(0, figure(point.bus_gbs) > 0 ? figure(point.bus_gbs) : figure(point.algorithm_gbs));

// Calls `draw(width)` now and whenever the width changes.
/** @param {string} label */
function drawnToFit(label, draw) {
  const frame = h("div.drawing");
  let last = 0;
  const renew = () => {
    const width = Math.floor(frame.clientWidth);
    if (width < 40 || width === last) return;
    last = width;
    const picture = draw(width);
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", label);
    frame.replaceChildren(picture);
  };
  new ResizeObserver(renew).observe(frame);
  return frame;
}

// Both axes are logarithms: sizes in powers of two, rates in powers of ten.
/** @param {BandwidthPageSweepPoint[]} points @param {BandwidthPageSweepModelPoint[]} model @param {number} width */
function sweepScale(points, model, width) {
  const rates = [...points.map(rateOf), ...model.map((point) => figure(point.predicted_gbs))].filter((rate) => rate > 0);
  const sizes = points.map((point) => point.bytes);
  const x0 = Math.log2(Math.min(...sizes)), x1 = Math.log2(Math.max(...sizes));
  const y0 = Math.log10(Math.min(...rates)) - 0.08, y1 = Math.log10(Math.max(...rates)) + 0.08;
  const height = width < 500 ? 220 : 300, left = 74, right = 16, top = 10, bottom = 30;
  return {x0, x1, y0, y1, width, height, left, right, top, bottom,
    x: (bytes) => left + (Math.log2(bytes) - x0) / (x1 - x0) * (width - left - right),
    y: (gbs) => top + (y1 - Math.log10(gbs)) / (y1 - y0) * (height - top - bottom)};
}

function sweepAxes(scale) {
  const parts = [];
  const decades = [];
  for (let y = Math.ceil(scale.y0); y <= scale.y1; ++y) decades.push(10 ** y);
  // Less than two powers of ten: the ends tell more.
  const marks = decades.length >= 2 ? decades : [10 ** scale.y0, 10 ** ((scale.y0 + scale.y1) / 2), 10 ** scale.y1].map((value) => Number(value.toPrecision(3)));
  for (const mark of marks) {
    const at = Math.min(scale.height - scale.bottom, Math.max(scale.top, scale.y(mark)));
    parts.push(svg("path", {class: "rule", d: `M${scale.left} ${at.toFixed(1)}H${scale.width - scale.right}`}),
      svg("text", {x: scale.left - 8, y: (at + 4).toFixed(1), "text-anchor": "end"}, describeGbs(mark)));
  }
  const room = Math.max(2, Math.floor((scale.width - scale.left) / 76)), step = Math.max(1, Math.ceil((scale.x1 - scale.x0) / room));
  for (let x = Math.ceil(scale.x0); x <= scale.x1 + 1e-9; x += step) {
    const at = scale.x(2 ** x);
    parts.push(svg("text", {x: at.toFixed(1), y: scale.height - 8, "text-anchor": at > scale.width - 40 ? "end" : at < scale.left + 12 ? "start" : "middle"}, describeSize(2 ** x)));
  }
  return parts;
}

const linePath = (places) => places.map(([x, y], i) => (i === 0 ? "M" : "L") + x.toFixed(1) + " " + y.toFixed(1)).join("");

// A rate over the algorithm bandwidth that the fit speaks of; the same for all sizes of a sweep.
/** @param {BandwidthPageSweepPoint[]} points */
function rateFactor(points) {
  const known = points.find((point) => figure(point.time_us) > 0 && rateOf(point) > 0);
  return known ? rateOf(known) * figure(known.time_us) * 1000 / known.bytes : 0;
}

/** @param {BandwidthPageSweep} sweep */
function fitPaths(sweep, scale, factor) {
  if (!sweep.fit || factor <= 0) return [];
  return sweep.fit.segments.map((segment) => {
    const places = [];
    for (let i = 0; i <= 24; ++i) {
      const bytes = segment.first_bytes * (segment.last_bytes / segment.first_bytes) ** (i / 24);
      const time = figure(segment.alpha_us) + figure(segment.beta_us_per_byte) * bytes;
      if (time > 0 && bytes > 0) places.push([scale.x(bytes), scale.y(bytes / time / 1000 * factor)]);
    }
    return svg("path", {class: "fit", d: linePath(places)});
  });
}

/** @param {BandwidthPageSweep} sweep */
function sweepChart(sweep) {
  const points = sweep.points.filter((point) => rateOf(point) > 0 && point.bytes > 0);
  const model = sweep.model ? sweep.model.points.filter((point) => figure(point.predicted_gbs) > 0) : [];
  if (new Set(points.map((point) => point.bytes)).size < 2) return null;
  const factor = rateFactor(points), fitted = Boolean(sweep.fit && factor > 0);
  const picture = drawnToFit("Bandwidth over size; the table below has the figures", (width) => {
    const scale = sweepScale(points, model, width);
    return svg("svg", {viewBox: `0 0 ${scale.width} ${scale.height}`, width: scale.width, height: scale.height}, sweepAxes(scale), fitPaths(sweep, scale, factor),
      model.length > 1 ? svg("path", {class: "model", d: linePath(model.map((point) => [scale.x(point.bytes), scale.y(point.predicted_gbs)]))}) : null,
      points.map((point) => svg("circle", {class: point.in_place ? "point in-place" : "point", r: width < 500 ? 3 : 3.5, cx: scale.x(point.bytes).toFixed(1), cy: scale.y(rateOf(point)).toFixed(1)})));
  });
  const both = new Set(points.map((point) => point.in_place)).size > 1;
  return h("div", h("ul.legend", h("li", h("i.dot.point"), both ? "measured, out of place" : "measured"), both ? h("li", h("i.dot.in-place"), "measured, in place") : null,
    fitted ? h("li", h("i.dash.fit"), "fit") : null, model.length > 1 ? h("li", h("i.dash.model"), "NCCL's model of this machine") : null), picture);
}

// From the line rate down to what was measured, each loss at its place.
/** @param {BandwidthPageSweepModelWaterfall | undefined} fall */
function waterfallPanel(fall) {
  if (!fall || fall.steps.length === 0 || !(figure(fall.line_gbs) > 0)) return null;
  const most = fall.steps.reduce((top, step) => Math.max(top, figure(step.left_gbs) + Math.max(0, figure(step.lost_gbs))), figure(fall.line_gbs));
  const rows = [["line rate", [fall.line_gbs, 0], most, describeGbs(fall.line_gbs)],
    ...fall.steps.map((step) => [step.taken_by ? step.step + ": " + step.taken_by : step.step, [figure(step.left_gbs), Math.max(0, figure(step.lost_gbs))], most,
      Math.abs(figure(step.lost_gbs)) < 0.005 ? "no loss" : (figure(step.lost_gbs) > 0 ? "-" : "+") + describeGbs(Math.abs(figure(step.lost_gbs)))])];
  return h("div", h("h3.between", "Where the bandwidth goes at " + describeSize(fall.bytes)), h("p.faint", "From " + fall.top + " to " + describeGbs(fall.measured_gbs) + " measured."),
    h("ul.legend", h("li", h("i.dot.p0"), "left"), h("li", h("i.dot.p2"), "lost at this step")),
    barLines(rows, ["p0", "p2"]), fall.missing ? h("p.faint", "Missing: " + fall.missing + ".") : null);
}

// A line of what was measured, interval by interval.
/** @param {(number | null)[]} values */
function streamChart(values) {
  const known = values.filter(isFigure);
  if (known.length < 2) return null;
  const top = niceTop(known.reduce((most, value) => Math.max(most, value), 0));
  return drawnToFit("Bandwidth over time, " + count(values.length, "interval"), (width) => {
    const height = 120, left = 74, right = 12, bottom = 8, low = height - bottom;
    const x = (i) => left + i / (values.length - 1) * (width - left - right), y = (value) => 8 + (1 - value / top) * (low - 8);
    return svg("svg", {viewBox: `0 0 ${width} ${height}`, width, height},
      [0, 0.5, 1].map((share) => [svg("path", {class: "rule", d: `M${left} ${y(top * share)}H${width - right}`}), svg("text", {x: left - 8, y: y(top * share) + 4, "text-anchor": "end"}, describeGbs(top * share))]),
      svg("path", {class: "fit", d: linePath(values.map((value, i) => [x(i), y(figure(value))]))}));
  });
}
