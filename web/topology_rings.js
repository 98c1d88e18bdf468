// SPDX-License-Identifier: Apache-2.0
// @ts-check
// One ring at a time, drawn as a ring: an arc for each node, a dot for each GPU in the order in which data passes them. Long
// runs of nodes that are alike become one arc.

const WAY_KINDS = ["p2p", "shm", "gdr", "net", "socket", "collnet", "unknown"];
const WAY_WORDS = {p2p: "P2P (NVLink or PCIe)", shm: "shared memory", gdr: "network with GPUDirect RDMA", net: "network through host memory",
  socket: "TCP sockets", collnet: "CollNet", unknown: "unknown"};

function wayKind(transport) {
  if (!transport) return "unknown";
  if (transport.kind === "net") return transport.text.includes("/GDRDMA") ? "gdr" : transport.text.includes("/Socket") ? "socket" : "net";
  return oneOf(WAY_KINDS, transport.kind, "unknown");
}

// Runs of ranks of one node: [{node, places: [index in the ring...]}].
/** @param {Required<ReportTopologyCommunicatorRing>} ring @param {Map<number, number>} nodeOf */
function ringRuns(ring, nodeOf) {
  const runs = [];
  ring.order.forEach((rank, place) => {
    const node = nodeOf.get(rank), last = runs[runs.length - 1];
    if (last && last.node === node) last.places.push(place);
    else runs.push({node, places: [place]});
  });
  const first = runs[0], last = runs[runs.length - 1];  // the list may begin in the middle of a node
  if (runs.length > 1 && first.node === last.node) {
    first.places.unshift(...last.places);
    runs.pop();
  }
  return runs;
}

// Runs that differ only in the node's name become one arc, but for the first two and the last of them.
/** @param {Required<ReportTopologyCommunicatorRing>} ring @param {ReportTopology} topology @param {Map<number, number>} rankPlace */
function foldRuns(runs, ring, topology, rankPlace) {
  if (runs.length <= 14) return runs;
  const slow = new Set(ring.slow);
  const sign = (run) => run.node === undefined ? null :
    topology.nodes[run.node].like + "|" + run.places.map((place) => rankPlace.get(ring.order[place]) + ":" + ring.ways[place] + (slow.has(place) ? "!" : "")).join(",");
  const folded = [];
  for (let i = 0; i < runs.length; ) {
    const own = sign(runs[i]);
    let end = i;
    while (own !== null && end + 1 < runs.length && sign(runs[end + 1]) === own) ++end;
    if (end - i >= 5) {
      folded.push(runs[i], runs[i + 1], {many: runs.slice(i + 2, end)}, runs[end]);
    } else {
      folded.push(...runs.slice(i, end + 1));
    }
    i = end + 1;
  }
  return folded;
}

const polar = (angle, radius) => [Math.sin(angle) * radius, -Math.cos(angle) * radius];
const point = (angle, radius) => polar(angle, radius).map((value) => value.toFixed(1)).join(" ");

/** @param {Required<ReportTopologyCommunicatorRing>} ring @param {ReportTopology} topology */
function hopLines(ring, place, topology) {
  const next = ring.order[(place + 1) % ring.order.length], way = topology.transports[ring.ways[place] ?? -1];
  return [h("strong", "Rank " + ring.order[place] + " to rank " + next), h("div", way ? way.text : "transport unknown"), ring.slow.includes(place) ? h("div.bad", "slower than it could be") : null];
}

