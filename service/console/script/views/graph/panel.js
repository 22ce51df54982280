/**
 * What is known of one operator, or of a module.
 * @module
 */
import { jsonOrNull, query } from "../../api.js";
import { heatColour } from "../../charts/colours.js";
import { histogram } from "../../charts/histogram.js";
import { fill, h, loading, s } from "../../dom.js";
import { address } from "../../router.js";
import { keptRun } from "../../store.js";
import * as format from "../../format.js";

/**
 * @typedef {object} Shown what the panel is about
 * @property {import("./model.js").GraphNode} node chosen
 * @property {HTMLElement} buttons what can be done with it
 * @property {string} model name of the model
 * @property {string|null} version of it
 * @property {Map<string, import("../../store.js").Layer>} layers of the run
 * @property {import("../../store.js").Run|null} run that is shown
 * @property {(name: string) => void} pick chooses another operator
 * @property {(node: import("./model.js").GraphNode) => void} open opens a module
 */

/** Most runs whose times are compared. */
const RUNS = 12;

/**
 * Show what is known of a node.
 * @param {HTMLElement} root where it is shown
 * @param {Shown} shown what it is about
 */
export async function showPanel(root, shown) {
  const { node, buttons, model, version, layers, run } = shown;
  if (node.kind === "module") return showModule(root, shown);
  const layer = layers.get(node.name);
  const details = h("div", { class: "stack" }, loading("Reading the operator …"));
  const history = h("div", {});
  fill(root, h("h2", { class: "mono wrap" }, node.name), h("p", { class: "row" }, h("span", { class: "pill" }, node.type), layer && h("span", { class: "pill" }, layer.backend), layer && h("span", { class: "pill" }, layer.precision)), buttons,
    layer && timeOf(layer, shown), history, details);
  const path = `/graph/operators/${encodeURIComponent(node.name)}${query({ model, version })}`;
  const [found] = await Promise.all([jsonOrNull(path).catch(() => null), layer && run ? showHistory(history, shown) : null]);
  if (!found) fill(details, h("p", { class: "quiet" }, "The server reports no more of this operator."));
  else fill(details, ...facts(found, shown));
}

/**
 * @param {import("../../store.js").Layer} layer
 * @param {Shown} shown
 */
function timeOf(layer, { pick }) {
  if (layer.fused_into) {
    return h("p", { class: "notice" }, "Computed as part of ", h("button", { class: "link", onclick: () => pick(layer.fused_into ?? "") }, layer.fused_into), ", whose time contains it.");
  }
  const speed = layer.duration_ms > 0 && layer.multiply_adds ? `${((layer.multiply_adds * 2e-6) / layer.duration_ms).toFixed(1)} GFLOP/s` : "–";
  return h("dl", { class: "facts number" },
    h("dt", {}, "Time"), h("dd", {}, `${format.milliseconds(layer.duration_ms)}, ${format.percent(layer.share)} of all layers`),
    h("dt", {}, "Multiply-adds"), h("dd", {}, format.count(layer.multiply_adds)), h("dt", {}, "Speed"), h("dd", {}, speed),
    h("dt", {}, "Bytes moved"), h("dd", {}, format.bytes(layer.bytes)),
    layer.fused.length > 0 && [h("dt", {}, "Fused into it"), h("dd", {}, layer.fused.map((name) => h("div", {}, h("button", { class: "link mono", onclick: () => pick(name) }, name))))]);
}

/**
 * The times of an operator over the model's last plain runs.
 * @param {HTMLElement} root
 * @param {Shown} shown
 */
async function showHistory(root, { node, model, run }) {
  const list = (await jsonOrNull("/traces"))?.traces ?? [];
  const wanted = list.filter((/** @type {any} */ entry) => entry.model === model && entry.version === run?.version && !entry.observed).slice(0, RUNS).reverse();
  if (wanted.length < 2) return;
  const runs = await Promise.all(wanted.map((/** @type {any} */ entry) => keptRun(entry.request_id).catch(() => null)));
  const times = runs.map((entry) => entry?.trace.layers.find((/** @type {any} */ layer) => layer.name === node.name)?.duration_ms).filter((ms) => ms !== undefined);
  const most = Math.max(...times) || 1;
  const sorted = [...times].sort((a, b) => a - b);
  fill(root, h("h3", {}, `Over the last ${times.length} runs`), h("figure", { class: "history" },
    s("svg", { viewBox: `0 0 ${times.length * 20} 50`, preserveAspectRatio: "none", role: "img", "aria-label": `Times of the last ${times.length} runs: from ${format.milliseconds(sorted[0])} to ${format.milliseconds(most)}` },
      times.map((ms, index) => s("rect", { x: index * 20 + 1, width: 17, y: 50 - (48 * ms) / most, height: Math.max(1, (48 * ms) / most), class: "histogram-bar" }, s("title", {}, format.milliseconds(ms))))),
    h("figcaption", { class: "quiet number" }, `median ${format.milliseconds(sorted[sorted.length >> 1])}, ${format.milliseconds(sorted[0])} to ${format.milliseconds(most)}`)));
}

