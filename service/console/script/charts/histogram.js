/**
 * A histogram.
 * @module
 */
import { h, s } from "../dom.js";
import * as format from "../format.js";

const WIDTH = 400;
const HEIGHT = 96;

/**
 * Build a histogram, with its ends in numbers.
 * @param {number[]} edges of the classes, ascending
 * @param {number[]} counts one fewer than edges
 * @param {string} label what is counted
 */
export function histogram(edges, counts, label) {
  const most = Math.max(1, ...counts);
  const step = WIDTH / counts.length;
  const [low = 0, high = 0] = [edges[0], edges.at(-1)];
  const bars = counts.map((count, index) => {
    const height = count ? Math.max(1.5, (count / most) * HEIGHT) : 0;
    return s("rect", { x: index * step, y: HEIGHT - height, width: Math.max(0.5, step - 1), height, class: "histogram-bar" },
      s("title", {}, `${format.value(edges[index])} to ${format.value(edges[index + 1])}: ${count.toLocaleString("en")}`));
  });
  const zero = low < 0 && high > 0 ? (-low / (high - low)) * WIDTH : null;
  return h("figure", { class: "histogram" },
    s("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", preserveAspectRatio: "none",
      "aria-label": `Histogram of ${label}: from ${format.value(low)} to ${format.value(high)}, at most ${most} in a class` },
    ...bars, zero !== null && s("line", { x1: zero, x2: zero, y1: 0, y2: HEIGHT, class: "histogram-zero" })),
    h("figcaption", { class: "row between number quiet" }, h("span", {}, format.value(low)), zero !== null && h("span", {}, "0 is marked"), h("span", {}, format.value(high))));
}
