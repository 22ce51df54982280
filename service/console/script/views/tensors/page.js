/**
 * Operands of a run: feature maps as pictures, their distribution, their numbers.
 * @module
 */
import { numbers } from "./numbers.js";
import { statisticsOf } from "./statistics.js";
import { STEP, cut, tile } from "./tiles.js";
import { json, query } from "../../api.js";
import { histogram } from "../../charts/histogram.js";
import { failure, fill, h, loading, stylesheet } from "../../dom.js";
import { capture, download } from "../../inference.js";
import { dtypeName } from "../../npy.js";
import { remember } from "../../router.js";
import { firstSample, noRun } from "../../runs.js";
import { keptInput } from "../../store.js";
import { tabs } from "../../tabs.js";
import * as format from "../../format.js";

/** @typedef {{name: string, shape: (number|null)[]|null, dtype: string|null, producer: string}} Operand */

/**
 * Show the page.
 * @param {import("../../app.js").Context} context of the page
 */
export async function show(context) {
  const { root, model, version, state, signal } = context;
  if (!model) return;
  void stylesheet("tensors");
  fill(root, loading("Reading the graph …"));
  const graph = await json(`/graph${query({ model: model.name, version })}`, { signal });
  if (signal.aborted) return;
  const kept = keptInput(model.name) ?? (state.get("operand") ? await sampleInput(model.name, version) : null);
  const head = h("div", { class: "head" }, h("h1", {}, `Tensors of ${model.name}`),
    h("p", {}, "What flows between the operators. Tensors come from a run of their own, which keeps them and takes longer; times on other pages come from plain runs, never from this one."));
  if (!kept) {
    fill(root, head, h("section", { class: "card" }, noRun(context, () => void show(context), "Run the model once; then every tensor of the run can be looked at.")));
    return;
  }
  const result = h("div", { class: "stack", "aria-live": "polite" });
  /** @param {string} name */
  async function choose(name) {
    remember({ operand: name });
    for (const button of list.querySelectorAll("button")) button.setAttribute("aria-pressed", String(button.dataset.operand === name));
    fill(result, loading("The model runs once more, and keeps this tensor …"));
    try {
      const input = keptInput(model?.name ?? "")?.input ?? kept?.input;
      if (!input) return;
      const { tensors, meta } = await capture(model?.name ?? "", version, input, [name], signal);
      const backend = meta.captured?.[0]?.backend;
      fill(result, ...[...tensors].map(([title, tensor]) => tensorView(title, tensor, model?.name ?? "", backend)));
      if (!tensors.size) fill(result, h("p", { class: "notice warn" }, "This operand holds no tensor."));
    } catch (error) {
      if (!signal.aborted) fill(result, failure(error));
    }
  }
  const operands = /** @type {Operand[]} */ (graph.operands);
  const list = operandList(operands, graph.nodes, choose);
  fill(root, head, h("p", { class: "quiet" }, `Input: ${kept.input.name}`), h("div", { class: "tensor-columns" }, list, h("section", { class: "card", "aria-label": "Tensor" }, result)));
  const wanted = state.get("operand") ?? operands[1]?.name ?? operands[0]?.name;
  if (wanted) await choose(wanted);
}

/**
 * @param {string} model
 * @param {string|null} version
 */
async function sampleInput(model, version) {
  const input = await firstSample(model, version);
  return input && { input, request: "" };
}

/**
 * The operands, to choose from.
 * @param {Operand[]} operands
 * @param {{name: string, type: string}[]} nodes
 * @param {(name: string) => void} choose
 */
function operandList(operands, nodes, choose) {
  const types = new Map(nodes.map(({ name, type }) => [name, type]));
  const items = operands.map((operand) => {
    const type = (types.get(operand.producer) ?? "").replace(/^nn\.|^pnnx\./, "");
    const item = h("li", {}, h("button", { class: "operand", "data-operand": operand.name, "aria-pressed": "false", onclick: () => choose(operand.name) },
      h("span", { class: "mono" }, operand.name), h("span", { class: "operand-from" }, `${operand.producer} · ${type}`), h("span", { class: "operand-shape number" }, format.shape(operand.shape))));
    return { item, text: `${operand.name} ${operand.producer} ${type}`.toLowerCase() };
  });
  const field = h("input", { type: "search", id: "find-operand", placeholder: "name, operator or type", oninput: () => {
    for (const { item, text } of items) item.hidden = !text.includes(field.value.trim().toLowerCase());
  } });
  return h("section", { class: "card operands", "aria-label": "Operands" }, h("h2", {}, "Operands"),
    h("div", { class: "field" }, h("label", { for: "find-operand" }, "Find"), field), h("ul", { class: "operand-list" }, items.map(({ item }) => item)));
}