/**
 * @param {any} found as `/graph/operators/NAME` gives it
 * @param {Shown} shown
 */
function facts(found, shown) {
  const parameters = Object.entries(found.parameters);
  return [
    h("h3", {}, "Inputs and outputs"),
    h("dl", { class: "facts" }, found.inputs.map((/** @type {any} */ operand) => [h("dt", {}, "takes"), h("dd", {}, tensor(operand, shown), operand.producer && [" from ", h("button", { class: "link mono", onclick: () => shown.pick(operand.producer) }, operand.producer)])]),
      found.outputs.map((/** @type {any} */ operand) => [h("dt", {}, "gives"), h("dd", {}, tensor(operand, shown),
        operand.consumers.length > 0 && [" to ", operand.consumers.slice(0, 8).map((/** @type {string} */ name, /** @type {number} */ index) => [index > 0 && ", ", h("button", { class: "link mono", onclick: () => shown.pick(name) }, name)]), operand.consumers.length > 8 && ` and ${operand.consumers.length - 8} more`])])),
    parameters.length > 0 && h("h3", {}, "Parameters"),
    parameters.length > 0 && h("dl", { class: "facts mono" }, parameters.map(([name, value]) => [h("dt", {}, name), h("dd", {}, typeof value === "string" ? value : JSON.stringify(value))])),
    found.attributes.length > 0 && h("h3", {}, "Attributes"),
    ...found.attributes.map(attribute),
  ];
}

/**
 * @param {any} operand
 * @param {Shown} shown
 */
function tensor(operand, { model, version, run }) {
  return [h("a", { class: "mono", href: address(model, "tensors", { version, run: run?.request_id ?? null, operand: operand.name }) }, operand.name),
    h("span", { class: "quiet number" }, ` ${format.shape(operand.shape)} ${operand.dtype ?? ""}`)];
}

/** @param {any} found */
function attribute(found) {
  const odd = [found.nan && `${found.nan} NaN`, found.inf && `${found.inf} infinite`].filter(Boolean).join(", ");
  return h("div", { class: "stack tight" }, h("p", {}, h("strong", { class: "mono" }, found.name), h("span", { class: "quiet number" }, ` ${format.shape(found.shape)} ${found.dtype} · ${format.bytes(found.bytes)}`)),
    odd && h("p", { class: "notice bad" }, `Holds ${odd}.`),
    found.histogram && histogram(found.histogram.edges, found.histogram.counts, found.name),
    found.mean !== null && found.mean !== undefined && h("p", { class: "quiet number" }, `mean ${format.value(found.mean)}, deviation ${format.value(found.std)}`),
    found.filters && filterPictures(found));
}

/**
 * Filters as pictures, dark for the least value and light for the greatest.
 * @param {any} found an attribute as `/graph/operators/NAME` gives it
 */
function filterPictures({ name, shape, filters, min, max }) {
  const pictures = filters.map((/** @type {(number|null)[][]} */ rows, /** @type {number} */ index) => {
    const [height, width] = [rows.length, rows[0]?.length ?? 0];
    const canvas = h("canvas", { width, height, class: "filter", role: "img", "aria-label": `Filter ${index} of ${name}` });
    const image = new ImageData(width, height);
    rows.flat().forEach((value, at) => image.data.set(value === null ? [255, 0, 144, 255] : [...heatColour((value - min) / (max - min || 1)), 255], at * 4));
    canvas.getContext("2d")?.putImageData(image, 0, 0);
    return canvas;
  });
  const text = shape.length === 2 ? "As a picture" : `${filters.length === shape[0] ? "All" : "The first"} ${filters.length} filters, each by its first channel`;
  return h("div", { class: "stack tight" }, h("p", { class: "quiet" }, `${text}; dark is ${format.value(min)}, light ${format.value(max)}.`),
    h("div", { class: filters.length > 1 ? "filters" : "" }, pictures));
}

/**
 * @param {HTMLElement} root
 * @param {Shown} shown
 */
function showModule(root, { node, buttons, layers, pick, open }) {
  const inside = node.operators.map((name) => ({ name, layer: layers.get(name) }));
  const share = inside.reduce((sum, { layer }) => sum + (layer?.share ?? 0), 0);
  const slowest = [...inside].sort((a, b) => (b.layer?.duration_ms ?? 0) - (a.layer?.duration_ms ?? 0)).slice(0, 20);
  fill(root, h("h2", { class: "mono wrap" }, node.name), h("p", { class: "quiet" }, `A module of ${node.operators.length} operators${share ? `, ${format.percent(share)} of the time` : ""}.`),
    h("p", {}, h("button", { class: "primary", onclick: () => open(node) }, "Open the module")), buttons,
    h("h3", {}, "Its slowest operators"),
    h("ul", { class: "plain-list" }, slowest.map(({ name, layer }) => h("li", {}, h("button", { class: "link mono", onclick: () => pick(name) }, name), h("span", { class: "quiet number" }, ` ${format.milliseconds(layer?.duration_ms)}`)))));
}
