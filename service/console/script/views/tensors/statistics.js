/**
 * What the numbers of a tensor are like.
 * @module
 */

/** @typedef {import("../../npy.js").Numbers} Numbers */
/**
 * @typedef {{min: number, max: number, mean: number, deviation: number, nan: number, inf: number, edges: number[], counts: number[]}} Statistics
 */

const CLASSES = 48;

/**
 * Compute the statistics of numbers; of NaN and infinite ones only how many there are.
 * @param {Numbers} data the numbers
 * @returns {Statistics}
 */
export function statisticsOf(data) {
  let [min, max, sum, squares, nan, inf] = [Infinity, -Infinity, 0, 0, 0, 0];
  for (const value of data) {
    if (Number.isNaN(value)) nan += 1;
    else if (!Number.isFinite(value)) inf += 1;
    else {
      if (value < min) min = value;
      if (value > max) max = value;
      sum += value;
    }
  }
  const finite = data.length - nan - inf;
  const mean = finite ? sum / finite : NaN;
  // where all are the same there is one class, which begins and ends there
  const classes = !finite ? 0 : max > min ? CLASSES : 1;
  const counts = Array(classes).fill(0);
  const width = (max - min) / CLASSES || 1;
  for (const value of data) {
    if (!Number.isFinite(value)) continue;
    squares += (value - mean) ** 2;
    counts[Math.min(classes - 1, Math.floor((value - min) / width))] += 1;
  }
  const edges = finite ? Array.from({ length: classes + 1 }, (_, index) => (index === classes ? max : min + width * index)) : [];
  return { min: finite ? min : NaN, max: finite ? max : NaN, mean, deviation: finite ? Math.sqrt(squares / finite) : NaN, nan, inf, edges, counts };
}
