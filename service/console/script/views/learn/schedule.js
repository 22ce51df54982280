/**
 * The breadth-first execution of a graph, operator by operator: what is ready, and what others wait for.
 * @module
 */
import { json, query } from "../../api.js";
import { fill, h, loading } from "../../dom.js";
import { stepper } from "./stepper.js";

/**
 * @typedef {{step: number, operator: string, type: string, inputs: string[], outputs: string[], became_ready: string[],
 *   waits_for: Record<string, number>, ready: string[], ready_count: number}} Step
 */

/**
 * Show the lesson.
 * @param {HTMLElement} root where it is shown
 * @param {string|null} model name of the model
 * @param {string|null} version of it
 * @param {AbortSignal} signal aborted when the page is left
 */
export async function schedule(root, model, version, signal) {
  const head = [h("h2", {}, "In which order operators run"),
    h("p", { class: "quiet" }, "An operator is ready when all of its inputs have met it. The one that has been ready longest runs next: that is breadth-first order.")];
  if (!model) return fill(root, head, h("p", { class: "notice" }, "Choose a model above."));
  fill(root, head, loading("Reading the order of execution …"));
  const found = await json(`/graph/schedule${query({ model, version, first: 0, count: 500 })}`, { signal });
  const steps = /** @type {Step[]} */ (found.steps);
  if (!steps.length) return fill(root, head, h("p", { class: "quiet" }, "The graph has no operators."));
  fill(root, head, h("p", {}, `The graph of ${model} has ${found.operator_count} operators${found.operator_count > steps.length ? `; here are the first ${steps.length}` : ""}.`),
    stepper(steps.length, (index) => show(steps, index, found.ready)));
}

/**
 * @param {Step[]} steps
 * @param {number} index
 * @param {string[]} start operators that are ready before the first step
 */
function show(steps, index, start) {
  const now = steps[index];
  if (!now) return [];
  const before = index ? steps[index - 1]?.ready ?? [] : start;
  return [
    h("div", { class: "schedule" },
      column("Done", steps.slice(Math.max(0, index - 8), index).map(({ operator }) => operator), "done", index > 8 ? `… ${index - 8} before these` : ""),
      h("div", { class: "stack tight" }, h("h3", {}, "Runs now"), h("div", { class: "operator-now" }, h("strong", { class: "mono" }, now.operator), h("span", { class: "quiet" }, now.type),
        h("span", { class: "quiet" }, `takes ${now.inputs.map((name) => `#${name}`).join(", ") || "nothing"}; gives ${now.outputs.map((name) => `#${name}`).join(", ") || "nothing"}`))),
      column("Ready, in this order", now.ready, "ready", now.ready_count > now.ready.length ? `and ${now.ready_count - now.ready.length} more` : "", new Set(now.became_ready)),
      h("div", { class: "stack tight" }, h("h3", {}, "Still wait"), Object.keys(now.waits_for).length
        ? h("ul", { class: "chips" }, Object.entries(now.waits_for).map(([name, missing]) => h("li", { class: "chip waits mono" }, name, h("span", { class: "quiet" }, ` lacks ${missing}`))))
        : h("p", { class: "quiet" }, "None that takes an output of this operator."))),
    h("p", {}, why(now, before)),
  ];
}

/**
 * @param {Step} now
 * @param {string[]} before
 */
function why(now, before) {
  const turn = before.length > 1 ? `${now.operator} was the first of ${before.length} that were ready.` : `${now.operator} was the only one that was ready.`;
  if (!now.outputs.length) return `${turn} It is an end of the graph: nothing waits for it.`;
  return now.became_ready.length ? `${turn} It gave the last input that ${now.became_ready.join(" and ")} lacked.` : `${turn} What takes its output still lacks other inputs.`;
}

/**
 * @param {string} title
 * @param {string[]} names
 * @param {string} look
 * @param {string} more
 * @param {Set<string>} [fresh] those that are new
 */
function column(title, names, look, more, fresh = new Set()) {
  return h("div", { class: "stack tight" }, h("h3", {}, title), more && look === "done" && h("p", { class: "help" }, more),
    names.length ? h("ol", { class: "chips" }, names.slice(0, 12).map((name) => h("li", { class: `chip ${look} mono` }, name, fresh.has(name) && h("span", { class: "pill good" }, "new")))) : h("p", { class: "quiet" }, "None."),
    more && look !== "done" && h("p", { class: "help" }, more), names.length > 12 && h("p", { class: "help" }, `${names.length - 12} more are behind these.`));
}
