// SPDX-License-Identifier: Apache-2.0
// @ts-check
// Who waits for whom. The guilty stand in the middle, those who wait for them around, those who wait for these further out.
// Up to MOST_NODES ranks one circle each; beyond, ranks that wait alike share one.

const MOST_NODES = 64;
const MOST_HUES = 5;  // operations with a colour of their own; the rest share the last

// How many waits lie between a rank and the guilty; those not connected come last.
/** @param {ReportWait[]} waits @param {number[]} guilty @param {Set<number>} ranks */
function waitDepths(waits, guilty, ranks) {
  const waiters = new Map();
  for (const wait of waits) {
    if (!waiters.has(wait.to)) waiters.set(wait.to, []);
    waiters.get(wait.to).push(wait.from);
  }
  const depths = new Map();
  let ring = guilty.filter((rank) => ranks.has(rank)), depth = 0;
  if (ring.length === 0) {  // nobody is blamed: those who wait for nobody are the middle
    const waiting = new Set(waits.map((wait) => wait.from));
    ring = [...ranks].filter((rank) => !waiting.has(rank));
  }
  for (; ring.length > 0; ++depth) {
    const next = [];
    for (const rank of ring) {
      if (depths.has(rank)) continue;
      depths.set(rank, depth);
      next.push(...(waiters.get(rank) || []));
    }
    ring = next.filter((rank) => !depths.has(rank));
  }
  for (const rank of ranks) if (!depths.has(rank)) depths.set(rank, Math.max(depth, 1));
  return depths;
}

// Nodes as groups of ranks: every rank its own, or, when these are too many, ranks alike in ever fewer ways.
/** @param {Report} report @param {Set<number>} ranks */
function waitNodes(report, ranks, depths) {
  const rows = new Map(report.ranks.map((row) => [row.rank, row]));
  const out = new Map();
  for (const wait of report.waits) {
    if (!out.has(wait.from)) out.set(wait.from, []);
    out.get(wait.from).push(wait);
  }
  const edges = (rank) => (out.get(rank) || []);
  const role = (rank) => roleOf(rows.get(rank));
  const keys = [
    (rank) => rank,
    (rank) => role(rank) + "|" + depths.get(rank) + "|" + edges(rank).map((e) => e.to + " " + e.where).sort().join("|"),
    (rank) => role(rank) + "|" + depths.get(rank) + "|" + edges(rank).map((e) => e.where).sort().join("|"),
    (rank) => role(rank) + "|" + depths.get(rank),
  ];
  for (const key of keys) {
    const nodes = new Map();
    for (const rank of ranks) {
      const name = key(rank);
      if (!nodes.has(name)) nodes.set(name, {ranks: [], role: role(rank), depth: depths.get(rank), row: rows.get(rank)});
      nodes.get(name).ranks.push(rank);
      if (nodes.size > MOST_NODES && key !== keys[keys.length - 1]) break;
    }
    if (nodes.size <= MOST_NODES || key === keys[keys.length - 1]) return [...nodes.values()].slice(0, MOST_NODES);
  }
  return [];
}

/** @param {ReportWait[]} waits */
function waitEdges(waits, nodes) {
  const nodeOf = new Map();
  for (const node of nodes) for (const rank of node.ranks) nodeOf.set(rank, node);
  const edges = new Map(), ids = new Map(nodes.map((node, index) => [node, index]));
  for (const wait of waits) {
    const from = nodeOf.get(wait.from), to = nodeOf.get(wait.to);
    if (!from || !to || from === to) continue;
    const key = ids.get(from) + ">" + ids.get(to) + ">" + wait.where;
    if (!edges.has(key)) edges.set(key, {from, to, where: wait.where, waits: 0});
    edges.get(key).waits++;
  }
  return [...edges.values()];
}

// Pushes neighbours on a ring apart until each has room, and no further.
function spreadAngles(ring, room) {
  const least = Math.min(room, (2 * Math.PI) / ring.length);
  for (let round = 0; round < 200; ++round) {
    let moved = false;
    ring.forEach((node, i) => {
      const last = i + 1 === ring.length, next = ring[last ? 0 : i + 1];
      const short = least - (next.angle + (last ? 2 * Math.PI : 0) - node.angle);
      if (next === node || short < 1e-3) return;
      node.angle -= short / 2;
      next.angle += short / 2;
      moved = true;
    });
    if (!moved) return;
  }
}

