// SPDX-License-Identifier: Apache-2.0
// @ts-check
// The page of `tacet topology`: verdict and findings, then nodes, rings, trees, transports and the NIC of each GPU.

/** @param {ReportTopologyCommunicator} comm */
function graphTable(comm) {
  return dataTable([
    {label: "Graph", value: (row) => row.name},
    {label: "Channels", value: (row) => row.channels, numeric: true},
    {label: "Inside nodes", value: (row) => row.intra_gbs, cell: (row) => plainNumber(row.intra_gbs) + " GB/s, " + (row.type_intra || "?"), numeric: true},
    {label: "Between nodes", value: (row) => row.inter_gbs, cell: (row) => plainNumber(row.inter_gbs) + " GB/s, " + (row.type_inter || "?"), numeric: true},
    {label: "NICs", value: (row) => row.cross_nic, cell: (row) => (row.cross_nic > 0 ? "crossed on purpose" : "rails kept")},
    {label: "Lowered by", value: (row) => row.lowered_by || "", cell: (row) => (row.lowered_by ? h("span.bad", row.lowered_by) : "")},
  ], comm.graphs, {name: "graph", search: (row) => row.name + " " + row.lowered_by}).node;
}

/** @param {ReportTopologyCommunicator} comm @param {ReportTopology} topology */
function waysTable(comm, topology) {
  const total = comm.ways.reduce((sum, way) => sum + figure(way.inside) + figure(way.between), 0);
  return dataTable([
    {label: "Transport", value: (row) => topology.transports[row.transport].text,
      cell: (row) => h("span", h("i.dot.way." + wayKind(topology.transports[row.transport])), topology.transports[row.transport].text)},
    {label: "Inside nodes", value: (row) => row.inside, cell: (row) => row.inside.toLocaleString("en"), numeric: true},
    {label: "Between nodes", value: (row) => row.between, cell: (row) => row.between.toLocaleString("en"), numeric: true},
    {label: "Share", value: (row) => row.inside + row.between, cell: (row) => describeShare(row.inside + row.between, total), numeric: true},
  ], comm.ways, {name: "transport", search: (row) => topology.transports[row.transport].text}).node;
}

/** @param {ReportTopologyCommunicator} comm */
function commTitle(comm) {
  const parts = [];
  if (comm.ranks !== null) parts.push(count(comm.ranks, "rank"));
  if (comm.nodes !== null) parts.push("on " + count(comm.nodes, "node"));
  return comm.label + (parts.length > 0 ? ": " + parts.join(" ") : "");
}

/** @param {ReportTopologyCommunicator} comm @param {ReportTopology} topology @param {Map<number, number>} nodeOf @param {Map<number, number>} rankPlace @param {Set<number>} guiltyRanks */
function commBody(comm, topology, nodeOf, rankPlace, guiltyRanks) {
  const facts = h("dl.facts", fact("Channels", comm.channels === null ? "" : String(comm.channels)),
    fact("NVLS channels", comm.nvls_channels === null ? "" : String(comm.nvls_channels)), fact("Connected", comm.connected || ""),
    comm.ranks !== null && comm.seen < comm.ranks ? fact("Logs here", comm.seen.toLocaleString("en") + " of " + count(comm.ranks, "rank")) : null, comm.mnnvl ? fact("NVLink", "several nodes share one fabric") : null);
  return h("div.comm", h("div.panel", h("h3", commTitle(comm)), facts, comm.graphs.length > 0 ? graphTable(comm) : null),
    comm.rings.length > 0 ? ringsPanel(comm, topology, nodeOf, rankPlace, guiltyRanks) : null,
    comm.trees.length > 0 ? treesPanel(comm, topology, nodeOf) : null,
    comm.ways.length > 0 ? h("div.panel", h("h3", "Hops of rings and trees by transport"), waysTable(comm, topology)) : null);
}

