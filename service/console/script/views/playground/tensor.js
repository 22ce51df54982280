/**
 * Tensors: random ones, typed ones, or a file's.
 * @module
 */
import { json, query } from "../../api.js";
import { h } from "../../dom.js";
import { inputOfFile } from "../../inference.js";
import { generator, idsOf } from "../../invented.js";
import { DTYPES, writeNpy } from "../../npy.js";
import { writeNpz } from "../../npz.js";
import { tabs } from "../../tabs.js";

/** @typedef {import("../../store.js").Port} Port */
/** @typedef {import("./page.js").Bench} Bench */

/** Most elements of a random tensor: the page would stand still for longer ones. */
const MOST = 50_000_000;

/**
 * Show the three ways.
 * @param {HTMLElement} panel where it draws
 * @param {Bench} bench of the page
 */
export function tensor(panel, bench) {
  panel.append(tabs("Where the tensor comes from", [
    { name: "random", title: "Random", show: (inner) => random(inner, bench) },
    { name: "typed", title: "Typed", show: (inner) => typed(inner, bench) },
    { name: "file", title: "From a file", show: (inner) => file(inner, bench) },
  ], "random"));
}

/**
 * @param {HTMLElement} panel
 * @param {Bench} bench
 */
function random(panel, { model, version, run }) {
  const fields = model.inputs.map((port, index) => ({
    port,
    shape: h("input", { id: `shape-${index}`, class: "mono", value: (port.shape ?? [1]).map((size) => size ?? 1).join(", ") }),
  }));
  const kind = h("select", { id: "random-kind" },
    h("option", { value: "uniform" }, "between 0 and 1"), h("option", { value: "normal" }, "normal, mean 0 and deviation 1"),
    h("option", { value: "zeros" }, "all 0"), h("option", { value: "ones" }, "all 1"));
  const seed = h("input", { id: "random-seed", type: "number", value: "1", min: 0, step: 1, class: "short" });
  const problem = h("p", { class: "notice bad", role: "alert", hidden: true });
  /** Make the tensors and ask the model. */
  async function ask() {
    problem.hidden = true;
    try {
      const graph = kind.value === "uniform" && model.inputs.some(({ dtype }) => /[iu]\d/.test(dtype ?? "")) ? await json(`/graph${query({ model: model.name, version })}`) : null;
      const next = generator(Number(seed.value), kind.value);
      const files = fields.map(({ port, shape }) =>
        /** @type {[string, Uint8Array<ArrayBuffer>]} */ ([port.operand, array(port, shape.value, next, graph ? idsOf(graph, port.operand) : 0)]));
      const [first] = files;
      const single = files.length === 1 && first;
      const body = single ? new Blob([single[1]], { type: "application/x-npy" }) : writeNpz(files);
      void run({ body, type: body.type, name: single ? "random.npy" : "random.npz", kind: "tensor" });
    } catch (error) {
      problem.textContent = error instanceof Error ? error.message : String(error);
      problem.hidden = false;
    }
  }
  panel.append(
    ...fields.map(({ port, shape }) => h("div", { class: "field" },
      h("label", { for: shape.id }, `Shape of ${port.name}`, h("span", { class: "quiet" }, ` (${port.dtype ?? "any dtype"})`)), shape)),
    h("div", { class: "row end" },
      h("div", { class: "field" }, h("label", { for: "random-kind" }, "Values"), kind),
      h("div", { class: "field" }, h("label", { for: "random-seed" }, "Seed"), seed),
      h("button", { class: "primary", onclick: ask }, "Run")),
    problem,
    h("p", { class: "help" }, "The same seed gives the same tensor."));
}

/**
 * @param {Port} port
 * @param {string} text
 * @param {() => number} next
 * @param {number} count of the ids that whole numbers may be; 0 for numbers as they come
 */
function array(port, text, next, count) {
  const shape = text.split(/[\s,×x]+/).filter(Boolean).map(Number);
  const size = shape.reduce((a, b) => a * b, 1);
  if (!shape.every((entry) => Number.isInteger(entry) && entry >= 0)) throw new Error(`The shape of ${port.name} is a list of whole numbers, such as 1, 3, 224, 224.`);
  if (size > MOST) throw new Error(`The shape of ${port.name} has more than ${MOST.toLocaleString("en")} elements.`);
  const dtype = DTYPES[port.dtype ?? "f32"] ?? "<f4";
  const whole = !dtype.includes("f");
  const values = new Float64Array(size);
  for (let index = 0; index < size; index += 1) values[index] = whole && count ? Math.floor(next() * count) : next();
  return writeNpy(shape, dtype, values);
}

/**
 * @param {HTMLElement} panel
 * @param {Bench} bench
 */
function typed(panel, { model, run }) {
  const form = h("select", { id: "typed-form" }, h("option", { value: "application/json" }, "JSON"), h("option", { value: "text/csv" }, "CSV"));
  const field = h("textarea", { id: "typed", spellcheck: "false", rows: 10 });
  /** Begin with what the model takes. */
  function example() {
    field.value = form.value === "text/csv" ? "0.1,0.2,0.3" : template(model.inputs);
  }
  form.addEventListener("change", example);
  example();
  panel.append(
    h("div", { class: "row" }, h("label", { for: "typed-form" }, "Written as"), form),
    h("div", { class: "field" }, h("label", { for: "typed" }, "Tensor"), field),
    h("div", { class: "row" }, h("button", { class: "primary", onclick: () => {
      const name = form.value === "text/csv" ? "tensor.csv" : "tensor.json";
      void run({ body: field.value, type: form.value, name, kind: "tensor" });
    } }, "Run"), h("span", { class: "help" }, "JSON writes NaN and infinities as strings: \"NaN\", \"-Infinity\".")));
}

/**
 * @param {Port[]} ports
 * @returns {string}
 */
function template(ports) {
  const inputs = ports.map((port) => {
    const shape = (port.shape ?? [1]).map((size) => size ?? 1);
    const size = shape.reduce((a, b) => a * b, 1);
    return { name: port.operand, shape, dtype: port.dtype ?? "f32", data: size <= 4096 ? Array(size).fill(0) : [] };
  });
  return `{"inputs": [\n${inputs.map((input) => `  ${JSON.stringify(input)}`).join(",\n")}\n]}`;
}

/**
 * @param {HTMLElement} panel
 * @param {Bench} bench
 */
function file(panel, { run }) {
  const chooser = h("input", {
    type: "file", id: "tensor-file", accept: ".npy,.npz,.json,.csv",
    onchange: () => {
      const chosen = chooser.files?.[0];
      chooser.value = ""; // the same file may be chosen once more
      if (chosen) void run({ ...inputOfFile(chosen), kind: "tensor" });
    },
  });
  panel.append(h("div", { class: "field" }, h("label", { for: "tensor-file" }, "File"), chooser),
    h("p", { class: "help" }, ".npy for a model’s only input; .npz with an array for each input, by name; JSON; CSV for two dimensions."));
}
