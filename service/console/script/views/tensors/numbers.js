/**
 * The numbers of a tensor as a table.
 * @module
 */
import { fill, h } from "../../dom.js";
import { cut } from "./tiles.js";
import * as format from "../../format.js";

const ROWS = 40;
const COLUMNS = 16;

/**
 * Build a table with choices of what part it shows.
 * @param {import("../../npy.js").Tensor} tensor to show
 */
export function numbers({ shape, data }) {
  const { count, height, width } = cut(shape);
  const fields = { tile: number("Channel", count), row: number("First row", height), column: number("First column", width) };
  const body = h("tbody", {});
  const head = h("tr", {});
  /** Show the chosen part. */
  function draw() {
    const at = { tile: read(fields.tile, count), row: read(fields.row, height), column: read(fields.column, width) };
    const columns = Array.from({ length: Math.min(COLUMNS, width - at.column) }, (_, index) => at.column + index);
    fill(head, h("th", { scope: "col" }, "Row"), columns.map((column) => h("th", { scope: "col", class: "number" }, column)));
    fill(body, Array.from({ length: Math.min(ROWS, height - at.row) }, (_, index) => {
      const row = at.row + index;
      return h("tr", {}, h("th", { scope: "row" }, row), columns.map((column) => {
        const value = data[(at.tile * height + row) * width + column] ?? NaN;
        return h("td", { class: Number.isFinite(value) ? "number mono" : "number mono odd" }, format.value(value));
      }));
    }));
  }
  for (const field of Object.values(fields)) field.addEventListener("input", draw);
  draw();
  return h("div", { class: "stack" }, h("div", { class: "row end" }, Object.values(fields).map((field) =>
    h("div", { class: "field" }, h("label", { for: field.id }, field.title), field))),
    h("div", { class: "scroll table", tabindex: 0, role: "group", "aria-label": "Numbers of the tensor" }, h("table", {}, h("thead", {}, head), body)),
    h("p", { class: "help" }, `${Math.min(ROWS, height)} rows and ${Math.min(COLUMNS, width)} columns at a time.`));
}

/**
 * @param {string} title
 * @param {number} count
 */
function number(title, count) {
  const id = `at-${title.replaceAll(" ", "-").toLowerCase()}`;
  return h("input", { type: "number", id, title, min: 0, max: count - 1, value: "0", class: "short" });
}

/** @param {HTMLInputElement} field @param {number} count @returns {number} */
const read = (field, count) => Math.min(count - 1, Math.max(0, Math.floor(Number(field.value) || 0)));
