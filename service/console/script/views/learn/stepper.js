/**
 * Buttons that go through steps, one after the other.
 * @module
 */
import { fill, h } from "../../dom.js";

/**
 * Build the buttons, and the place where a step is shown.
 * @param {number} count of the steps
 * @param {(index: number) => import("../../dom.js").Child} show what is shown of a step
 * @param {number} [first] step that is shown first
 */
export function stepper(count, show, first = 0) {
  let at = first;
  const slider = h("input", { type: "range", min: 0, max: count - 1, value: String(at), "aria-label": "Step", oninput: () => go(Number(slider.value)) });
  const place = h("span", { class: "number quiet", role: "status" });
  const back = h("button", { class: "small", onclick: () => go(at - 1) }, "Back");
  const next = h("button", { class: "small primary", onclick: () => go(at + 1) }, "Next step");
  const panel = h("div", { class: "stack step" });
  /** @param {number} index */
  function go(index) {
    at = Math.min(count - 1, Math.max(0, index));
    slider.value = String(at);
    place.textContent = `Step ${at + 1} of ${count}`;
    back.disabled = at === 0;
    next.disabled = at === count - 1;
    fill(panel, show(at));
  }
  go(at);
  return h("div", { class: "stack tight" }, h("div", { class: "row" }, back, next, h("span", { class: "grow" }, slider), place), panel);
}
