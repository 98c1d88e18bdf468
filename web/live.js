// SPDX-License-Identifier: Apache-2.0
// The live view: the same page, asked for again and again. Only a page that a server sent has a "live" member.

const LIVE_EVERY_MS = 2000;

function liveLine(live, asked, failed) {
  const parts = [
    live.job ? ["job ", h("b", live.job)] : "no job yet",
    live.processes !== undefined ? live.processes_live + " of " + live.processes.toLocaleString("en") + " processes live" : null,
    live.agents_reachable + " of " + count(live.agents, "agent") + " answer",
    failed ? h("span.lost", "no answer from the server since " + asked.toLocaleTimeString()) : "as of " + asked.toLocaleTimeString(),
  ].filter(Boolean);
  const line = h("p.live", h(failed ? "i.pulse.lost" : "i.pulse"), "Live: ", parts.map((part, i) => [i > 0 ? " · " : null, part]));
  if ((live.jobs || []).length > 1) {
    const links = live.jobs.slice(0, 50).map((job) => {
      const link = h("a", job);
      link.href = "?job=" + encodeURIComponent(job);
      if (job === live.job) link.setAttribute("aria-current", "true");
      return link;
    });
    line.append(h("span.jobs", " Jobs: ", links));
  }
  if (live.last_hang) line.append(h("span.faint", " Last hang, over: " + clean(live.last_hang)));
  line.setAttribute("role", "status");
  return line;
}

// What a reader has opened stays open; a table somebody works with is left alone until the verdict changes.
function renewReport(report, before) {
  const sameVerdict = before && JSON.stringify([before.verdict, before.findings]) === JSON.stringify([report.verdict, report.findings]);
  const busy = document.activeElement && document.activeElement.closest("main section");
  if (sameVerdict && busy) return;
  const open = new Map([...document.querySelectorAll("details[id]")].map((node) => [node.id, node.open]));
  const top = window.scrollY;
  show(report);
  for (const [id, was] of open) {
    const node = document.getElementById(id);
    if (node && sameVerdict) node.open = was;
  }
  window.scrollTo(0, top);
  document.title = "Tacet: " + oneOf(STATUSES, report.verdict.status, "undetermined");
}

function watchLive(first) {
  let shown = first, asked = new Date();
  const place = h("div");
  place.id = "live";
  document.getElementById("report").before(place);
  const tell = (failed) => place.replaceChildren(liveLine(shown.live, asked, failed));
  tell(false);
  const ask = async () => {
    try {
      const answer = await fetch("api/v1/verdict" + location.search, {cache: "no-store"});
      if (!answer.ok) throw new Error(answer.status);
      const report = await answer.json();
      asked = new Date();
      renewReport(report, shown);
      shown = report;
      tell(false);
    } catch (error) {
      tell(true);
    }
    setTimeout(ask, LIVE_EVERY_MS);
  };
  setTimeout(ask, LIVE_EVERY_MS);
}
