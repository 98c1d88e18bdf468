// SPDX-License-Identifier: Apache-2.0
// @ts-check
// The nodes of a job. Nodes that are alike are drawn once: GPUs above, the PCIe switches they hang on, NICs below, CPUs at
// the bottom.

const plainNumber = (value) => (value >= 10 ? value.toFixed(0) : value.toFixed(1));

// [{first, nodes}]: classes of nodes in the order of their first one.
/** @param {ReportTopology} topology */
function nodeClasses(topology) {
  const classes = new Map();
  topology.nodes.forEach((node, index) => {
    if (!classes.has(node.like)) classes.set(node.like, {first: topology.nodes[node.like] || node, nodes: []});
    classes.get(node.like).nodes.push({...node, index});
  });
  return [...classes.values()];
}

function nodeNames(nodes) {
  if (nodes.length === 1) return nodes[0].name;
  if (nodes.length === 2) return nodes[0].name + " and " + nodes[1].name;
  return nodes[0].name + " to " + nodes[nodes.length - 1].name;
}

// Devices that hang on one switch share a column; columns of one CPU stand together.
function placesOf(node) {
  const places = new Map();
  const put = (device, kind) => {
    const key = device.cpu + "/" + (device.place >= 0 ? device.place : kind + device.index + device.bus);
    if (!places.has(key)) places.set(key, {cpu: device.cpu, place: device.place, gpus: [], nics: []});
    places.get(key)[kind].push(device);
  };
  (node.gpus || []).forEach((gpu) => put(gpu, "gpus"));
  (node.nics || []).forEach((nic) => put(nic, "nics"));
  return [...places.values()].sort((a, b) => a.cpu - b.cpu || a.place - b.place);
}

function chip(x, y, width, height, title, line, classes) {
  return svg("g", {class: classes},
    svg("rect", {x, y, width, height, rx: 7}),
    svg("text", {x: x + width / 2, y: y + (line ? height / 2 - 3 : height / 2 + 4), class: "name"}, title),
    line ? svg("text", {x: x + width / 2, y: y + height / 2 + 12, class: "fine"}, line) : null);
}

function hoverOn(node, lines) {
  node.addEventListener("mousemove", (event) => showHover(event.clientX, event.clientY, ...lines()));
  node.addEventListener("mouseleave", hideHover);
  return node;
}

function gpuLines(node, gpu) {
  const nics = (list) => list.map((index) => ((node.nics || []).find((nic) => nic.index === index) || {}).name || "NIC " + index).join(", ");
  return [h("strong", gpu.rank === null ? "GPU" : "Rank " + gpu.rank), h("div.mono", "bus " + gpu.bus),
    gpu.nvlink_gbs ? h("div", "NVLink " + plainNumber(gpu.nvlink_gbs) + " GB/s") : null,
    gpu.pci_gbs ? h("div", "PCIe " + plainNumber(gpu.pci_gbs) + " GB/s") : null,
    gpu.nearest ? h("div", gpu.nearest + " to " + nics(gpu.nics)) : null,
    gpu.uses.length > 0 ? h("div", "sends through " + nics(gpu.uses)) : null];
}

function nicLines(nic) {
  return [h("strong", nic.name || "NIC " + nic.index), nic.speed_gbs ? h("div", plainNumber(nic.speed_gbs) + " GB/s " + (nic.link || "")) : null,
    nic.nearest ? h("div", nic.nearest + " to its nearest GPU") : null,
    nic.gdr === null ? null : h("div", nic.gdr ? "GPUDirect RDMA" : "no GPUDirect RDMA"), h("div", count(nic.ring_sends, "hop") + " of rings leave through it")];
}

