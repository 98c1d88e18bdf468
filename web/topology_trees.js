// SPDX-License-Identifier: Apache-2.0
// @ts-check
// The tree of a channel between nodes: one box for each node, in levels below the root. Inside a node a tree is a chain.

// Parents between nodes: [node] -> parent node.
/** @param {ReportTopologyCommunicatorTree} tree @param {Map<number, number>} nodeOf */
function nodeTree(tree, nodeOf) {
  const parent = new Map(), seen = new Set();
  for (let i = 0; i + 1 < tree.parents.length; i += 2) {
    const own = nodeOf.get(tree.parents[i]), up = tree.parents[i + 1] < 0 ? undefined : nodeOf.get(tree.parents[i + 1]);
    if (own === undefined) continue;
    seen.add(own);
    if (up !== undefined && up !== own) { parent.set(own, up); seen.add(up); }
  }
  return {parent, seen};
}

// Leaves one after the other, everybody else above the middle of its children.
/** @param {Map<number, number>} parent @param {Set<number>} seen */
function layTree(parent, seen) {
  /** @type {Map<number, number[]>} */
  const children = new Map([...seen].map((node) => [node, []]));
  for (const [node, up] of parent) children.get(up)?.push(node);
  const places = new Map();
  let next = 0, deepest = 0;
  const walk = (node, depth, path) => {
    if (path.has(node) || places.has(node)) return;
    path.add(node);
    deepest = Math.max(deepest, depth);
    const own = (children.get(node) ?? []).sort((a, b) => a - b);
    own.forEach((child) => walk(child, depth + 1, path));
    const placed = own.filter((child) => places.has(child)).map((child) => places.get(child).x);
    places.set(node, {x: placed.length > 0 ? (Math.min(...placed) + Math.max(...placed)) / 2 : next++, depth});
    path.delete(node);
  };
  [...seen].filter((node) => !parent.has(node)).forEach((root) => walk(root, 0, new Set()));
  return {places, columns: Math.max(next, 1), deepest};
}

/** @param {ReportTopologyCommunicatorTree} tree @param {ReportTopology} topology @param {Map<number, number>} nodeOf */
function treePicture(tree, topology, nodeOf) {
  const {parent, seen} = nodeTree(tree, nodeOf);
  const {places, columns, deepest} = layTree(parent, seen);
  const small = columns > 12, step = small ? Math.max(7, 900 / columns) : 120, level = small ? 44 : 66, width = columns * step, height = (deepest + 1) * level + 10;
  const drawing = svg("svg", {viewBox: `-10 -6 ${width + 20} ${height}`, class: "tree", role: "img", "aria-label": "Tree of channel " + tree.channel + " over " + count(seen.size, "node")});
  drawing.style.maxWidth = Math.min(1100, width + 20) + "px";
  const centre = (node) => [places.get(node).x * step + step / 2, places.get(node).depth * level + 18];
  const lines = [], boxes = [];
  for (const [node, up] of parent) {
    if (!places.has(node) || !places.has(up)) continue;
    const [x, y] = centre(node), [px, py] = centre(up);
    lines.push(svg("path", {d: `M${px} ${py}C${px} ${(py + y) / 2} ${x} ${(py + y) / 2} ${x} ${y}`, class: "branch"}));
  }
  for (const node of places.keys()) {
    const [x, y] = centre(node), info = topology.nodes[node];
    const box = small ? svg("circle", {cx: x, cy: y, r: Math.min(5, step / 2.4), class: info.guilty ? "leaf guilty" : "leaf"})
      : chip(x - 50, y - 14, 100, 28, info.name, "", info.guilty ? "gpu guilty" : "gpu");
    boxes.push(hoverOn(box, () => [h("strong", info.name), h("div", describeRanks(info.ranks, 6)), h("div", parent.has(node) ? "below " + topology.nodes[parent.get(node)].name : "root")]));
  }
  append(drawing, [lines, boxes]);
  return drawing;
}

/** @param {ReportTopologyCommunicator} comm @param {ReportTopology} topology @param {Map<number, number>} nodeOf */
function treesPanel(comm, topology, nodeOf) {
  const trees = comm.trees.filter((tree) => tree.same_as === null);
  const panel = h("div.panel");
  const pick = (tree) => {
    const {seen} = nodeTree(tree, nodeOf);
    panel.replaceChildren(h("h3", "Trees by channel"), channelButtons(comm.trees, tree, pick),
      h("p.faint", (tree.root === null ? "" : "Root: rank " + tree.root + ". ") + "Inside a node the ranks form a chain."),
      seen.size > 1 ? treePicture(tree, topology, nodeOf) : "");
  };
  pick(trees[0]);
  return panel;
}
