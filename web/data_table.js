// SPDX-License-Identifier: Apache-2.0
// @ts-check
// A table that sorts, filters and shows a page of rows at a time, so that sixteen thousand ranks stay quick.
//   columns: [{label, value(row): number or string, cell(row): node or text, numeric}]
//   options: {name, search(row): text, choices: [{label, mark, test(row)}], sort: the column sorted by at first, down: from its largest, page: rows shown at first}

// On a narrow screen a row is a block of lines.
const PAGE_ROWS = window.innerWidth > 640 ? 24 : 8;
const MORE_ROWS = 500;

function compareValues(a, b) {
  const missing = (v) => v === null || v === undefined || v === "";
  if (missing(a) || missing(b)) return Number(missing(a)) - Number(missing(b));
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", {numeric: true});
}

function dataTable(columns, rows, options) {
  const page = Math.min(options.page ?? PAGE_ROWS, PAGE_ROWS);
  /** @type {{sort: number, down: boolean, text: string, choice: {test: (row: any) => boolean} | null, shown: number}} */
  const state = {sort: options.sort ?? -1, down: options.down ?? false, text: "", choice: null, shown: page};
  const body = h("tbody");
  const status = h("p.status");
  status.setAttribute("aria-live", "polite");
  const more = button("", () => { state.shown += MORE_ROWS; draw(); });
  more.className = "more";
  const texts = new Map();  // lower-cased once, on the first search

  function matching() {
    let found = state.choice ? rows.filter(state.choice.test) : rows;
    if (state.text) {
      for (const row of rows) if (!texts.has(row)) texts.set(row, clean(options.search(row)).toLowerCase());
      found = found.filter((row) => texts.get(row).includes(state.text));
    }
    if (state.sort < 0) return found;
    const value = columns[state.sort].value;
    return [...found].sort((a, b) => (state.down ? -1 : 1) * compareValues(value(a), value(b)));
  }

  function drawRow(row) {
    const line = h("tr");
    for (const column of columns) {
      const cell = h(column.numeric ? "td.number" : "td", column.cell ? column.cell(row) : column.value(row));
      cell.dataset.label = column.label;
      line.append(cell);
    }
    return line;
  }

  function draw() {
    const found = matching();
    body.replaceChildren(...found.slice(0, state.shown).map(drawRow));
    const left = found.length - state.shown;
    more.hidden = left <= 0;
    more.textContent = "Show " + Math.min(left, MORE_ROWS).toLocaleString("en") + " more of " + found.length.toLocaleString("en");
    status.textContent = found.length === rows.length ? count(rows.length, options.name)
                                                      : found.length.toLocaleString("en") + " of " + count(rows.length, options.name);
  }

  const heads = columns.map((column, index) => {
    const head = h(column.numeric ? "th.number" : "th");
    head.scope = "col";
    head.append(button(column.label, () => {
      state.down = state.sort === index ? !state.down : false;
      state.sort = index;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      draw();
    }));
    return head;
  });

  const search = h("input");
  search.type = "search";
  search.placeholder = "Filter";
  search.setAttribute("aria-label", "Filter " + options.name + "s");
  search.addEventListener("input", () => {
    state.text = search.value.trim().toLowerCase();
    state.shown = page;
    draw();
  });

  const choices = h("div.choices");
  for (const choice of options.choices || []) {
    const chip = button("", () => {
      state.choice = state.choice === choice ? null : choice;
      state.shown = page;
      for (const other of choices.children) other.setAttribute("aria-pressed", other === chip && state.choice !== null);
      draw();
    });
    append(chip, [choice.mark, choice.label]);
    chip.setAttribute("aria-pressed", "false");
    choices.append(chip);
  }

  if (state.sort >= 0) heads[state.sort].setAttribute("aria-sort", state.down ? "descending" : "ascending");
  draw();
  const controls = rows.length > 6 ? h("div.controls", search, choices, status) : null;
  const node = h("div.datatable", controls, h("div.scroll", h("table", h("thead", h("tr", heads)), body)), more);
  // Lets the pictures point at a row.
  const find = (text) => { search.value = text; search.dispatchEvent(new Event("input")); };
  return {node, find};
}