/** @param {Required<ReportTopologyCommunicatorRing>} ring @param {ReportTopology} topology @param {Map<number, number>} nodeOf @param {Map<number, number>} rankPlace @param {Set<number>} guiltyRanks */
function ringPicture(ring, topology, nodeOf, rankPlace, guiltyRanks, unfolded, unfold) {
  const all = ringRuns(ring, nodeOf);
  const runs = unfolded ? all : foldRuns(all, ring, topology, rankPlace);
  const slow = new Set(ring.slow);
  const weight = (run) => (run.many ? 6 : run.places.length + 1.2);
  const total = runs.reduce((sum, run) => sum + weight(run), 0);
  const radius = 210, drawing = svg("svg", {viewBox: "-380 -285 760 570", class: "ring", role: "img",
    "aria-label": "Ring of channel " + ring.channel + " through " + count(ring.order.length, "rank") + " on " + count(all.length, "node")});
  const angles = new Map(), arcs = [], dots = [], hops = [], labels = [];
  let angle = 0;
  for (const run of runs) {
    const width = (weight(run) / total) * 2 * Math.PI, from = angle + width * 0.06, to = angle + width * 0.94, middle = (from + to) / 2;
    const large = to - from > Math.PI ? 1 : 0, solo = runs.length === 1;
    const node = run.many ? topology.nodes[run.many[0].node] : topology.nodes[run.node];
    const sweep = solo ? `M${point(0, radius + 24)}A${radius + 24} ${radius + 24} 0 1 1 ${point(Math.PI, radius + 24)}A${radius + 24} ${radius + 24} 0 1 1 ${point(0, radius + 24)}`
      : `M${point(from, radius + 24)}A${radius + 24} ${radius + 24} 0 ${large} 1 ${point(to, radius + 24)}`;
    arcs.push(svg("path", {d: sweep, class: run.many ? "arc folded" : node && node.guilty ? "arc guilty" : "arc"}));
    if (runs.length <= 40) {
      const [lx, ly] = polar(middle, radius + 42), anchor = Math.abs(lx) < 40 ? "middle" : lx > 0 ? "start" : "end";
      const text = run.many ? run.many.length.toLocaleString("en") + " identical nodes" : node ? node.name : "unknown";
      labels.push(svg("text", {x: lx.toFixed(1), y: (ly + 4).toFixed(1), "text-anchor": anchor, class: run.many ? "label folded" : "label"}, text));
    }
    if (run.many) {
      const arc = svg("path", {d: `M${point(from, radius)}A${radius} ${radius} 0 ${large} 1 ${point(to, radius)}`, class: "many"});
      arc.addEventListener("click", unfold);
      hops.push(hoverOn(arc, () => [h("strong", nodeNames(run.many.map((one) => topology.nodes[one.node]))), h("div", "connected like their neighbors; click to draw all")]));
      // The hops inside the fold are those of its dotted arc: only the way into it and the way out of it are drawn.
      const last = run.many[run.many.length - 1].places;
      angles.set(run.many[0].places[0], from);
      angles.set(last[last.length - 1], to);
    } else {
      run.places.forEach((place, i) => {
        const at = from + ((i + 0.5) / run.places.length) * (to - from);
        angles.set(place, at);
        const [x, y] = polar(at, radius), rank = ring.order[place], size = Math.min(11, (radius * (to - from)) / run.places.length / 2.3);
        const dot = svg("g", {class: guiltyRanks.has(rank) ? "dot-gpu guilty" : "dot-gpu"}, svg("circle", {cx: x.toFixed(1), cy: y.toFixed(1), r: Math.max(1.2, size).toFixed(1)}),
          size > 8 ? svg("text", {x: x.toFixed(1), y: (y + 3.2).toFixed(1), class: rank > 999 ? "long" : ""}, String(rank)) : null);
        dots.push(hoverOn(dot, () => [h("strong", "Rank " + rank), node ? h("div", node.name) : null, ...hopLines(ring, place, topology).slice(0, 3)]));
      });
    }
    angle += width;
  }
  ring.order.forEach((rank, place) => {
    const next = (place + 1) % ring.order.length;
    if (!angles.has(place) || !angles.has(next)) return;
    const a = angles.get(place), b = angles.get(next);
    if (Math.abs(a - b) < 1e-9) return;
    const crosses = nodeOf.get(rank) !== nodeOf.get(ring.order[next]);
    const kind = wayKind(topology.transports[ring.ways[place] ?? -1]);
    // Inside a node along the ring, between nodes with a bow inwards.
    const inner = crosses ? radius - 34 : radius - 10;
    let turn = b - a;
    if (turn < -Math.PI) turn += 2 * Math.PI;
    if (turn > Math.PI) turn -= 2 * Math.PI;
    const path = svg("path", {d: `M${point(a, radius)}Q${point(a + turn / 2, inner)} ${point(b, radius)}`, class: "hop " + kind + (slow.has(place) ? " slow" : "") + (crosses ? " between" : "")});
    hops.push(hoverOn(path, () => hopLines(ring, place, topology)));
  });
  const centre = svg("g", {class: "centre"}, svg("text", {y: -6, class: "big"}, "channel " + ring.channel),
    svg("text", {y: 18}, count(ring.order.length, "rank") + " on " + count(new Set(all.map((run) => run.node)).size, "node")),
    slow.size > 0 ? svg("text", {y: 40, class: "bad"}, count(slow.size, "slow hop")) : null);
  append(drawing, [arcs, hops, dots, labels, centre]);
  return drawing;
}

