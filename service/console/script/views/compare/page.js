/**
 * Two runs compared, operator by operator: where they begin to differ, and which is faster.
 * @module
 */
import { compare } from "./losses.js";
import { jsonOrNull, query } from "../../api.js";
import { failure, fill, h, loading, stylesheet } from "../../dom.js";
import { address, remember } from "../../router.js";
import { firstSample, noRun } from "../../runs.js";
import { sortedTable } from "../../sorting.js";
import { keptInput } from "../../store.js";
import * as format from "../../format.js";

/** @typedef {import("./losses.js").Comparison} Comparison */
/** @typedef {import("./losses.js").Compared} Compared */

/**
 * Show the page.
 * @param {import("../../app.js").Context} context of the page
 */
export async function show(context) {
  const { root, model, version, state, signal } = context;
  if (!model) return;
  void stylesheet("compare");
  const head = h("div", { class: "head" }, h("h1", {}, `Compare runs of ${model.name}`),
    h("p", {}, "The same input runs twice; each operator’s results and times are set side by side, and the first operator that differs is marked."));
  const input = keptInput(model.name)?.input ?? await firstSample(model.name, version);
  if (signal.aborted) return;
  if (!input) {
    fill(root, head, h("section", { class: "card" }, noRun(context, () => void show(context), "Give the model an input first.")));
    return;
  }
  const result = h("section", { class: "card stack", "aria-label": "Comparison" }, h("p", { class: "quiet" }, "Choose what to compare with, and start."));
  const choice = h("select", { id: "against", onchange: () => { chooser.hidden = choice.value !== "reference"; } }, choices(model, version).map(([value, title]) =>
    h("option", { value, selected: value === state.get("with") }, title)));
  const file = h("input", { type: "file", id: "reference", accept: ".npz" });
  const chooser = h("div", { class: "field", hidden: choice.value !== "reference" }, h("label", { for: "reference" }, "Tensors by operand or operator name"), file);
  /** Start the comparison that is chosen. */
  async function start() {
    const [name = "", value = ""] = choice.value.split("=");
    const reference = name === "reference" ? file.files?.[0] ?? null : null;
    if (name === "reference" && !reference) { file.focus(); return; }
    remember({ with: choice.value });
    fill(result, loading("The model runs on both sides …"));
    try {
      const found = await compare(model?.name ?? "", version, /** @type {import("../../store.js").Input} */ (input), reference ? {} : { [name]: value }, reference, signal);
      fill(result, ...shown(found, context));
    } catch (error) {
      if (!signal.aborted) fill(result, failure(error));
    }
  }
  fill(root, head, h("section", { class: "card stack", "aria-label": "What is compared" },
    h("p", { class: "quiet" }, `Input: ${input.name}`),
    h("div", { class: "row end" }, h("div", { class: "field" }, h("label", { for: "against" }, `${model.name} with`), choice), chooser, h("button", { class: "primary", onclick: start }, "Compare")),
    h("p", { class: "help" }, "reference.npz holds arrays of your own, such as PyTorch’s, named as operands or operators are.")), result);
  const wanted = state.get("with");
  if (wanted && wanted !== "reference") await start();
}

/**
 * What a run may be compared with.
 * @param {import("../../store.js").Model} model
 * @param {string|null} version
 * @returns {[string, string][]}
 */
function choices(model, version) {
  const others = model.versions.filter((entry) => entry.state === "ready" && entry.version !== (version ?? model.version));
  return [["with_backend=numpy", "numpy in place of compiled kernels"], ["with_precision=bf16", "precision bf16"], ["with_precision=int8", "precision int8"], ["with_precision=int4", "precision int4"], ["with_precision=f32", "precision f32"],
    ...others.map((entry) => /** @type {[string, string]} */ ([`with_version=${entry.version}`, `version ${entry.version}`])), ["reference", "tensors of a file: reference.npz"]];
}

/**
 * @param {Comparison} found
 * @param {import("../../app.js").Context} context
 */
