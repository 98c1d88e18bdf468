// SPDX-License-Identifier: Apache-2.0
// @ts-check
// One cell a rank, coloured by role, on a canvas: sixteen thousand elements would be too many for the page.

const MOST_CELLS = 1 << 17;

// Ranks nobody speaks of get a cell too, so that a gap shows; a wild rank number must not make a wild grid.
/** @param {Report} report */
function gridCells(report) {
  const byRank = new Map(report.ranks.map((row) => [row.rank, row]));
  const highest = report.ranks.reduce((most, row) => Math.max(most, row.rank ?? 0), -1);
  const world = Math.max(report.job.world_size ?? 0, highest + 1);
  if (world > MOST_CELLS || world > 64 * report.ranks.length + 64)
    return report.ranks.slice(0, MOST_CELLS).map((row) => ({rank: row.rank, row}));
  return Array.from({length: world}, (_, rank) => ({rank, row: byRank.get(rank)}));
}

function cellSize(cells, width) {
  if (cells <= 16) return 44;
  if (cells <= 64) return 36;
  if (cells <= 256) return 26;
  if (cells <= 1024) return 16;
  return cells <= 4096 ? 10 : width < 640 ? 4 : 7;
}

function gridShape(cells, width) {
  let size = cellSize(cells, width);
  if (cells <= 64) {  // a host a row, on a narrow screen too
    const columns = Math.min(cells, 8);
    size = Math.min(size, Math.floor((width - 2) / columns));
    return {size, gutter: 1, top: 1, columns, rows: Math.ceil(cells / columns)};
  }
  const gutter = size >= 26 ? 1 : 46, top = size >= 26 ? 1 : 8;  // small cells carry no number, so rows do
  let columns = Math.max(1, Math.floor((width - gutter) / size));
  // Hosts have eight devices more often than not: rows of whole hosts line up.
  if (columns > 8) columns -= columns % (columns >= 64 && size < 16 ? 32 : 8);
  columns = Math.min(columns, cells);
  return {size, gutter, top, columns, rows: Math.ceil(cells / columns)};
}

