/**
 * Classes as bars, the most probable first.
 * @module
 */
import { h } from "../../dom.js";
import * as format from "../../format.js";

const SHOWN = 10;

/**
 * Build the bars.
 * @param {{label: string, probability: number|string}[]} items classes, most probable first
 * @param {boolean} live whether the response is replaced soon
 */
export function labels(items, live) {
  const [first] = items;
  const shown = items.slice(0, SHOWN);
  return h("div", { class: "stack tight", ...(live ? {} : { "aria-live": "polite" }) },
    h("p", { class: "top" }, h("strong", { class: "top-label" }, first?.label), h("span", { class: "quiet number" }, probability(first?.probability))),
    h("ol", { class: "bars" }, shown.map((item, index) => h("li", { class: index ? "" : "first" },
      h("span", { class: "bar-name" }, item.label),
      h("span", { class: "bar-track", "aria-hidden": "true" }, h("span", { class: "bar-fill", style: { width: `${100 * Math.max(0.002, Number(item.probability) || 0)}%` } })),
      h("span", { class: "bar-number number" }, probability(item.probability))))),
    items.length > SHOWN && h("p", { class: "help" }, `${items.length - SHOWN} more classes are less probable.`));
}

/** @param {number|string|undefined} value @returns {string} */
const probability = (value) => (typeof value === "number" ? format.percent(value) : String(value ?? ""));
