// SPDX-License-Identifier: Apache-2.0
// @ts-check
// The sections that every page with a verdict has: verdict, findings, inputs, remarks, open questions.

/** @param {Report} report */
function hostsOf(report, ranks) {
  const wanted = new Set(ranks);
  const hosts = new Set(report.ranks.filter((row) => wanted.has(row.rank) && row.host).map((row) => row.host));
  if (hosts.size === 0) return "";
  return " on " + (hosts.size > 3 ? count(hosts.size, "host") : [...hosts].join(", "));
}

/** @param {Report} report */
function carriedFinding(report) {
  const first = report.findings[0];
  return first && first.cause === report.verdict.cause ? first : null;
}

// Three lines for a chat: what and who, why, what to do first.
/** @param {Report} report */
function chatSummary(report) {
  const {verdict} = report, finding = carriedFinding(report);
  const who = describeRanks(verdict.ranks, 4);
  const cause = verdict.cause ? " (" + verdict.cause + ", " + verdict.confidence + ")" : "";
  const open = report.cannot_tell[0];
  const next = finding && finding.fix.length > 0 ? "Next: " + finding.fix[0]
    : open ? "Open: " + open.question + (open.missing ? " Needed: " + open.missing : "") : "Nothing to do.";
  return [(verdict.heading || verdict.status).toUpperCase() + (who ? ": " + who + hostsOf(report, verdict.ranks) : "") + cause, verdict.headline, next].map((line) => clean(line).replace(/\s*\n\s*/g, " ")).join("\n");
}

/** @param {Report} report */
function summaryPanel(report) {
  const text = chatSummary(report);
  return h("div.chat", h("div.head", h("h2", "Summary for a chat"), copyButton(text, "Copy", "the summary")), h("pre", text));
}

/** @param {Report} report */
function verdictSection(report) {
  const {verdict} = report;
  const finding = carriedFinding(report);
  const status = oneOf(STATUSES, verdict.status, "undetermined");
  const who = describeRanks(verdict.ranks, 6);
  const waits = finding && ["hang", "crash", "slow"].includes(finding.status);
  const facts = h("dl.facts",
    finding && fact("Where", describePlace(finding)),
    finding && fact(waits ? "Who waits" : "Who is affected", describeRanks(finding.affected_ranks, 6)),
    verdict.cause && fact("Cause", finding && finding.title ? h("span", finding.title) : null, h("code", verdict.cause)),
    finding && fact("Confidence", confidence(verdict.confidence)),
    report.jobs.length > 1 ? fact("Job", (report.job.label || "unnamed") + " (1 of " + report.jobs.length + ")") : null);
  const node = h("section.verdict." + status,
    h("p.line", h("span.status", (verdict.heading || status).toLowerCase()), who ? h("span.who", capitalise(who) + hostsOf(report, verdict.ranks)) : null),
    h("h1", unbroken(verdict.headline)),
    facts.children.length > 0 ? facts : null,
    finding && finding.fix.length > 0 ? h("div.now", h("h2", "What to do now"), list("ol", finding.fix.map(withCommands))) : null,
    summaryPanel(report));
  node.id = "verdict";
  return node;
}

/** @param {ReportFindingEvidenceItem} evidence */
function evidenceItem(evidence) {
  const source = describeSource(evidence);
  // The very line of the file; the record in words goes with what it says, unless the line holds it.
  const line = (evidence.quote || evidence.excerpt).replace(/\n+$/, "");
  const count = (evidence.excerpt.match(/ \(\d+ times\)$/) || [""])[0];
  const record = evidence.excerpt.slice(0, evidence.excerpt.length - count.length).replace(/(.{18,})\.\.\.$/, "$1");
  const said = record !== "" && evidence.says.startsWith(record);  // "NCCL_ALGO=Ring: ..."
  const words = evidence.quote && evidence.excerpt && !said && !evidence.quote.includes(record) ? evidence.excerpt : "";
  const says = [evidence.says, words].filter(Boolean).join(": ") + (evidence.quote && !words ? count : "");
  const quote = line || source ? h("figure", source ? h("figcaption", source) : null, line ? h("pre", line) : null) : null;
  return h("li", says ? h("p", says) : null, quote);
}

