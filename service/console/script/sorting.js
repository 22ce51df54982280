/**
 * Tables that are sorted by a click on a heading.
 * @module
 */
import { fill, h } from "./dom.js";

/**
 * @template T
 * @typedef {{title: string, value: (row: T) => number|string|null, show?: (row: T) => import("./dom.js").Child, number?: boolean}} Column
 */

/** Most rows that are built at once: the others come when asked for. */
const STEP = 300;

/**
 * Build a table.
 * @template T
 * @param {string} caption what it holds, for screen readers
 * @param {Column<T>[]} columns in order
 * @param {T[]} rows in the order shown first
 * @param {{sort?: number, descending?: boolean, chosen?: (row: T) => boolean}} [options] column sorted by first
 */
export function sortedTable(caption, columns, rows, options = {}) {
  let by = options.sort ?? -1;
  let descending = options.descending ?? false;
  let most = STEP;
  const head = h("tr", {});
  const body = h("tbody", {});
  const more = h("button", { class: "plain", hidden: true, onclick: () => { most += STEP * 4; draw(); } });

  /** Build the rows that are shown. */
  function draw() {
    const column = columns[by];
    const sorted = column ? [...rows].sort((a, b) => compare(column.value(a), column.value(b)) * (descending ? -1 : 1)) : rows;
    fill(head, columns.map((entry, index) => h("th", {
      scope: "col", class: entry.number && "number", "aria-sort": index === by ? (descending ? "descending" : "ascending") : "none",
    }, h("button", { class: "sort", onclick: () => { descending = index === by ? !descending : Boolean(entry.number); by = index; draw(); } },
      entry.title, h("span", { "aria-hidden": "true" }, index === by ? (descending ? " ↓" : " ↑") : "")))));
    fill(body, sorted.slice(0, most).map((row) => h("tr", { class: options.chosen?.(row) && "chosen" }, columns.map((entry) =>
      h("td", { class: entry.number && "number" }, entry.show ? entry.show(row) : entry.value(row))))));
    more.hidden = sorted.length <= most;
    more.textContent = `Show more of ${sorted.length} rows`;
  }
  draw();
  return h("div", { class: "stack tight" }, h("div", { class: "scroll table", tabindex: 0, role: "group", "aria-label": caption },
    h("table", {}, h("caption", { class: "visually-hidden" }, caption), h("thead", {}, head), body)), more);
}

/**
 * @param {number|string|null} a
 * @param {number|string|null} b
 * @returns {number}
 */
function compare(a, b) {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null);
  return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}
