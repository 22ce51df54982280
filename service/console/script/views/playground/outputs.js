/**
 * The outputs of a run as they are: a table, or a picture where they have rows and columns.
 * @module
 */
import { h } from "../../dom.js";
import { heatColour } from "../../charts/colours.js";
import { tabs } from "../../tabs.js";
import * as format from "../../format.js";

const ROWS = 50;
const COLUMNS = 20;

/**
 * Build a part for each output.
 * @param {{name: string, shape: number[]|null, dtype: string, data: any}[]} list of the response
 * @param {boolean} folded whether they are only beside the predictions
 */
export function outputs(list, folded) {
  const title = list.length > 1 ? `Raw outputs (${list.length})` : "Raw output";
  return h(folded ? "details" : "section", { "data-name": "outputs" }, folded ? h("summary", {}, title) : null,
    list.filter(({ data }) => data !== undefined).map(({ name, shape, dtype, data }) => {
      const rows = flatten(data, shape ?? []);
      /** @type {import("../../tabs.js").Tab[]} */
      const forms = [{ name: "table", title: "Numbers", show: (panel) => panel.append(table(rows)) }];
      if (rows.length > 3 && (rows[0]?.length ?? 0) > 3) forms.push({ name: "picture", title: "Picture", show: (panel) => panel.append(picture(rows)) });
      return h("div", { class: "stack tight" }, h("h3", {}, h("span", { class: "mono" }, name), h("span", { class: "quiet" }, ` ${format.shape(shape)} ${dtype}`)),
        forms.length > 1 ? tabs(`Form of ${name}`, forms, "table") : table(rows));
    }));
}

/**
 * @param {any} data nested lists
 * @param {number[]} shape
 * @returns {any[][]} rows of the last dimension
 */
function flatten(data, shape) {
  if (!Array.isArray(data)) return [[data]];
  if (shape.length === 1) return [data];
  let rows = data;
  for (let level = shape.length; level > 2; level -= 1) rows = rows.flat();
  return rows;
}

/** @param {any[][]} rows */
function table(rows) {
  const columns = Math.min(COLUMNS, Math.max(...rows.slice(0, ROWS).map((row) => row.length), 0));
  const more = rows.length > ROWS || (rows[0]?.length ?? 0) > COLUMNS;
  return h("div", { class: "stack tight" }, h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Numbers of the output" }, h("table", {},
    h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Row"), ...Array.from({ length: columns }, (_, at) => h("th", { class: "number", scope: "col" }, at)))),
    h("tbody", {}, rows.slice(0, ROWS).map((row, at) => h("tr", {}, h("th", { scope: "row" }, at),
      row.slice(0, COLUMNS).map((entry) => h("td", { class: "number mono" }, Array.isArray(entry) ? entry.join(", ") : format.value(entry)))))))),
    more && h("p", { class: "help" }, `The first ${ROWS} rows and ${COLUMNS} columns of ${rows.length} × ${rows[0]?.length ?? 0}. The page Tensors has all of them.`));
}

/** @param {any[][]} rows */
function picture(rows) {
  const height = Math.min(rows.length, 1024);
  const width = Math.min(rows[0]?.length ?? 0, 1024);
  const numbers = rows.slice(0, height).map((row) => row.slice(0, width).map(Number));
  const finite = numbers.flat().filter(Number.isFinite);
  const low = finite.reduce((a, b) => Math.min(a, b), Infinity);
  const range = finite.reduce((a, b) => Math.max(a, b), -Infinity) - low || 1;
  const canvas = h("canvas", { width, height, class: "tile large", role: "img", "aria-label": `The output as a picture of ${height} rows and ${width} columns` });
  const pen = canvas.getContext("2d");
  const image = new ImageData(width, height);
  numbers.forEach((row, y) => row.forEach((entry, x) => image.data.set([...heatColour((entry - low) / range), 255], (y * width + x) * 4)));
  pen?.putImageData(image, 0, 0);
  return canvas;
}
