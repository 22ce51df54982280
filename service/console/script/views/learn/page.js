/**
 * Two lessons to play with: how expressions are computed, and in which order operators run.
 * @module
 */
import { expression } from "./expression.js";
import { schedule } from "./schedule.js";
import { failure, fill, h, stylesheet } from "../../dom.js";

/**
 * Show the page.
 * @param {import("../../app.js").Context} context of the page
 */
export async function show({ root, model, version, state, signal }) {
  void stylesheet("learn");
  const first = h("section", { class: "card stack", "aria-label": "Expressions" });
  const second = h("section", { class: "card stack", "aria-label": "Order of execution" });
  fill(root, h("div", { class: "head" }, h("h1", {}, "Learn"), h("p", {}, "The two hardest parts of an inference engine, to take apart and put together.")), first, second);
  expression(first, state, signal);
  try {
    await schedule(second, model?.name ?? null, version, signal);
  } catch (error) {
    if (!signal.aborted) fill(second, failure(error));
  }
}