// Rings around the middle. Each ring is turned so that its ranks stand near those they wait for.
function placeNodes(nodes, edges) {
  const radius = nodes.length > 24 ? 13 : nodes.length > 12 ? 16 : 20;
  for (const node of nodes) node.radius = node.ranks.length > 1 ? radius + 4 + 3 * Math.log10(node.ranks.length) : radius;
  const target = new Map(edges.map((edge) => [edge.from, edge.to]));
  const depths = [...new Set(nodes.map((node) => node.depth))].sort((a, b) => a - b);
  let reach = 0;
  for (const node of nodes) node.outermost = node.depth === depths[depths.length - 1];
  depths.forEach((depth, level) => {
    const ring = nodes.filter((node) => node.depth === depth);
    const wide = Math.max(...ring.map((node) => node.radius));
    if (level === 0 && ring.length === 1) {
      Object.assign(ring[0], {x: 0, y: 0, angle: -Math.PI / 2});
      reach = wide;
      return;
    }
    // A crowded ring becomes two, the ranks by turns on the inner and the outer one.
    const rows = ring.length > 24 ? 2 : 1;
    const shared = ring.some((node) => node.ranks.length > 1);  // a label stands below
    const spacing = 2 * wide + (nodes.length > 24 ? 8 : shared ? 40 : 18);
    const around = Math.max((ring.length * spacing) / rows / (2 * Math.PI), reach + wide + 46);
    const wish = (node) => (target.get(node) && target.get(node).angle !== undefined ? target.get(node).angle : 0);
    if (level > 0) ring.sort((a, b) => wish(a) - wish(b) || a.ranks[0] - b.ranks[0]);
    const step = (2 * Math.PI) / (Math.ceil(ring.length / rows) * rows);
    ring.forEach((node, i) => { node.angle = level > 1 ? wish(node) : i * step - Math.PI / 2; });
    if (level > 1) spreadAngles(ring, spacing / rows / around);
    ring.forEach((node, i) => {
      const far = around + (i % rows) * (2 * wide + 6);
      node.x = far * Math.cos(node.angle);
      node.y = far * Math.sin(node.angle);
    });
    reach = around + (rows - 1) * (2 * wide + 6) + wide;
  });
  // What the picture must show, with a little air: left, top, width, height.
  const air = nodes.some((node) => node.ranks.length > 1) ? 34 : 10;
  const left = Math.min(...nodes.map((node) => node.x - node.radius)) - air, right = Math.max(...nodes.map((node) => node.x + node.radius)) + air;
  const top = Math.min(...nodes.map((node) => node.y - node.radius)) - air, bottom = Math.max(...nodes.map((node) => node.y + node.radius)) + air;
  return [left, top, right - left, bottom - top].map(Math.round);
}

// A slightly bent line from rim to rim, so that two ranks that wait for each other show two lines.
function edgePath(edge) {
  const {from, to} = edge;
  const dx = to.x - from.x, dy = to.y - from.y, length = Math.hypot(dx, dy) || 1;
  const bend = Math.min(12, length * 0.06);
  const middle = {x: (from.x + to.x) / 2 - (dy / length) * bend, y: (from.y + to.y) / 2 + (dx / length) * bend};
  const rim = (node, away) => {
    const ax = middle.x - node.x, ay = middle.y - node.y, far = Math.hypot(ax, ay) || 1;
    return (node.x + (ax / far) * (node.radius + away)).toFixed(1) + " " + (node.y + (ay / far) * (node.radius + away)).toFixed(1);
  };
  return "M" + rim(from, 2) + " Q" + middle.x.toFixed(1) + " " + middle.y.toFixed(1) + " " + rim(to, 7);
}

function nodeName(node) { return describeRanks(node.ranks, 4); }

// "ranks 4, 6-7 wait for rank 5", once for each operation and target, the busiest first.
/** @param {ReportWait[]} waits */
function waitSummary(waits) {
  const places = new Map();
  for (const wait of waits) {
    if (!places.has(wait.where)) places.set(wait.where, {where: wait.where, waits: 0, targets: new Map()});
    const place = places.get(wait.where);
    place.waits++;
    if (!place.targets.has(wait.to)) place.targets.set(wait.to, []);
    place.targets.get(wait.to).push(wait.from);
  }
  return [...places.values()].sort((a, b) => b.waits - a.waits);
}

function waitLegend(summary, highlight) {
  const list = h("ul.waitlist");
  summary.slice(0, 8).forEach((place, index) => {
    const lines = [...place.targets].slice(0, 4).map(([to, from]) => h("div.faint", describeRanks(from, 6), from.length > 1 ? " wait for " : " waits for ", "rank " + to));
    if (place.targets.size > 4) lines.push(h("div.faint", "and for " + (place.targets.size - 4) + " more"));
    const item = h("li", h("i.line.hue" + Math.min(index, MOST_HUES - 1)), h("div", h("div", place.where || "(no operation)"), lines));
    item.addEventListener("mouseenter", () => highlight((edge) => edge.where === place.where));
    item.addEventListener("mouseleave", () => highlight(null));
    list.append(item);
  });
  if (summary.length > 8) list.append(h("li", h("i"), h("div.faint", "and " + count(summary.length - 8, "other operation"))));
  return list;
}

