// SPDX-License-Identifier: Apache-2.0
// @ts-check
// The live view: jobs at a glance, then the report of one of them, asked for again and again. Only a page that a server
// sent has a "live" member.

const LIVE_EVERY_MS = 2000;

// "42 s", "12 min", "3 h 5 min", "2 d 4 h".
/** @param {number} seconds */
function describeAge(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 120) return whole + " s";
  const minutes = Math.floor(whole / 60), hours = Math.floor(minutes / 60);
  if (minutes < 120) return minutes + " min";
  if (hours < 48) return hours + " h" + (minutes % 60 > 0 ? " " + (minutes % 60) + " min" : "");
  return Math.floor(hours / 24) + " d" + (hours % 24 > 0 ? " " + (hours % 24) + " h" : "");
}

/** @param {Live} live @param {Date} asked @param {boolean} failed */
function liveLine(live, asked, failed) {
  const parts = [
    count((live.table || []).length + (live.table_left_out || 0), "job"),
    live.agents_reachable + " of " + count(live.agents, "agent") + " answer",
    failed ? h("span.lost", "no answer from the server since " + asked.toLocaleTimeString()) : "as of " + asked.toLocaleTimeString(),
  ];
  const line = h("p.live", h(failed ? "i.pulse.lost" : "i.pulse"), "Live: ", parts.map((part, i) => [i > 0 ? " · " : null, part]));
  line.setAttribute("role", "status");
  return line;
}

/** @param {Live} live @param {LiveTableItem} row */
function jobLink(live, row) {
  const link = h("a", row.job || "(no name)");
  link.href = "?job=" + encodeURIComponent(row.job) + (row.uid === null ? "" : "&uid=" + row.uid);
  if (row.job === live.job && (live.uid ?? null) === row.uid) link.setAttribute("aria-current", "true");
  return link;
}

// Ended jobs are grey; what was last said of them stays.
/** @param {Live} live @param {LiveTableItem} row @param {boolean} several */
function jobRow(live, row, several) {
  const status = oneOf(STATUSES, row.status, "undetermined");
  const named = row.hosts.slice(0, row.host_count > 3 ? 2 : 3);
  const hosts = named.join(", ") + (row.host_count > named.length ? " and " + (row.host_count - named.length).toLocaleString("en") + " more" : "");
  const state = row.ended ? (["healthy", "undetermined"].includes(status) ? "ended" : status + ", ended") : status;
  const cells = [
    ["Job", h("div", jobLink(live, row), several && row.uid !== null ? h("span.faint", " of user " + row.uid) : null)],
    ["Status", h("span.pill." + (row.ended ? "ended" : status), state)],
    ["Culprit", row.ranks.length > 0 ? capitalise(describeRanks(row.ranks, 4)) : row.cause && row.status !== "healthy" ? "no rank named" : ""],
    ["For", row.since_wall_ns === null ? "" : describeAge((live.wall_ns - row.since_wall_ns) / 1e9)],
    ["Hosts", hosts],
    ["Processes", row.processes_live.toLocaleString("en") + " of " + row.processes.toLocaleString("en") + " live"],
    ["Last verdict", h("div", row.headline, row.cause ? h("div", h("code", row.cause)) : null, row.last_hang ? h("div.faint", "Last hang, over: " + row.last_hang) : null)],
  ];
  return h(row.ended ? "tr.ended" : "tr", cells.map(([label, content]) => {
    const cell = h("td", content);
    cell.dataset.label = String(label);
    return cell;
  }));
}

/** @param {Live} live */
function jobsTable(live) {
  const several = new Set(live.table.map((row) => row.uid)).size > 1;
  const heads = ["Job", "Status", "Culprit", "For", "Hosts", "Processes", "Last verdict"].map((label) => {
    const head = h("th", label);
    head.scope = "col";
    return head;
  });
  const table = h("table", h("caption.offscreen", "Jobs"), h("thead", h("tr", heads)), h("tbody", live.table.map((row) => jobRow(live, row, several))));
  return h("div", h("div.scroll.jobs", table), live.table_left_out > 0 ? h("p.faint", "and " + count(live.table_left_out, "more job") + "; /api/v1/jobs lists them") : null);
}

