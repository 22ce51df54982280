/**
 * The playground: give a model something, and see its response, and how long that took.
 * @module
 */
import { hint, options } from "./request.js";
import { failure, fill, h, loading, nothing, stylesheet } from "../../dom.js";
import { infer, inputOfFile } from "../../inference.js";
import { remember } from "../../router.js";
import { keepInput, keptInput, modelDetail } from "../../store.js";
import { tabs } from "../../tabs.js";
import * as format from "../../format.js";

/**
 * @typedef {object} Bench what a source of inputs is given
 * @property {import("../../store.js").ModelDetail} model the chosen model
 * @property {string|null} version its version
 * @property {AbortSignal} signal aborted when the page is left
 * @property {(input: import("../../store.js").Input, live?: boolean) => Promise<boolean>} run runs the model on an input;
 *   false where that failed, or another run took its place
 */

/**
 * Show the page.
 * @param {import("../../app.js").Context} context of the page
 */
export async function show({ root, model: summary, version, state, signal }) {
  if (!summary) return;
  void stylesheet("playground");
  const model = await modelDetail(summary.name, version);
  if (signal.aborted) return;
  const response = h("section", { class: "card response", "aria-label": "Response" });
  let current = new AbortController();
  signal.addEventListener("abort", () => current.abort());

  /** @type {Bench["run"]} */
  async function run(input, live = false) {
    current.abort();
    const own = new AbortController();
    current = own;
    const slow = setTimeout(() => fill(response, h("h2", {}, "Response"), loading("The model runs …")), live ? 60_000 : 250);
    const started = performance.now();
    try {
      const sent = options(model, live);
      const result = await infer(model.name, version, input, sent, own.signal);
      if (own.signal.aborted) return false;
      const seconds = performance.now() - started;
      clearTimeout(slow);
      const { showResponse } = await import("./response.js");
      await showResponse(response, { model, version, input, result, options: sent, roundTrip: seconds, live, signal });
      if (!live) await keepInput(model.name, input, result.request_id);
      return true;
    } catch (error) {
      if (own.signal.aborted) return false;
      fill(response, h("h2", {}, "Response"), failure(error), hint(error));
      return false;
    } finally {
      clearTimeout(slow);
    }
  }

  /** @type {Bench} */
  const bench = { model, version, signal, run };
  const sources = sourcesOf(model);
  const input = h("section", { class: "card", "aria-label": "Input" }, h("h2", {}, "Input"));
  fill(root, heading(model), h("div", { class: "columns two" }, input, response));
  fill(response, h("h2", {}, "Response"), nothing("Nothing asked yet", model.state === "ready"
    ? "Give the model something on the left; its response appears here." : `The model is ${model.state}: ${model.reason ?? "load it first"}.`));
  takeFiles(root, run, signal);
  input.append(tabs("Kind of input", sources.map(([name, title, load]) => ({ name, title, show: (panel) => void open(panel, load, bench) })),
    state.get("source"), (name) => remember({ source: name === sources[0]?.[0] ? null : name }, true)));
  const before = keptInput(model.name);
  if (before && state.get("source") !== "camera") void run(before.input);
}

/**
 * Load a kind of input and show it, unless another one was chosen meanwhile.
 * @param {HTMLElement} panel
 * @param {() => Promise<Source>} load
 * @param {Bench} bench
 */
async function open(panel, load, bench) {
  const place = h("div", { class: "stack" });
  panel.append(place);
  try {
    const show = await load();
    if (place.isConnected && !bench.signal.aborted) show(place, bench);
  } catch (error) {
    fill(place, failure(error));
  }
}

/** @typedef {(panel: HTMLElement, bench: Bench) => void} Source shows a kind of input */

/**
 * The kinds of input that a model takes; each is loaded when it is opened.
 * @param {import("../../store.js").ModelDetail} model
 * @returns {[string, string, () => Promise<Source>][]}
 */
function sourcesOf(model) {
  const takes = model.accepts ?? guess(model);
  /** @type {[string, string, () => Promise<Source>][]} */
  const sources = [];
  if (takes.includes("image")) {
    sources.push(["picture", "Picture", async () => (await import("./picture.js")).picture], ["draw", "Draw", async () => (await import("./draw.js")).drawing],
      ["camera", "Camera", async () => (await import("./camera.js")).camera]);
  }
  if (takes.includes("text")) sources.push(["text", "Text", async () => (await import("./text.js")).text]);
  sources.push(["tensor", "Tensor", async () => (await import("./tensor.js")).tensor]);
  return sources;
}

/**
 * What a model takes, where the server does not say: four dimensions with one or three channels look like pictures.
 * @param {import("../../store.js").ModelDetail} model
 * @returns {string[]}
 */
function guess(model) {
  const shape = model.inputs[0]?.shape;
  const pictures = model.inputs.length === 1 && shape?.length === 4 && [1, 3].includes(shape[1] ?? 0);
  return [...(pictures ? ["image"] : []), ...(model.task?.startsWith("text") ? ["text"] : []), "tensor"];
}

/**
 * @param {import("../../store.js").ModelDetail} model
 */
function heading(model) {
  const facts = [
    model.task ? h("span", { class: "pill" }, model.task) : null,
    ...model.inputs.map((port) => h("span", { class: "pill" }, `takes ${format.shape(port.shape)} ${port.dtype ?? ""}`)),
    Boolean(model.parameter_count) && h("span", { class: "pill" }, `${format.count(model.parameter_count)} parameters`),
    model.multiply_adds !== null && h("span", { class: "pill" }, `${format.count(model.multiply_adds)} multiply-adds`),
  ];
  return h("div", { class: "head" }, h("h1", {}, model.name), model.description && h("p", {}, model.description), h("div", { class: "row pills" }, facts));
}

/**
 * Take files that are dropped or pasted anywhere on the page.
 * @param {HTMLElement} root
 * @param {Bench["run"]} run
 * @param {AbortSignal} signal
 */
function takeFiles(root, run, signal) {
  /** @param {DataTransfer|null} data */
  function take(data) {
    const file = data?.files[0];
    if (file) void run(inputOfFile(file));
    return Boolean(file);
  }
  addEventListener("paste", (event) => { if (take(event.clipboardData)) event.preventDefault(); }, { signal });
  addEventListener("dragover", (event) => { event.preventDefault(); root.classList.add("over"); }, { signal });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) root.classList.remove("over"); }, { signal });
  addEventListener("drop", (event) => {
    event.preventDefault();
    root.classList.remove("over");
    take(event.dataTransfer);
  }, { signal });
}
