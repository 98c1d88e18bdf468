// SPDX-License-Identifier: Apache-2.0
// @ts-check
// What all pages are made of: sections with a bar at the top, facts, lists.

// For the bar at the top.
const SHORT_TITLES = {open: "Open questions", remarks: "Remarks", budget: "Time", steps: "Steps", waits: "Stragglers"};

/** @param {string} id @param {string} title */
function section(id, title, note, ...children) {
  const heading = h("h2", title, note ? h("span.faint", note) : null);
  const node = h("section", heading, children);
  node.id = id;
  node.dataset.short = SHORT_TITLES[id] || title;
  heading.id = id + "-title";
  node.setAttribute("aria-labelledby", heading.id);
  return node;
}

/** @param {string} label */
function fact(label, ...value) {
  const filled = value.filter((part) => part !== "" && part !== null && part !== undefined);
  return filled.length > 0 ? h("div", h("dt", label), h("dd", filled)) : null;
}

// A figure and its unit stay on one line.
/** @param {string} text */
function unbroken(text) {
  return clean(text).split(/(->|\d[\d.,]* (?:%|[nµm]?s|min|GB\/s|[kMGT]?B|[KMGT]iB)(?![\w]))/).map((part, i) => (i % 2 === 1 ? h("span.word", part) : part));
}

function list(tag, items) { return items.length > 0 ? h(tag, items.map((item) => h("li", item))) : null; }

function paragraphs(text) {
  return String(text || "").split(/\n\s*\n/).filter((part) => part.trim() !== "").map((part) => h("p", part));
}

// Three bars, as many filled as the claim is sure.
/** @param {string} level */
function confidence(level) {
  const filled = {certain: 3, likely: 2, possible: 1}[level] || 0;
  const bars = h("span.bars", [1, 2, 3].map((i) => h(i <= filled ? "i.on" : "i")));
  bars.setAttribute("aria-hidden", "true");
  return h("span.confidence", bars, level);
}

// The page's sections, the links to them and the line at the bottom.
function showSections(sections, footer) {
  byId("report").replaceChildren(...sections, hoverCard);
  const links = sections.filter((node) => node.id !== "verdict").map((node) => {
    const link = h("a", node.dataset.short);
    link.href = "#" + node.id;
    return link;
  });
  byId("sections").replaceChildren(...links);
  byId("footer").replaceChildren(h("p", footer));
}

function readContent() { return JSON.parse(byId("report-json").textContent ?? ""); }

addEventListener("beforeprint", () => { for (const node of document.querySelectorAll("details")) node.open = true; });
addEventListener("keydown", (event) => { if (event.key === "Escape") hideHover(); });