function drawNode(node, edges, highlight) {
  const many = node.ranks.length > 1;
  const targets = edges.filter((edge) => edge.from === node);
  const words = targets.map((edge) => (many ? "wait for " : "waits for ") + nodeName(edge.to) + (edge.where ? " in " + edge.where : ""));
  const mark = svg("g", {class: "node " + node.role, tabindex: 0, role: "img", transform: "translate(" + node.x.toFixed(1) + " " + node.y.toFixed(1) + ")"},
    svg("circle", {r: node.radius.toFixed(1)}),
    svg("text", {"text-anchor": "middle", dy: ".36em", "font-size": Math.max(10, Math.min(15, node.radius * 0.8)).toFixed(1)},
      many ? node.ranks.length.toLocaleString("en") : String(node.ranks[0])));
  if (many && node.outermost) mark.append(svg("text", {class: "under", "text-anchor": "middle", y: (node.y < -1 ? -node.radius - 7 : node.radius + 15).toFixed(1), "font-size": 11}, foldRanks(node.ranks, 2)));
  mark.setAttribute("aria-label", clean(capitalise(nodeName(node)) + ", " + ROLE_WORDS[node.role] + (words.length > 0 ? ": " + words.slice(0, 4).join("; ") : "")));
  const tell = () => {
    highlight((edge) => edge.from === node || edge.to === node);
    const box = mark.getBoundingClientRect();
    const waits = words.slice(0, 4).map((text) => h("div", text));
    const head = many ? [h("strong", nodeName(node)), h("div", h("i.dot." + node.role), ROLE_WORDS[node.role])] : rankLines(node.ranks[0], node.row);
    showHover(box.right, box.bottom - 10, ...head, ...waits);
  };
  const leave = () => { highlight(null); hideHover(); };
  for (const name of ["mouseenter", "focus"]) mark.addEventListener(name, tell);
  for (const name of ["mouseleave", "blur"]) mark.addEventListener(name, leave);
  return mark;
}

function drawEdge(edge, hue, crowded) {
  const width = 1.6 + 0.4 * Math.log10(edge.waits);
  const line = svg("path", {class: "edge hue" + hue, d: edgePath(edge), "stroke-width": width.toFixed(1)});
  if (!crowded) line.setAttribute("marker-end", "url(#head" + hue + ")");
  line.addEventListener("mousemove", (event) => showHover(event.clientX, event.clientY,
    h("strong", nodeName(edge.from) + (edge.from.ranks.length > 1 ? " wait for " : " waits for ") + nodeName(edge.to)),
    h("div", edge.where), edge.waits > 1 && h("div.faint", count(edge.waits, "wait"))));
  line.addEventListener("mouseleave", hideHover);
  return line;
}

/** @param {Report} report */
function waitGraph(report) {
  const ranks = new Set();
  for (const wait of report.waits) ranks.add(wait.from).add(wait.to);
  const nodes = waitNodes(report, ranks, waitDepths(report.waits, report.verdict.ranks, ranks));
  const edges = waitEdges(report.waits, nodes);
  const view = placeNodes(nodes, edges);
  const summary = waitSummary(report.waits);
  const hues = new Map(summary.map((place, index) => [place.where, Math.min(index, MOST_HUES - 1)]));

  const heads = svg("defs", {});
  for (let hue = 0; hue < MOST_HUES; ++hue)
    heads.append(svg("marker", {id: "head" + hue, viewBox: "0 0 8 8", refX: 6, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto"},
      svg("path", {class: "head hue" + hue, d: "M0 0.6L7.4 4L0 7.4z"})));
  const picture = svg("svg", {class: "graph", viewBox: view.join(" "), role: "group"}, heads);
  picture.setAttribute("aria-label", "Diagram of who waits for whom; the text beside it says the same");
  picture.style.maxWidth = Math.round(view[2] * 1.3) + "px";
  const arrivals = new Map();  // dozens of arrow heads on one circle would be a blot
  for (const edge of edges) arrivals.set(edge.to, (arrivals.get(edge.to) || 0) + 1);
  const lines = edges.map((edge) => [edge, drawEdge(edge, hues.get(edge.where), arrivals.get(edge.to) > 24)]);
  const highlight = (wanted) => {
    for (const [edge, line] of lines) {
      line.classList.toggle("bright", wanted !== null && wanted(edge));
      line.classList.toggle("pale", wanted !== null && !wanted(edge));
    }
  };
  for (const [, line] of lines) picture.append(line);
  for (const node of nodes) picture.append(drawNode(node, edges, highlight));
  return {node: h("div.graphbox", picture, waitLegend(summary, highlight)), dense: nodes.length > 24};
}