/** @param {Required<ReportTopologyCommunicatorRing>} ring @param {ReportTopology} topology */
function waysLegend(ring, topology) {
  const counts = {};
  for (const way of ring.ways) { const kind = wayKind(topology.transports[way ?? -1]); counts[kind] = (counts[kind] || 0) + 1; }
  return h("ul.legend", WAY_KINDS.filter((kind) => counts[kind]).map((kind) => h("li", h("i.dot.way." + kind), WAY_WORDS[kind] + " ", h("b", counts[kind].toLocaleString("en")))),
    ring.slow.length > 0 ? h("li", h("i.dot.way.slow"), "slower than it could be ", h("b", ring.slow.length.toLocaleString("en"))) : null);
}

function channelButtons(items, chosen, pick) {
  const box = h("div.choices");
  for (const item of items.filter((one) => one.same_as === null)) {
    const like = items.filter((one) => one === item || one.same_as === item.channel).map((one) => one.channel);
    const marked = (item.slow || []).length > 0 || (item.breaks || []).length > 0;
    const one = button(foldRanks(like, 6), () => pick(item));
    one.className = item === chosen ? "on" : "";
    one.setAttribute("aria-pressed", item === chosen ? "true" : "false");
    if (marked) one.append(h("i.dot.way.slow"));
    box.append(one);
  }
  return box;
}

/** @param {Required<ReportTopologyCommunicatorRing>} ring */
function brokenRing(ring) {
  return h("div", h("p", count(ring.hops.length / 2, "hop") + " of this ring " + (ring.hops.length === 2 ? "is" : "are") + " known; the rest is not in the logs."), list("ul", ring.breaks));
}

/** @param {ReportTopologyCommunicator} comm @param {ReportTopology} topology @param {Map<number, number>} nodeOf @param {Map<number, number>} rankPlace @param {Set<number>} guiltyRanks */
function ringsPanel(comm, topology, nodeOf, rankPlace, guiltyRanks) {
  const rings = comm.rings.filter((ring) => ring.same_as === null);
  const panel = h("div.panel");
  const pick = (ring, unfolded = false) => {
    panel.replaceChildren(h("h3", "Rings by channel"), channelButtons(comm.rings, ring, (other) => pick(other)), ring.whole ? waysLegend(ring, topology) : "",
      ring.whole && ring.order.length > 0 ? ringPicture(ring, topology, nodeOf, rankPlace, guiltyRanks, unfolded, () => pick(ring, true)) : brokenRing(ring));
  };
  pick(rings.find((ring) => (ring.breaks ?? []).length > 0 || (ring.slow ?? []).length > 0) || rings[0]);
  return panel;
}
