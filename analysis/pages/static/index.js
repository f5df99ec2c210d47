// The index of runs: filters its rows and sorts them by a column. Everything is in the page already.
"use strict";

const table = elementOf("runs", HTMLTableElement);
const [head] = table.tHead?.rows ?? [];
const rows = [...table.tBodies[0].rows];
const control = (name) => /** @type {HTMLInputElement | HTMLSelectElement} */ (part(name));

function filter() {
  const words = control("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    const shown =
      words.every((word) => text.includes(word)) &&
      (!control("scenario").value || row.dataset.scenario === control("scenario").value) &&
      (!control("state").value || row.dataset.state === control("state").value);
    row.hidden = !shown;
    count += shown ? 1 : 0;
  }
  part("shown").textContent = `${count} of ${rows.length} shown`;
}

const keyOf = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
};

function sort(column, header) {
  const descending = header.getAttribute("aria-sort") === "ascending";
  for (const other of head.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const compare = (one, other) => (typeof one === "number" ? one - other : one.localeCompare(other));
  rows.sort((one, other) => (descending ? -1 : 1) * compare(keyOf(one, column), keyOf(other, column)));
  table.tBodies[0].append(...rows);
}

[...head.cells].forEach((header, column) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = header.textContent;
  button.addEventListener("click", () => sort(column, header));
  header.replaceChildren(button);
});
for (const name of ["search", "scenario", "state"]) control(name).addEventListener("input", filter);
part("filters").addEventListener("submit", (event) => event.preventDefault());
part("filters").hidden = false;
filter();