/** @param {Set<number>} guiltyRanks */
function nodePicture(node, guiltyRanks) {
  const places = placesOf(node);
  const width = 74, gap = 10, chipHeight = 44;
  const anyUse = (node.nics || []).some((nic) => nic.ring_sends > 0);
  const top = node.nvswitch ? 44 : 6;
  const hasNics = places.some((place) => place.nics.length > 0);
  const switchY = top + chipHeight + 26, nicY = switchY + 42, cpuY = (hasNics ? nicY + chipHeight : switchY + 16) + 22;
  const drawing = svg("svg", {role: "img", "aria-label": "GPUs and NICs of " + node.name});
  let x = 0;
  const lines = [], boxes = [], cpus = new Map();
  for (const place of places) {
    const columns = Math.max(place.gpus.length, place.nics.length, 1);
    const left = x, right = x + columns * (width + gap) - gap, middle = (left + right) / 2;
    const spread = (list, at) => list.map((device, i) => [device, middle + (i - (list.length - 1) / 2) * (width + gap) - width / 2, at]);
    for (const [gpu, gx, gy] of spread(place.gpus, top)) {
      if (node.nvswitch) lines.push(svg("path", {d: `M${gx + width / 2} ${gy}V34`, class: "nvlink"}));
      lines.push(svg("path", {d: `M${gx + width / 2} ${gy + chipHeight}V${switchY}`, class: "pcie"}));
      const label = gpu.rank === null ? "GPU" : node.alike > 1 ? "GPU " + (gpu.device === null ? "" : gpu.device) : "rank " + gpu.rank;
      boxes.push(hoverOn(chip(gx, gy, width, chipHeight, label, gpu.bus, guiltyRanks.has(gpu.rank) ? "gpu guilty" : "gpu"), () => gpuLines(node, gpu)));
    }
    if (place.place >= 0) boxes.push(svg("g", {class: "switch"}, svg("rect", {x: left, y: switchY, width: right - left, height: 16, rx: 5}),
      svg("text", {x: middle, y: switchY + 12, class: "fine"}, "PCIe switch")));
    for (const [nic, nx, ny] of spread(place.nics, nicY)) {
      lines.push(svg("path", {d: `M${nx + width / 2} ${place.place >= 0 ? switchY + 16 : switchY}V${ny}`, class: "pcie"}));
      const idle = anyUse && nic.ring_sends === 0;
      boxes.push(hoverOn(chip(nx, ny, width, chipHeight, nic.name || "NIC " + nic.index, nic.speed_gbs ? plainNumber(nic.speed_gbs) + " GB/s" : "", idle ? "nic idle" : "nic"), () => nicLines(nic)));
    }
    if (place.cpu >= 0) {
      lines.push(svg("path", {d: `M${middle} ${place.place >= 0 ? switchY + 16 : switchY}V${cpuY}`, class: "pcie faint"}));
      const span = cpus.get(place.cpu) || {left, right};
      cpus.set(place.cpu, {left: Math.min(span.left, left), right: Math.max(span.right, right)});
    }
    x = right + 18;
  }
  const whole = Math.max(x - 18, 120);
  [...cpus.values()].forEach((span, i) => boxes.push(svg("g", {class: "cpu"}, svg("rect", {x: span.left, y: cpuY, width: span.right - span.left, height: 24, rx: 6}),
    svg("text", {x: (span.left + span.right) / 2, y: cpuY + 16, class: "name"}, "CPU " + i))));
  if (node.nvswitch) boxes.push(svg("g", {class: "nvswitch"}, svg("rect", {x: 0, y: 6, width: whole, height: 28, rx: 8}), svg("text", {x: whole / 2, y: 25, class: "name"}, "NVSwitch")));
  const height = cpus.size > 0 ? cpuY + 30 : cpuY;
  drawing.setAttribute("viewBox", `-6 0 ${whole + 12} ${height}`);
  drawing.setAttribute("class", "machine");
  drawing.style.maxWidth = whole + 12 + "px";
  append(drawing, [lines, boxes]);
  return drawing;
}

/** @param {ReportTopology} topology @param {Set<number>} guiltyRanks */
function nodesSection(topology, guiltyRanks) {
  const panels = nodeClasses(topology).map(({first, nodes}) => {
    const gpus = first.gpus || [], nics = first.nics || [];
    const speeds = [...new Set(nics.map((nic) => nic.speed_gbs).filter(Boolean))];
    const facts = [gpus.length > 0 ? count(gpus.length, "GPU") : "", first.nvswitch ? "NVSwitch" : first.nvlink ? "NVLink" : "",
      nics.length > 0 ? count(nics.length, "NIC") + (speeds.length === 1 ? " of " + plainNumber(speeds[0]) + " GB/s" : "") : "", first.net || ""].filter(Boolean);
    const title = h("h3", nodeNames(nodes), nodes.length > 1 ? h("span.faint", " " + nodes.length.toLocaleString("en") + " identical nodes") : null);
    const panel = h(first.guilty ? "div.panel.guilty" : "div.panel", title, h("p.faint", facts.join(", ")),
      gpus.length > 0 ? nodePicture({...first, alike: nodes.length}, guiltyRanks) : null);
    return panel;
  });
  const classes = panels.length, total = topology.nodes.length;
  return section("nodes", "Nodes", total === classes ? String(total) : total.toLocaleString("en") + ", of " + count(classes, "kind"), h("div.machines", panels));
}