/**
 * @param {string} name
 * @param {import("../../inference.js").Captured} tensor
 * @param {string} model
 * @param {string|undefined} backend
 */
function tensorView(name, tensor, model, backend) {
  const found = statisticsOf(tensor.data);
  const odd = [found.nan && `${found.nan.toLocaleString("en")} NaN`, found.inf && `${found.inf.toLocaleString("en")} infinite`].filter(Boolean).join(" and ");
  /** @type {import("../../tabs.js").Tab[]} */
  const forms = [
    { name: "pictures", title: "Pictures", show: (panel) => panel.append(pictures(tensor, found)) },
    { name: "numbers", title: "Numbers", show: (panel) => panel.append(numbers(tensor)) },
  ];
  return h("div", { class: "stack" },
    h("div", { class: "row between" }, h("h2", {}, "Operand ", h("span", { class: "mono" }, name)),
      h("button", { class: "small", onclick: () => download(new Blob([tensor.file], { type: "application/x-npy" }), `${model}-${name.replaceAll("/", "-")}.npy`) }, "Download .npy")),
    h("p", { class: "row" }, h("span", { class: "pill" }, format.shape(tensor.shape)), h("span", { class: "pill" }, dtypeName(tensor.dtype)), h("span", { class: "pill" }, `${tensor.data.length.toLocaleString("en")} ${tensor.data.length === 1 ? "element" : "elements"}`),
      backend && h("span", { class: "pill", title: "Values that compiled kernels keep in registers are computed by numpy." }, `computed by ${backend}`)),
    odd && h("p", { class: "notice bad", role: "alert" }, `${odd} among the values; they are magenta in the pictures.`),
    h("div", { class: "tensor-facts" },
      h("dl", { class: "facts number" }, [["Least", found.min], ["Greatest", found.max], ["Mean", found.mean], ["Deviation", found.deviation]].map(([title, value]) => [h("dt", {}, String(title)), h("dd", {}, format.value(Number(value)))])),
      found.counts.length ? h("div", { "data-counts": found.counts.join(",") }, histogram(found.edges, found.counts, `operand ${name}`)) : h("p", { class: "quiet" }, tensor.data.length ? "No value is finite." : "It has no elements.")),
    tensor.data.length > 0 && tabs(`Form of operand ${name}`, forms, "pictures"));
}

/**
 * @param {import("../../npy.js").Tensor} tensor
 * @param {import("./statistics.js").Statistics} found
 */
function pictures({ shape, data }, found) {
  const { count, height, width } = cut(shape);
  const grid = h("div", { class: height === 1 ? "tiles rows" : "tiles" });
  const shared = h("select", { id: "tile-scale", onchange: draw }, h("option", { value: "shared" }, "the same for all"), h("option", { value: "own" }, "each its own"));
  const grey = h("input", { type: "checkbox", onchange: draw });
  const more = h("button", { class: "plain", onclick: () => { shown += STEP; draw(); } });
  let shown = STEP;
  /** Build the tiles that are shown. */
  function draw() {
    const range = shared.value === "shared" ? { low: found.min, high: found.max } : null;
    const size = height * width;
    fill(grid, Array.from({ length: Math.min(shown, count) }, (_, index) => tile(data.subarray(index * size, (index + 1) * size), height, width, index, range, grey.checked)));
    more.hidden = shown >= count;
    more.textContent = `Show more of ${count.toLocaleString("en")}`;
  }
  draw();
  return h("div", { class: "stack" }, h("div", { class: "row" }, h("label", { for: "tile-scale" }, "Scale"), shared, h("label", { class: "check" }, grey, "Grey"),
    h("span", { class: "help" }, `${count.toLocaleString("en")} of ${height} × ${width}; dark is low, light is high.`)), grid, more);
}