/** @param {Report} report @param {ReportFinding} finding */
function findingCard(report, finding, index) {
  const severity = oneOf(SEVERITIES, finding.severity, "note");
  const card = h("details.finding." + severity,
    h("summary",
      h("span.severity", severity),
      h("span.title", h("span.headline", finding.headline),
        h("span.meta", h("code", finding.cause), finding.ranks.length > 0 ? h("span", describeRanks(finding.ranks, 6)) : null,
          describePlace(finding) ? h("span", describePlace(finding)) : null, confidence(finding.confidence),
          report.jobs.length > 1 && finding.job ? h("span", "job " + finding.job) : null))),
    h("div.body",
      finding.evidence.length > 0 ? [h("h3", "Evidence"), h("ol.evidence", finding.evidence.map(evidenceItem))] : null,
      finding.explanation ? [h("h3", "What it means"), paragraphs(finding.explanation)] : null,
      finding.fix.length > 0 && finding !== carriedFinding(report) ? [h("h3", "What to do now"), list("ol", finding.fix.map(withCommands))] : null,
      finding.prevent.length > 0 ? [h("h3", "How to prevent it"), list("ul", finding.prevent.map(withCommands))] : null,
      finding.affected_ranks.length > 0 ? h("p.faint", (["hang", "crash", "slow"].includes(finding.status) ? "Waiting: " : "Affected: ") + describeRanks(finding.affected_ranks, 24)) : null));
  card.id = "finding-" + (index + 1);
  card.open = index === 0;
  return card;
}

/** @param {ReportInput} input */
function accountingBar(input) {
  const bar = h("span.bar");
  for (const part of ["understood", "ignored", "not_understood"]) {
    const piece = h("i." + part);
    piece.style.flexGrow = input.bytes ? input[part] / input.bytes : 0;
    bar.append(piece);
  }
  bar.setAttribute("aria-hidden", "true");
  return bar;
}

/** @param {Report} report */
function inputsSection(report) {
  const share = (part) => ({value: (row) => (row.bytes ? row[part] / row.bytes : 0), cell: (row) => describeShare(row[part], row.bytes), numeric: true});
  const total = (key) => report.inputs.reduce((sum, input) => sum + input[key], 0);
  const table = dataTable([
    {label: "File", value: (row) => row.file, cell: (row) => h("code", row.file)},
    {label: "Format", value: (row) => row.format, cell: (row) => row.format || h("span.faint", "unknown")},
    {label: "Rank", value: (row) => row.rank, numeric: true},
    {label: "Size", value: (row) => row.bytes, cell: (row) => describeBytes(row.bytes), numeric: true},
    {label: "Accounting", value: (row) => (row.bytes ? row.understood / row.bytes : 0), cell: accountingBar},
    {label: "Understood", ...share("understood")},
    {label: "Not needed", ...share("ignored")},
    {label: "Not understood", ...share("not_understood")},
  ], report.inputs, {
    name: "file",
    search: (row) => row.file + "\n" + (row.format || "unknown"),
    choices: [{label: "not understood in part", test: (row) => row.not_understood > 0}],
  });
  const key = h("ul.legend", ["understood", "ignored", "not_understood"].map((part) =>
    h("li", h("i.dot." + part), (part === "ignored" ? "not needed" : part.replace("_", " ")) + " ", h("b", describeShare(total(part), total("bytes"))))));
  return section("inputs", "Inputs", count(report.inputs.length, "file") + ", " + describeBytes(total("bytes")), key, table.node);
}

/** @param {Report} report */
function remarksSection(report) {
  const table = dataTable([
    {label: "Severity", value: (row) => row.severity, cell: (row) => h("span.severity." + oneOf(SEVERITIES, row.severity, "note"), row.severity)},
    {label: "What", value: (row) => row.message, cell: (row) => h("div", row.message, row.hint ? h("div.faint", row.hint) : null)},
    {label: "Where", value: (row) => row.file, cell: (row) => (row.file ? h("code", row.file + (row.line ? ":" + row.line : "")) : "")},
    {label: "Code", value: (row) => row.code, cell: (row) => h("code", row.code)},
    {label: "Times", value: (row) => row.count, numeric: true},
  ], report.diagnostics, {name: "remark", search: (row) => [row.severity, row.message, row.file, row.code, row.hint].join("\n")});
  return section("remarks", "Remarks on the inputs", null, table.node);
}

/** @param {Report} report */
function openSection(report) {
  return section("open", "Unknown; capture this next time", null, h("ul.open", report.cannot_tell.map((open) =>
    h("li", h("p", open.question), open.missing ? h("p.faint", withCommands(open.missing)) : null))));
}
