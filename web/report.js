// SPDX-License-Identifier: Apache-2.0
// @ts-check
// The page: sections in the order in which they are asked for.

/** @param {Report} report */
function rankTable(report) {
  const mark = (row) => h("span.role", h("i.dot." + roleOf(row)), roleWords(row));
  const columns = [
    {label: "Rank", value: (row) => row.rank, numeric: true},
    {label: "Role", value: (row) => ROLES.indexOf(roleOf(row)), cell: mark},
    {label: "Host", value: (row) => row.host},
    {label: "Pid", value: (row) => row.pid, numeric: true},
    {label: "Operation", value: (row) => row.last_operation},
    {label: "State", value: (row) => row.doing, cell: (row) => (row.doing ? h("code", row.doing) : "")},
    {label: "Last seen", value: (row) => row.last_sign, numeric: true},
    {label: "Evidence", value: (row) => row.evidence_kinds.join(", ")},
  ].filter((column) => column.label === "Rank" || report.ranks.some((row) => ![null, ""].includes(column.value(row))));
  const present = ROLES.filter((role) => report.ranks.some((row) => roleOf(row) === role));
  return dataTable(columns, report.ranks, {
    name: "rank",
    sort: 1,
    search: (row) => ["rank " + row.rank + ".", roleWords(row), row.host, row.pid, row.last_operation, row.doing, row.evidence_kinds.join(" ")].join("\n"),
    choices: present.length > 1 ? present.map((role) => ({label: ROLE_WORDS[role], mark: h("i.dot." + role), test: (row) => roleOf(row) === role})) : [],
  });
}

/** @param {Report} report */
function ranksSection(report) {
  const table = rankTable(report);
  const pick = (rank) => { table.find("rank " + rank + "."); table.node.scrollIntoView({block: "start"}); };
  const graph = report.waits.length > 0 ? waitGraph(report) : null;
  const shape = report.ranks.length > 256 ? ".large" : graph && graph.dense ? ".dense" : "";
  const pictures = h("div.pictures" + shape,
    graph ? h("div.panel", h("h3", "Who waits for whom"), graph.node) : null,
    h("div.panel", h("h3", "Every rank"), rankGrid(report, pick)));
  const world = report.job.world_size;
  return section("ranks", "Ranks", world ? report.ranks.length.toLocaleString("en") + " of " + world.toLocaleString("en") : null, pictures, table.node);
}

// Only where --why asked for it: what speaks for the verdict and against it, and why each rival lost.
/** @param {ReportWhy} why */
function whySection(why) {
  const claim = (/** @type {ReportWhyClaim} */ one) => {
    const reading = one.reading && one.reading + (one.strength ? " (" + one.strength + ")" : "");
    const head = [one.rank === null ? "" : "rank " + one.rank, reading].filter(Boolean).join(", ");
    return evidenceItem({...one.because, says: [head, one.because.says].filter(Boolean).join(": ")});
  };
  const part = (title, items) => (items.length > 0 ? [h("h3.between", title), h("ol.evidence", items)] : null);
  const rivals = (found) => why.rivals.filter((rival) => rival.found === found).map((rival) =>
    h("li", h("code", rival.cause), rival.ranks.length > 0 ? " (" + describeRanks(rival.ranks, 6) + ")" : "", ": " + rival.because));
  return section("why", "Why this verdict", null, h("div.panel", part("Status", [evidenceItem(why.status)]),
    part("For it", why.claims.filter((one) => one.supports).map(claim)), part("Against it", why.claims.filter((one) => !one.supports).map(claim)),
    part("Found, but not the cause", rivals(true)), part("Other causes considered; this input does not show them", rivals(false))));
}

/** @param {ReportJob} job */
function jobCard(job) {
  const versions = Object.entries(job.versions).map(([what, version]) => h("span", what + " ", h("b", version)));
  const groups = job.groups.slice(0, 200).map((group) => h("li", h("span", describeGroup(group)), h("span.faint", describeRanks(group.ranks, 8))));
  return h("div.job",
    job.label ? h("h3", job.label) : null,
    h("dl.facts",
      fact("World size", job.world_size === null ? "unknown" : job.world_size.toLocaleString("en")),
      fact("Ranks seen", foldRanks(job.ranks_seen, 12)),
      fact("Hosts", job.hosts.length > 12 ? job.hosts.slice(0, 12).join(", ") + " and " + (job.hosts.length - 12) + " more" : job.hosts.join(", ")),
      versions.length > 0 ? fact("Versions", h("span.versions", versions)) : null),
    groups.length > 0 ? h("details.groups", h("summary", count(job.groups.length, "group")), h("ul", groups)) : null);
}

/** @param {Report} report */
function show(report) {
  const sections = [
    verdictSection(report),
    report.findings.length > 0 ? section("findings", "Findings", String(report.findings.length),
      report.findings.map((finding, index) => findingCard(report, finding, index))) : null,
    report.ranks.length > 0 ? ranksSection(report) : null,
    report.cannot_tell.length > 0 ? openSection(report) : null,
    report.why ? whySection(report.why) : null,
    report.assumptions.length > 0 ? section("assumed", "Assumed", null, list("ul", report.assumptions)) : null,
    section("job", report.jobs.length > 1 ? "Jobs" : "Job", null, (report.jobs.length > 0 ? report.jobs : [report.job]).map(jobCard)),
    report.inputs.length > 0 ? inputsSection(report) : null,
    report.diagnostics.length > 0 ? remarksSection(report) : null,
  ].filter(Boolean);
  const explain = report.verdict.cause ? [" More on this cause: ", command("tacet explain " + report.verdict.cause)] : null;
  showSections(sections, ["Made by tacet in " + Number(report.seconds || 0).toFixed(2) + " s.", explain]);
}

/** @type {Report & {live?: Live}} */
const loaded = readContent();
show(loaded);
if (loaded.live) watchLive({...loaded, live: loaded.live});
