/**
 * The response of a run, as the model's task has it.
 * @module
 */
import { code } from "./code.js";
import { labels } from "./labels.js";
import { outputs } from "./outputs.js";
import { overlay } from "./overlay.js";
import { stages } from "./stages.js";
import { vectors } from "./vectors.js";
import { why } from "./why.js";
import { fill, h } from "../../dom.js";
import { address } from "../../router.js";
import { keptRun } from "../../store.js";
import * as format from "../../format.js";

/**
 * @typedef {object} RunResponse a run with its response
 * @property {import("../../store.js").ModelDetail} model that answered
 * @property {string|null} version that was asked for
 * @property {import("../../store.js").Input} input of the run
 * @property {any} result the response of `/infer`
 * @property {import("../../inference.js").Options} options of the query
 * @property {number} roundTrip milliseconds between the request and the response, as the browser saw them
 * @property {boolean} live whether it is one picture of many
 * @property {AbortSignal} signal aborted when the page is left
 */

/**
 * Show a response.
 * @param {HTMLElement} root where it is shown
 * @param {RunResponse} answered run
 */
export async function showResponse(root, answered) {
  const { result, live } = answered;
  const main = await predictions(answered);
  const run = !live && result.trace ? await keptRun(result.request_id).catch(() => null) : null;
  const where = keptOpen(root);
  const raw = !live && result.outputs?.some((/** @type {any} */ output) => output.data !== undefined) && outputs(result.outputs, Boolean(result.predictions));
  fill(root,
    h("div", { class: "row between" }, h("h2", {}, "Response"), h("span", { class: "quiet number" }, `version ${result.version} · ${format.milliseconds(run?.total_ms ?? result.timing.total_ms)} in the server`)),
    ...(result.warnings ?? []).map((/** @type {string} */ text) => h("p", { class: "notice warn" }, text)),
    main, !result.predictions && raw, stages(answered, run), !live && links(answered), !live && why(answered), !live && code(answered, /** @type {HTMLInputElement|null} */ (main.querySelector("#threshold"))),
    result.predictions && raw);
  for (const details of root.querySelectorAll("details")) details.open = where.has(details.dataset.name ?? "");
}

/**
 * What is unfolded now: it stays so when the next response comes.
 * @param {HTMLElement} root
 */
function keptOpen(root) {
  return new Set([...root.querySelectorAll("details[open]")].map((details) => /** @type {HTMLElement} */ (details).dataset.name));
}

/**
 * @param {RunResponse} answered
 * @returns {Promise<HTMLElement>}
 */
async function predictions(answered) {
  const { result, input } = answered;
  const items = result.predictions;
  if (!items) return h("p", { class: "quiet" }, "This model’s outputs are tensors:");
  const [first] = items;
  const drawn = first?.some((/** @type {any} */ item) => item.box || item.regions) || (first?.length === 0 && result.images?.length);
  if (drawn && result.images?.length && input.kind === "picture") return overlay(answered);
  const shown = items.slice(0, 8).map((/** @type {any[]} */ item, /** @type {number} */ index) =>
    h("div", { class: "stack tight" }, items.length > 1 && h("h3", {}, `Item ${index + 1}`), one(item, answered)));
  return h("div", { class: "stack" }, await preview(input, answered.signal), ...shown,
    items.length > 8 && h("p", { class: "help" }, `${items.length - 8} more items are in the raw response.`));
}

/**
 * @param {any[]} item
 * @param {RunResponse} answered
 * @returns {HTMLElement}
 */
function one(item, answered) {
  const [first] = item;
  if (!first) return h("p", { class: "quiet" }, "Nothing was found.");
  if (first.vector || first.embedding) return vectors(item);
  if ("text" in first) {
    return h("div", { class: "stack tight" }, ...item.map((line) =>
      h("p", { class: "read" }, line.text || "(no text)", line.probability !== undefined && h("span", { class: "pill number" }, format.percent(line.probability)))));
  }
  if (first.box) {
    return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...["Label", "Probability", "Box"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, item.map((entry) => h("tr", {}, h("td", {}, entry.label), h("td", {}, format.percent(entry.probability)), h("td", { class: "mono" }, entry.box.map(Math.round).join(", ")))))));
  }
  return labels(item, answered.live);
}

/**
 * The picture that was asked about.
 * @param {import("../../store.js").Input} input
 * @param {AbortSignal} signal
 */
async function preview(input, signal) {
  if (input.kind !== "picture" || !(input.body instanceof Blob)) return null;
  if (input.name === "camera.jpg") return null;
  const url = URL.createObjectURL(input.body);
  signal.addEventListener("abort", () => URL.revokeObjectURL(url));
  const image = h("img", { src: url, class: "asked", alt: `The picture that was sent: ${input.name}` });
  await image.decode().catch(() => {});
  return h("figure", { class: "asked-frame" }, image, h("figcaption", { class: "help" }, input.name));
}

/**
 * Where to look at the same run.
 * @param {RunResponse} answered
 */
function links({ model, version, result }) {
  if (!result.trace) return null;
  const state = { version, run: result.request_id };
  return h("p", { class: "row links" }, h("span", { class: "quiet" }, "See this run:"),
    ...[["graph", "in the graph"], ["timeline", "on a timeline"], ["tensors", "as tensors"]].map(([page = "", title = ""]) =>
      h("a", { class: "button small", href: address(model.name, page, state) }, title)));
}