/** @param {ReportTopology} topology @param {Map<number, number>} nodeOf @param {Map<number, number>} rankPlace @param {Set<number>} guiltyRanks */
function commsSection(topology, nodeOf, rankPlace, guiltyRanks) {
  const comms = topology.communicators, body = h("div");
  const show = (comm) => body.replaceChildren(commBody(comm, topology, nodeOf, rankPlace, guiltyRanks));
  let chooser = null;
  if (comms.length > 1) {
    const box = h("select");
    box.setAttribute("aria-label", "Communicator");
    comms.slice(0, 500).forEach((comm, i) => { const option = h("option", commTitle(comm)); option.value = String(i); box.append(option); });
    box.addEventListener("change", () => show(comms[Number(box.value)]));
    chooser = h("p.chooser", box);
  }
  show(comms[0]);
  return section("rings", "Communicators", count(comms.length, "communicator"), chooser, body);
}

/** @param {ReportTopology} topology */
function gpusSection(topology) {
  const rows = [];
  const names = (node, nics) => nics.map((index) => ((node.nics || []).find((nic) => nic.index === index) || {}).name || "NIC " + index);
  const few = (list) => (list.length > 3 ? list[0] + ", " + list[1] + " and " + (list.length - 2) + " more" : list.join(", "));
  for (const {first, nodes} of nodeClasses(topology))
    for (const node of nodes)
      (first.gpus || []).forEach((gpu, i) => rows.push({rank: node.gpu_ranks[i] ?? null, host: node.name, bus: gpu.bus, nearest: gpu.nearest || "", near: names(first, gpu.nics),
        uses: names(first, gpu.uses), nvlink: gpu.nvlink_gbs, pci: gpu.pci_gbs}));
  if (!rows.some((row) => row.near.length > 0 || row.uses.length > 0)) return null;
  const table = dataTable([
    {label: "Rank", value: (row) => row.rank, numeric: true},
    {label: "Host", value: (row) => row.host, cell: (row) => h("span.whole", row.host)},
    {label: "Bus", value: (row) => row.bus, cell: (row) => h("code", row.bus)},
    {label: "Nearest NIC", value: (row) => few(row.near)},
    {label: "Path", value: (row) => row.nearest},
    {label: "Sends through", value: (row) => few(row.uses)},
    {label: "NVLink GB/s", value: (row) => row.nvlink, cell: (row) => (row.nvlink ? plainNumber(row.nvlink) : ""), numeric: true},
    {label: "PCIe GB/s", value: (row) => row.pci, cell: (row) => (row.pci ? plainNumber(row.pci) : ""), numeric: true},
  ], rows, {name: "GPU", sort: 0, search: (row) => ["rank " + row.rank + ".", row.host, row.near.join(", "), row.uses.join(", "), row.nearest].join("\n")});
  return section("gpus", "NIC of each GPU", null, table.node);
}

/** @param {Report} report */
function showTopology(report) {
  const topology = report.topology || {nodes: [], communicators: [], transports: []};
  const nodeOf = new Map(), rankPlace = new Map();
  topology.nodes.forEach((node, index) => node.ranks.forEach((rank, i) => { nodeOf.set(rank, index); rankPlace.set(rank, i); }));
  const guiltyRanks = new Set(report.findings.filter((finding) => finding.severity !== "note").flatMap((finding) => finding.ranks));
  const sections = [
    verdictSection(report),
    report.findings.length > 0 ? section("findings", "Findings", String(report.findings.length), report.findings.map((finding, index) => findingCard(report, finding, index))) : null,
    topology.communicators.length > 0 ? commsSection(topology, nodeOf, rankPlace, guiltyRanks) : null,
    topology.nodes.length > 0 ? nodesSection(topology, guiltyRanks) : null,
    gpusSection(topology),
    report.cannot_tell.length > 0 ? openSection(report) : null,
    report.inputs.length > 0 ? inputsSection(report) : null,
    report.diagnostics.length > 0 ? remarksSection(report) : null,
  ].filter(Boolean);
  showSections(sections, ["Made by tacet in " + Number(report.seconds || 0).toFixed(2) + " s."]);
}

showTopology(/** @type {Report} */ (readContent()));
