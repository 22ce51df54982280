/**
 * Why the model predicts something: a picture with a heatmap, or the words of a text.
 * @module
 */
import { failure, fill, h, loading } from "../../dom.js";
import { explain } from "../../inference.js";
import * as format from "../../format.js";

const TASKS = ["classification", "detection", "text-classification"];
const MOST = 8;

/**
 * A button that explains one of the predictions.
 * @param {import("./response.js").RunResponse} answered
 * @returns {HTMLElement|null} null where there is nothing to explain
 */
export function why({ model, version, input, result, signal }) {
  const found = result.predictions?.[0] ?? [];
  if (!TASKS.includes(model.task ?? "") || result.predictions?.length !== 1 || !found.length) return null;
  const choice = h("select", { "aria-label": "Prediction" }, found.slice(0, MOST).map((/** @type {any} */ one, /** @type {number} */ place) =>
    h("option", { value: String(place) }, `${one.label} ${format.percent(one.probability)}`)));
  const method = h("select", { "aria-label": "Method" }, h("option", { value: "occlusion" }, "occlusion"), h("option", { value: "score-cam" }, "Score-CAM"));
  const shown = h("div", { class: "why stack tight" });
  const button = h("button", { class: "small", onclick: () => void show() }, "Explain");

  /** Ask for the explanation, and show it. */
  async function show() {
    button.disabled = true;
    fill(shown, loading("The model runs on changed inputs …"));
    const options = { place: choice.value, ...(isText ? {} : { method: method.value }) };
    try {
      fill(shown, view(await explain(model.name, version, input, options, signal)));
    } catch (error) {
      if (!signal.aborted) fill(shown, failure(error));
    } finally {
      button.disabled = false;
    }
  }
  const isText = model.task === "text-classification";
  return h("details", { "data-name": "why" }, h("summary", {}, "Why?"),
    h("div", { class: "stack" }, h("div", { class: "row" }, choice, !isText && method, button), shown));
}

/**
 * @param {any} found the explanation, as `:explain` gives it
 * @returns {HTMLElement}
 */
function view(found) {
  const about = h("p", { class: "help" }, `${found.target.label}: ${found.runs} runs. Red raises the score, blue lowers it.`);
  if (found.overlay) {
    const source = `data:image/png;base64,${found.overlay}`;
    return h("div", { class: "stack tight" }, h("img", { class: "picture", src: source, alt: `Where ${found.target.label} comes from` }), about);
  }
  if (!found.words) return h("p", { class: "help" }, "The input is no picture; the heatmap is in the response of the API.");
  const most = Math.max(...found.words.map((/** @type {any} */ word) => Math.abs(word.importance)), 1e-9);
  return h("div", { class: "stack tight" }, h("p", { class: "read" }, found.words.map((/** @type {any} */ word) => {
    const share = Math.round((100 * Math.abs(word.importance)) / most);
    const colour = word.importance < 0 ? "var(--hue-2)" : "var(--hue-4)";
    return h("span", { class: "word", title: format.value(word.importance), style: { background: `color-mix(in srgb, ${colour} ${share / 2}%, transparent)` } }, word.text);
  })), about);
}
