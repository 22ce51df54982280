/**
 * Lines over time, drawn again with every poll.
 * @module
 */
import { fill, h, s } from "../dom.js";

const WIDTH = 300;
const HEIGHT = 70;

/** @typedef {{name: string, values: (number|null)[]}} Line */

/**
 * Build a chart whose lines can be changed.
 * @param {string} title of the chart
 * @param {string} help one sentence
 * @param {(value: number) => string} write a value
 * @returns {{element: HTMLElement, draw: (lines: Line[], now: string) => void}}
 */
export function lineChart(title, help, write) {
  const svg = s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": title });
  const now = h("p", { class: "chart-now number" });
  const most = h("span", { class: "quiet number" });
  const legend = h("div", { class: "row chart-legend" });
  const element = h("figure", { class: "card chart" }, h("figcaption", { class: "row between" }, h("h3", {}, title), most), now, svg, legend, h("p", { class: "help" }, help));
  return {
    element,
    draw(lines, text) {
      const top = lines.flatMap(({ values }) => values).reduce((/** @type {number} */ a, b) => Math.max(a, b ?? 0), 0);
      now.textContent = text;
      most.textContent = top > 0 ? `up to ${write(top)}` : "";
      svg.setAttribute("aria-label", `${title}: now ${text}, at most ${write(top)} in view`);
      fill(svg, lines.map(({ values }, index) => s("polyline", { class: `chart-line line-${index % 3}`, points: points(values, top || 1) })));
      fill(legend, lines.length > 1 && lines.map(({ name }, index) => h("span", { class: "row legend-kind" }, h("span", { class: `chart-key line-${index % 3}`, "aria-hidden": "true" }), name)));
    },
  };
}

/**
 * @param {(number|null)[]} values
 * @param {number} top
 */
function points(values, top) {
  const step = WIDTH / Math.max(1, values.length - 1);
  const known = values.flatMap((value, index) => (value === null ? [] : [`${(index * step).toFixed(1)},${(HEIGHT - 2 - (value / top) * (HEIGHT - 6)).toFixed(1)}`]));
  // a line needs two points, also where they are the same
  return (known.length === 1 ? [...known, ...known] : known).join(" ");
}
