// Sorting, filtering and copying of the page's tables. The page is complete without this script.
"use strict";

const make = (tag, properties, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};
const textOf = cell => cell.textContent.trim();
const tables = [...document.querySelectorAll(".scroll > table")];
const rowsOf = table => [...table.tBodies[0].rows];
const status = make("p", { className: "hidden", role: "status" });
status.setAttribute("aria-live", "polite");
document.body.append(status);

// Only the first row of a dataset names it, so a row that moves must get the name.
function nameEveryRow(table) {
  let above = "";
  for (const row of rowsOf(table)) {
    const cell = row.cells[0];
    if (!cell.classList.contains("name")) return;
    if (textOf(cell)) above = textOf(cell);
    else cell.textContent = above;
    row.classList.add("first");
    cell.classList.remove("name");
  }
}

// Return the first number of a cell as the report prints it. Cells without a number are sorted last.
function numberIn(text) {
  if (text.includes("∞")) return Infinity;
  const found = text.match(/([+−-]?)(\d[\d,]*\.?\d*(?:e[+-]?\d+)?)/);
  if (!found) return NaN;
  const value = Number(found[2].replaceAll(",", ""));
  return found[1] === "−" || found[1] === "-" ? -value : value;
}

function sortBy(table, column, heading) {
  nameEveryRow(table);
  const descending = heading.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const worded = rowsOf(table).filter(row => /^\p{L}/u.test(textOf(row.cells[column])));
  const isText = heading.classList.contains("text") || 2 * worded.length > rowsOf(table).length;
  const sign = descending ? -1 : 1;
  const keyed = rowsOf(table).map(row => {
    const text = textOf(row.cells[column]);
    return [isText ? text : numberIn(text), row];
  });
  keyed.sort(([a], [b]) => {
    if (isText) return sign * a.localeCompare(b, undefined, { numeric: true });
    if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
    return a === b ? 0 : sign * (a < b ? -1 : 1);
  });
  table.tBodies[0].append(...keyed.map(([, row]) => row));
  status.textContent = `Sorted by ${textOf(heading)}, ${heading.getAttribute("aria-sort")}`;
}

// Return the visible cells of a table, as rows of texts.
function shownTexts(table) {
  const shown = [...table.rows].filter(row => !row.hidden);
  return shown.map(row =>
    [...row.cells].filter(cell => !cell.hidden).map(cell => cell.innerText.trim().replace(/\s+/g, " ")));
}

// A spreadsheet would read such a text as a formula.
const isFormula = text => /^[=@\t\r]|^[+-](?![\d.])/.test(text);

const FORMATS = {
  CSV: table => shownTexts(table).map(row => row.map(text =>
    `"${(isFormula(text) ? "'" : "") + text.replaceAll('"', '""')}"`).join(",")).join("\n"),
  Markdown: table => {
    const [head, ...rows] = shownTexts(table);
    return [head, head.map(() => "---"), ...rows]
      .map(row => `| ${row.map(text => text.replace(/[\\`*|<~]/g, "\\$&")).join(" | ")} |`).join("\n");
  },
  // The text of the file in tables/, for the whole table.
  LaTeX: table => table.nextElementSibling.content.textContent,
};

async function copy(text, name) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // a page opened from a disk may lack the permission
    const area = make("textarea", { value: text, className: "hidden" });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  status.textContent = `Copied as ${name}`;
}

for (const table of tables) {
  const sortable = table.tBodies[0].rows.length > 1;
  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    if (!sortable || table.id === "table-comparison_matrix") return;
    const button = make("button", { type: "button", className: "sort" }, ...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, column, heading));
    heading.append(button);
  });
  const tools = make("p", { className: "tools" }, "Copy as");
  for (const [name, format] of Object.entries(FORMATS)) {
    const button = make("button", { type: "button", textContent: name });
    button.setAttribute("aria-label", `Copy the table “${textOf(table.caption)}” as ${name}`);
    button.addEventListener("click", () => copy(format(table), name));
    tools.append(" ", button);
  }
  table.parentElement.after(tools);
}

// The first table lists the arms. Other tables name them in rows or columns, singly or in pairs “A − B”.
const first = document.getElementById("table-standings");
if (first) {
  const plain = text => text.replace(/‡$/, "");
  const arms = new Set(rowsOf(first).map(row => plain(textOf(row.cells[0]))));
  const armsIn = cell => (cell ? textOf(cell).split(" − ") : []).map(plain).filter(name => arms.has(name));
  const input = make("input", { type: "search", id: "filter", placeholder: "e.g. mnsvm, smo" });
  const keep = names => {
    const words = input.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    const wanted = name => words.some(word => name.toLowerCase().includes(word));
    return !words.length || !names.length || names.some(wanted);
  };
  input.addEventListener("input", () => {
    for (const table of tables) {
      if (input.value) nameEveryRow(table);
      const kept = [...table.tHead.rows[0].cells].map(heading => keep(armsIn(heading)));
      for (const row of table.rows) [...row.cells].forEach((cell, i) => { cell.hidden = !kept[i]; });
      for (const row of rowsOf(table))
        row.hidden = !keep([...row.cells].slice(0, 2).flatMap(cell => armsIn(cell)));
    }
    const left = rowsOf(first).filter(row => !row.hidden).length;
    status.textContent = `${left} of ${arms.size} arms shown`;
  });
  const label = make("label", { className: "tools filter" }, "Show arms whose names contain ", input);
  first.parentElement.before(label);
}

// Open folded parts for printing, and fold them again afterwards.
const folded = () => [...document.querySelectorAll("details:not([open])")];
let opened = [];
addEventListener("beforeprint", () => { opened = folded(); for (const each of opened) each.open = true; });
addEventListener("afterprint", () => { for (const each of opened) each.open = false; });
