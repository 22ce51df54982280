/**
 * The operators as a table: the same as the drawing, for keyboards and screen readers.
 * @module
 */
import { h } from "../../dom.js";
import { sortedTable } from "../../sorting.js";
import * as format from "../../format.js";

/**
 * Build the table.
 * @param {import("./model.js").Drawing} drawing of the graph
 * @param {Map<string, import("../../store.js").Layer>} layers of the run, by operator
 * @param {(name: string) => void} pick chooses an operator
 */
export function operatorTable(drawing, layers, pick) {
  const rows = layers.size
    ? [...layers.values()].map((layer) => ({ name: layer.name, type: layer.type, layer }))
    : drawing.layout.nodes.flatMap((node) => node.operators.map((name) => ({ name, type: node.kind === "module" ? "" : node.type, layer: null })));
  /** @type {import("../../sorting.js").Column<typeof rows[0]>[]} */
  const columns = [
    { title: "Operator", value: ({ name }) => name, show: ({ name }) => h("button", { class: "link mono", onclick: () => pick(name) }, name) },
    { title: "Type", value: ({ type }) => type },
  ];
  if (layers.size) {
    columns.push(
      { title: "Time", number: true, value: ({ layer }) => layer?.duration_ms ?? null, show: ({ layer }) => (layer?.fused_into ? "–" : format.milliseconds(layer?.duration_ms)) },
      { title: "Share", number: true, value: ({ layer }) => layer?.share ?? null, show: ({ layer }) => format.percent(layer?.share ?? 0) },
      { title: "Multiply-adds", number: true, value: ({ layer }) => layer?.multiply_adds ?? null, show: ({ layer }) => format.count(layer?.multiply_adds) },
      { title: "Bytes", number: true, value: ({ layer }) => layer?.bytes ?? null, show: ({ layer }) => format.bytes(layer?.bytes) },
      { title: "Backend", value: ({ layer }) => layer?.backend ?? "" },
      { title: "Precision", value: ({ layer }) => layer?.precision ?? "" },
      { title: "Fused into", value: ({ layer }) => layer?.fused_into ?? "", show: ({ layer }) => h("span", { class: "mono" }, layer?.fused_into ?? "") },
    );
  }
  return h("section", { class: "card" }, h("h2", {}, "Operators"), sortedTable("Operators of the graph", columns, rows, layers.size ? { sort: 2, descending: true } : {}));
}
