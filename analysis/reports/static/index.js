// The index of runs: folds the runs of a series, filters, sorts and turns pages. Everything is in the page already.
"use strict";

// So many lines a browser lays out at once without a pause.
const PAGE = 200;

const table = elementOf("runs", HTMLTableElement);
const [head] = table.tHead?.rows ?? [];
const body = table.tBodies[0];
const control = (name) => /** @type {HTMLInputElement | HTMLSelectElement} */ (part(name));
const turn = { previous: elementOf("previous", HTMLButtonElement), next: elementOf("next", HTMLButtonElement) };
const written = new Intl.NumberFormat("en");
const collator = new Intl.Collator("en");

/** A row, and its text as a search sees it. */
const lineOf = (row) => ({ row, text: row.textContent.toLowerCase() });

/**
 * What stands alone: a run, or a series with its runs. `open` is null until its reader folds or unfolds it.
 * @type {{ row: any, text: string, series: boolean, runs: { row: any, text: string }[], open: boolean | null }[]}
 */
const groups = [];
for (const row of [...body.rows]) {
  if (row.classList.contains("of-series")) groups.at(-1)?.runs.push(lineOf(row));
  else groups.push({ ...lineOf(row), series: row.classList.contains("series"), runs: [], open: null });
}
const total = groups.reduce((sum, group) => sum + (group.series ? group.runs.length : 1), 0);
let page = 0;

/** Whether a row has all words, and is of the scenario and the state that are chosen. */
function matcher() {
  const words = control("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const [scenario, state] = [control("scenario").value, control("state").value];
  return ({ row, text }) =>
    words.every((word) => text.includes(word)) &&
    (!scenario || row.dataset.scenario === scenario) &&
    (!state || row.dataset.state === state);
}

/** The groups of which something matches, each with the runs to list below it: all, if the series itself matches. */
function found() {
  const matches = matcher();
  return groups.flatMap((group) => {
    const whole = matches(group);
    const runs = whole ? group.runs : group.runs.filter(matches);
    return whole || runs.length ? [{ group, runs, open: group.open ?? !whole }] : [];
  });
}

function show() {
  const all = found();
  const pages = Math.max(Math.ceil(all.length / PAGE), 1);
  page = Math.min(page, pages - 1);
  const shown = all.slice(page * PAGE, (page + 1) * PAGE);
  body.replaceChildren(
    ...shown.flatMap(({ group, runs, open }) => {
      group.row.querySelector(".fold")?.setAttribute("aria-expanded", String(open));
      return [group.row, ...(open ? runs.map((line) => line.row) : [])];
    }),
  );
  const count = all.reduce((sum, { group, runs }) => sum + (group.series ? runs.length : 1), 0);
  part("shown").textContent = `${written.format(count)} of ${written.format(total)} runs`;
  part("page").textContent = `page ${page + 1} of ${pages}`;
  part("pages").hidden = pages === 1;
  turn.previous.disabled = page === 0;
  turn.next.disabled = page === pages - 1;
}

function turnTo(number) {
  page = number;
  show();
  table.scrollIntoView();
}

const keyOf = (row, column) => {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
};

/** Numbers by their size and texts as a dictionary has them; a series has no number and stands before all that have. */
function compare(one, other) {
  if (typeof one === "number" && typeof other === "number") return one - other;
  if (typeof one === typeof other) return collator.compare(one, other);
  return typeof one === "number" ? 1 : -1;
}

function sort(column, header) {
  const descending = header.getAttribute("aria-sort") === "ascending";
  for (const other of head.cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const by = (one, other) => (descending ? -1 : 1) * compare(keyOf(one.row, column), keyOf(other.row, column));
  groups.sort(by);
  for (const group of groups) group.runs.sort(by);
  page = 0;
  show();
}

[...head.cells].forEach((header, column) => {
  const button = make("button", "", header.textContent);
  button.type = "button";
  button.addEventListener("click", () => sort(column, header));
  header.replaceChildren(button);
});
for (const name of ["search", "scenario", "state"]) {
  control(name).addEventListener("input", () => {
    for (const group of groups) group.open = null;
    page = 0;
    show();
  });
}
for (const group of groups) {
  const fold = group.row.querySelector("button.fold");
  if (!fold) continue;
  fold.disabled = false;
  fold.addEventListener("click", () => {
    group.open = fold.getAttribute("aria-expanded") !== "true";
    show();
    fold.focus();
  });
}
turn.previous.addEventListener("click", () => turnTo(page - 1));
turn.next.addEventListener("click", () => turnTo(page + 1));
part("filters").addEventListener("submit", (event) => event.preventDefault());
part("filters").hidden = false;
show();