function shown(found, context) {
  const { model, version } = context;
  const verdict = found.first
    ? h("p", { class: "notice warn", role: "status" }, "The first operator that diverges is ", h("a", { class: "mono", id: "first-diverging", href: address(model?.name ?? null, "graph", { version, node: found.first, measure: "loss" }) }, found.first), ".")
    : h("p", { class: "notice good", role: "status" }, found.agree ? "Both agree: no operator differs by more than rounding." : "No operator could be called the first that differs.");
  const graph = h("div", { class: "compare-graph" });
  void drawMap(graph, found, context);
  return [h("h2", {}, `${found.left.label} against ${found.right.label}`), verdict, graph, table(found, context)];
}

/**
 * @param {Comparison} found
 * @param {import("../../app.js").Context} context
 */
function table(found, { model, version }) {
  /** @param {number|string|null|undefined} value */
  const small = (value) => (typeof value === "number" ? (value === 0 ? "0" : value.toExponential(1)) : value ?? "–");
  /** @param {number|string|null|undefined} value @returns {number|null} */
  const order = (value) => (typeof value === "number" ? value : value ? Infinity : null);
  const timed = found.operators.some(({ left_ms: ms }) => ms !== null);
  /** @type {import("../../sorting.js").Column<Compared & {at: number}>[]} */
  const columns = [
    { title: "#", number: true, value: ({ at }) => at },
    { title: "Operator", value: ({ name }) => name, show: ({ name }) => h("span", { class: "row" }, h("a", { class: "mono", href: address(model?.name ?? null, "graph", { version, node: name }) }, name), name === found.first && h("span", { class: "pill warn" }, "first to diverge")) },
    { title: "Type", value: ({ type }) => type },
    { title: "Largest difference", number: true, value: ({ max_abs: value }) => order(value), show: ({ max_abs: value }) => small(value) },
    { title: "Relative", number: true, value: ({ max_rel: value }) => order(value), show: ({ max_rel: value }) => small(value) },
    { title: "Signal to noise", number: true, value: ({ snr_db: value }) => order(value), show: ({ snr_db: value }) => (typeof value === "number" ? `${value.toFixed(0)} dB` : value ?? "–") },
  ];
  if (timed) {
    const [left, right] = [found.left, found.right].map(({ label }) => `Time, ${label.replace(`${model?.name}, `, "")}`);
    columns.push({ title: left ?? "", number: true, value: ({ left_ms: ms }) => ms, show: ({ left_ms: ms }) => format.milliseconds(ms) },
      { title: right ?? "", number: true, value: ({ right_ms: ms }) => ms, show: ({ right_ms: ms }) => format.milliseconds(ms) });
  }
  if (found.operators.some(({ problem }) => problem)) columns.push({ title: "Note", value: ({ problem }) => problem ?? "" });
  return sortedTable("Operators compared", columns, found.operators.map((operator, index) => ({ ...operator, at: index })), { chosen: ({ name }) => name === found.first });
}

/**
 * The graph, coloured by how much operators differ, with the first one marked.
 * @param {HTMLElement} root
 * @param {Comparison} found
 * @param {import("../../app.js").Context} context
 */
async function drawMap(root, found, { model, version, signal }) {
  const layout = await jsonOrNull(`/graph${query({ model: model?.name, version, format: "layout" })}`);
  if (!layout || signal.aborted) return;
  const [{ Drawing }, { GraphCanvas }, { MEASURES, looksOf }] = await Promise.all([import("../graph/model.js"), import("../graph/canvas.js"), import("../graph/measures.js")]);
  const drawing = new Drawing(layout);
  const graph = new GraphCanvas(drawing, { pick: (name) => { const node = drawing.nodeOf(name); graph.chosen = name; if (node) graph.reveal(node); }, open: () => {}, moved: () => {} });
  const measure = MEASURES.find(({ name }) => name === "loss");
  const losses = new Map(found.operators.flatMap(({ name, max_rel: value }) => (typeof value === "number" ? [/** @type {[string, number]} */ ([name, value])] : [])));
  if (measure) graph.looks = looksOf(measure, layout.nodes, new Map(), losses).looks;
  fill(root, graph.element);
  const first = drawing.nodeOf(found.first);
  graph.element.dataset.first = found.first ?? "";
  graph.start();
  if (first) {
    graph.marked.add(first.id);
    graph.reveal(first);
  }
  addEventListener("themechange", () => graph.refresh(), { signal });
  new ResizeObserver(() => graph.refresh()).observe(graph.element);
}