/** @param {Live} live */
function failingAgents(live) {
  const failing = live.failing_agents || [];
  if (failing.length === 0 && !live.list_error) return null;
  const silent = live.agents - live.agents_reachable;
  const rows = failing.map((agent) => [h(agent.address.length <= 40 ? "code.word" : "code", agent.address), agent.host || "", agent.error, agent.failures.toLocaleString("en")]);
  const node = h("details.agents", h("summary", live.list_error ? "The list of agents cannot be read" : count(Math.max(silent, failing.length), "agent") + (Math.max(silent, failing.length) === 1 ? " does" : " do") + " not answer"),
    live.list_error ? h("p", live.list_error) : null,
    failing.length > 0 ? simpleTable(["Address", "Host", "Reason", "Failures in a row"], rows) : null);
  node.id = "failing-agents";
  node.open = true;
  return node;
}

function simpleTable(labels, rows) {
  return h("div.scroll", h("table", h("thead", h("tr", labels.map((label) => h("th", label)))), h("tbody", rows.map((row) => h("tr", row.map((content, i) => {
    const cell = h("td", content);
    cell.dataset.label = labels[i];
    return cell;
  }))))));
}

// What a reader has opened stays open; a table somebody works with is left alone until the verdict changes.
/** @param {Report} report @param {Report} before */
function renewReport(report, before) {
  const sameVerdict = before && JSON.stringify([before.verdict, before.findings]) === JSON.stringify([report.verdict, report.findings]);
  const busy = document.activeElement && document.activeElement.closest("main section");
  if (sameVerdict && busy) return;
  const open = new Map([...document.querySelectorAll("main details[id]")].map((node) => [node.id, /** @type {HTMLDetailsElement} */ (node).open]));
  const top = window.scrollY;
  show(report);
  for (const [id, was] of open) {
    const node = document.getElementById(id);
    if (node instanceof HTMLDetailsElement && sameVerdict) node.open = was;
  }
  window.scrollTo(0, top);
  document.title = "Tacet: " + oneOf(STATUSES, report.verdict.status, "undetermined");
}

/** @param {Report & {live: Live}} first */
function watchLive(first) {
  let shown = first, asked = new Date(), drawn = "";
  const line = h("div"), tables = h("div");
  const place = h("section", line, tables);
  place.id = "live";
  place.setAttribute("aria-label", "Jobs");
  byId("report").before(place);
  // Redrawn only where it changed, so that the keyboard's place in it is not lost every two seconds.
  const draw = (failed) => {
    const live = shown.live;
    line.replaceChildren(liveLine(live, asked, failed));
    const content = JSON.stringify([live.job, live.uid, live.table, live.failing_agents, live.list_error, Math.floor(live.wall_ns / 1e9)]);
    if (content === drawn || (tables.contains(document.activeElement) && drawn !== "")) return;
    drawn = content;
    const title = live.job ? h("p.which", "Below: job ", h("b", live.job)) : null;
    const old = tables.querySelector("details"), wasOpen = old ? old.open : true;
    const agents = failingAgents(live);
    if (agents) agents.open = wasOpen;
    tables.replaceChildren(...[live.table.length > 0 ? jobsTable(live) : null, agents, title].filter((node) => node !== null));
  };
  draw(false);
  const ask = async () => {
    try {
      const answer = await fetch("api/v1/verdict" + location.search, {cache: "no-store"});
      if (!answer.ok) throw new Error(String(answer.status));
      const report = await answer.json();
      asked = new Date();
      renewReport(report, shown);
      shown = report;
      draw(false);
    } catch {
      draw(true);
    }
    setTimeout(ask, LIVE_EVERY_MS);
  };
  setTimeout(ask, LIVE_EVERY_MS);
}