/** @param {Report} report */
function rankGrid(report, onPick) {
  const cells = gridCells(report);
  const counts = {};
  for (const cell of cells) counts[roleOf(cell.row)] = (counts[roleOf(cell.row)] || 0) + 1;
  const canvas = h("canvas");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", "Grid of " + count(cells.length, "rank") + ": " +
    ROLES.filter((role) => counts[role]).map((role) => counts[role] + " " + ROLE_WORDS[role]).join(", ") +
    ". Arrow keys move from rank to rank; Enter finds it in the table.");
  const readout = h("p.readout", "Point at a cell, or move with the arrow keys; Enter finds the rank in the table.");
  readout.setAttribute("aria-live", "polite");
  const frame = h("div.grid", canvas);
  let shape = gridShape(cells.length, 600), cursor = -1;

  function drawCell(pen, index, colours) {
    const {size, gutter, top, columns} = shape;
    const x = gutter + (index % columns) * size, y = top + Math.floor(index / columns) * size;
    const gap = size >= 16 ? 3 : 1, side = size - gap;
    const role = roleOf(cells[index].row);
    pen.fillStyle = colours[role];
    if (size < 16) {
      pen.fillRect(x, y, side, side);
    } else {
      pen.beginPath();
      pen.roundRect(x, y, side, side, size >= 26 ? 6 : 3);
      pen.fill();
    }
    if (role === "absent" && size >= 16) {  // hollow
      pen.fillStyle = colours.surface;
      pen.beginPath();
      pen.roundRect(x + 1.5, y + 1.5, side - 3, side - 3, size >= 26 ? 5 : 2);
      pen.fill();
    }
    if (size >= 26) {
      pen.fillStyle = colours[role + "Ink"];
      pen.fillText(String(cells[index].rank ?? "?"), x + side / 2, y + side / 2 + 0.5);
    }
    if (index === cursor) {
      pen.strokeStyle = colours.ink;
      pen.lineWidth = 2;
      pen.strokeRect(x - 1, y - 1, side + 2, side + 2);
    }
  }

  // One red cell among sixteen thousand is easily missed: the guilty get a ring.
  function drawHalos(pen, colours) {
    const {size, gutter, top, columns} = shape;
    const guilty = cells.flatMap((cell, index) => (roleOf(cell.row) === "guilty" ? [index] : []));
    pen.lineWidth = 2;
    for (const index of guilty.slice(0, 100)) {
      const x = gutter + (index % columns) * size + size / 2 - 0.5, y = top + Math.floor(index / columns) * size + size / 2 - 0.5;
      for (const [radius, colour] of [[size * 0.5 + 6, colours.surface], [size * 0.5 + 4, colours.guilty]]) {
        pen.strokeStyle = colour;
        pen.beginPath();
        pen.arc(x, y, radius, 0, 2 * Math.PI);
        pen.stroke();
      }
    }
  }

  function draw() {
    shape = gridShape(cells.length, frame.clientWidth || 600);
    const {size, gutter, top, columns, rows} = shape;
    const style = getComputedStyle(document.documentElement);
    const colours = {ink: style.getPropertyValue("--ink"), surface: style.getPropertyValue("--surface")};
    for (const role of ROLES) {
      colours[role] = style.getPropertyValue("--" + role);
      colours[role + "Ink"] = style.getPropertyValue("--on-" + role);
    }
    const scale = window.devicePixelRatio || 1;
    const width = gutter + columns * size + top, height = rows * size + 2 * top;
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "600 " + Math.round(size * 0.36) + "px " + style.getPropertyValue("--sans");
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let i = 0; i < cells.length; ++i) if (i !== cursor) drawCell(pen, i, colours);
    if (cursor >= 0) drawCell(pen, cursor, colours);
    if (size >= 26) return;
    drawHalos(pen, colours);
    pen.fillStyle = style.getPropertyValue("--ink-3");
    pen.font = "10px " + style.getPropertyValue("--sans");
    pen.textAlign = "right";
    for (let row = 0, step = Math.ceil(13 / size); row < rows; row += step)
      pen.fillText(String(cells[row * columns].rank), gutter - 8, top + row * size + size / 2);
  }

  function cellAt(event) {
    const box = canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - shape.gutter) / shape.size);
    const index = Math.floor((event.clientY - box.top - shape.top) / shape.size) * shape.columns + column;
    return column >= 0 && column < shape.columns && index >= 0 && index < cells.length ? index : -1;
  }

  function moveTo(index) {
    cursor = index;
    const {rank, row} = cells[index];
    readout.textContent = clean("Rank " + rank + (row && row.host ? " on " + row.host : "") + ": " +
      (row ? [roleWords(row) || "no role", row.last_operation, row.doing].filter(Boolean).join(", ") : "no evidence mentions it"));
    draw();
  }

  canvas.addEventListener("mousemove", (event) => {
    const index = cellAt(event);
    if (index < 0) return hideHover();
    showHover(event.clientX, event.clientY, ...rankLines(cells[index].rank, cells[index].row));
  });
  canvas.addEventListener("mouseleave", hideHover);
  canvas.addEventListener("click", (event) => {
    const index = cellAt(event);
    if (index >= 0) moveTo(index);
  });
  canvas.addEventListener("dblclick", () => cursor >= 0 && onPick(cells[cursor].rank));
  canvas.addEventListener("keydown", (event) => {
    const steps = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -shape.columns, ArrowDown: shape.columns};
    if (event.key === "Enter" && cursor >= 0) return onPick(cells[cursor].rank);
    let next = cursor < 0 ? 0 : cursor + (steps[event.key] ?? 0);
    if (event.key === "Home") next = 0;
    else if (event.key === "End") next = cells.length - 1;
    else if (!(event.key in steps)) return;
    event.preventDefault();
    if (next >= 0 && next < cells.length) moveTo(next);
  });
  new ResizeObserver(draw).observe(frame);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return h("div", legend(counts), frame, readout);
}
