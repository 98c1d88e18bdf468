// SPDX-License-Identifier: Apache-2.0
// @ts-check
// Elements and words. Everything a report holds may come from an attacker's log: it reaches the page as text nodes only,
// and class names come from the fixed lists below, never from the report.

const ROLES = ["guilty", "suspect", "silent", "waits", "ok", "unknown", "absent"];  // absent: nothing speaks of the rank
const ROLE_WORDS = {guilty: "at fault", suspect: "suspect", silent: "not seen", waits: "waits", ok: "ok", unknown: "no role", absent: "no evidence"};
const STATUSES = ["hang", "crash", "corrupt", "slow", "degraded", "healthy", "undetermined"];
const SEVERITIES = ["critical", "warning", "note", "error"];

// What could not be measured is null in a report.
/** @param {unknown} value @returns {value is number} */
const isFigure = (value) => typeof value === "number" && Number.isFinite(value);
/** @param {unknown} value */
const figure = (value) => (isFigure(value) ? value : 0);

const oneOf = (list, value, otherwise) => (list.includes(value) ? value : otherwise);
const roleOf = (row) => (row ? oneOf(ROLES, row.role, "unknown") : "absent");
/** @param {{role?: string | null}} row */
const roleWords = (row) => (row.role ? ROLE_WORDS[oneOf(ROLES, row.role, "unknown")] : "");

// Control characters would vanish or, like U+202E, turn the text around: they are shown as escapes, as in the text report.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
function clean(value) {
  return String(value ?? "").replace(HIDDEN, (c) => {
    const code = c.charCodeAt(0);
    return code < 256 ? "\\x" + code.toString(16).padStart(2, "0") : "\\u" + code.toString(16).padStart(4, "0");
  });
}

function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === "") continue;
    node.append(child instanceof Node ? child : clean(child));
  }
  return node;
}

// h("p.says", "text", node...); what is empty is left out.
/** @param {string} spec */
function h(spec, ...children) {
  const [tag, ...classes] = spec.split(".");
  const node = document.createElement(tag);
  if (classes.length > 0) node.className = classes.join(" ");
  return append(node, children);
}

// An element of report.html, which every page has.
/** @param {string} id */
function byId(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error("the page has no #" + id);
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return append(node, children);
}

function button(label, onClick) {
  const node = h("button", label);
  node.type = "button";
  node.addEventListener("click", onClick);
  return node;
}

// [0, 1, 3, 4, 5] -> "0, 1, 3-5", as the text of a report has it; a long list is cut after `most` pieces.
/** @param {number[]} ranks */
function foldRanks(ranks, most = 12) {
  const sorted = [...new Set(ranks)].sort((a, b) => a - b);
  const pieces = [];
  for (let i = 0; i < sorted.length; ) {
    let last = i;
    while (last + 1 < sorted.length && sorted[last + 1] === sorted[last] + 1) ++last;
    if (last === i + 1) last = i;
    if (pieces.length === most) return pieces.join(", ") + ", ...";
    pieces.push(last > i ? sorted[i] + "-" + sorted[last] : String(sorted[i]));
    i = last + 1;
  }
  return pieces.join(", ");
}

/** @param {number[]} ranks */
function describeRanks(ranks, most) {
  if (ranks.length === 0) return "";
  const folded = foldRanks(ranks, most);
  if (folded.endsWith("...")) return ranks.length.toLocaleString("en") + " ranks (" + folded + ")";
  return (ranks.length === 1 ? "rank " : "ranks ") + folded.replace(/, (?=[^,]*$)/, " and ");
}

/** @param {number} bytes */
function describeBytes(bytes) {
  if (bytes < 1000) return bytes + " B";
  const units = ["kB", "MB", "GB", "TB", "PB", "EB"];
  let value = bytes / 1000, unit = 0;
  for (; value >= 999.95 && unit + 1 < units.length; ++unit) value /= 1000;
  return (value < 99.95 ? value.toFixed(1) : value.toFixed(0)) + " " + units[unit];
}

function describeShare(part, whole) {
  if (!part || !whole) return "0 %";
  const percent = (100 * part) / whole;
  return percent < 0.1 ? "<0.1 %" : (percent < 10 ? percent.toFixed(1) : percent.toFixed(0)) + " %";
}

/** @param {ReportFindingGroup | null} group */
function describeGroup(group) {
  if (!group) return "";
  // Groups made by a mesh are named by a hash of their members: its beginning tells them apart.
  const hashed = /^[0-9a-f]{17,}$/.test(group.name);
  const shown = hashed ? group.name.slice(0, 8) : group.name;
  const name = hashed || /^[0-9]/.test(group.name) ? "group " + shown : shown;
  if (!group.description || group.description === group.name) return name;
  return group.description + (name ? " (" + name + ")" : "");
}

/** @param {ReportFinding} finding */
function describePlace(finding) {
  const op = finding.operation;
  let text = "";
  if (op) {
    text = op.kind === "unknown" ? "operation" : op.kind;
    if (op.seq !== null) text += " #" + op.seq;
    if (op.bytes !== null) text += " (" + describeBytes(op.bytes) + ")";
  }
  const group = describeGroup(finding.group);
  return text && group ? text + " on " + group : text || group;
}

/** @param {ReportFindingEvidenceItem} evidence */
function describeSource(evidence) {
  if (!evidence.file) return "";
  if (evidence.line) return evidence.file + ":" + evidence.line;
  return evidence.offset ? evidence.file + "@0x" + evidence.offset.toString(16) : evidence.file;
}

const count = (n, noun) => n.toLocaleString("en") + " " + noun + (n === 1 ? "" : "s");
const capitalise = (text) => (/^[a-z0-9]+_/.test(text) ? text : text.charAt(0).toUpperCase() + text.slice(1));

// One floating card, shared by the pictures. It repeats what the table says, so screen readers are not sent there.
const hoverCard = h("div.hover");
hoverCard.hidden = true;
hoverCard.setAttribute("aria-hidden", "true");

function showHover(x, y, ...lines) {
  hoverCard.replaceChildren(...lines.filter(Boolean));
  hoverCard.hidden = false;
  const box = hoverCard.getBoundingClientRect();
  const left = Math.min(x + 14, document.documentElement.clientWidth - box.width - 8);
  const below = y + 16 + box.height < window.innerHeight;
  hoverCard.style.left = Math.max(8, left) + window.scrollX + "px";
  hoverCard.style.top = (below ? y + 16 : Math.max(8, y - box.height - 12)) + window.scrollY + "px";
}

function hideHover() { hoverCard.hidden = true; }

/** @param {number | null} rank @param {ReportRank | undefined} row */
function rankLines(rank, row) {
  const head = h("strong", "Rank " + rank, row && row.host ? " on " + row.host : "");
  if (!row) return [head, h("div", "no evidence mentions it")];
  return [
    head,
    h("div", h("i.dot." + roleOf(row)), roleWords(row) || "no role", row.pid ? ", pid " + row.pid : ""),
    row.last_operation && h("div", row.last_operation),
    row.doing && h("div.mono", row.doing),
    row.last_sign && h("div.faint", "last sign " + row.last_sign),
  ];
}

function legend(counts) {
  const list = h("ul.legend");
  for (const role of ROLES)
    if (counts[role]) list.append(h("li", h("i.dot." + role), ROLE_WORDS[role] + " ", h("b", counts[role].toLocaleString("en"))));
  return list;
}
