/**
 * Feature maps as pictures, a tile each.
 * @module
 */
import { h } from "../../dom.js";
import { heatColour } from "../../charts/colours.js";
import { statisticsOf } from "./statistics.js";
import * as format from "../../format.js";

/** @typedef {import("../../npy.js").Numbers} Numbers */
/** @typedef {{low: number, high: number}} Range */

const NAN = [255, 0, 144];
/** Most tiles that are built at once. */
export const STEP = 64;

/**
 * How a tensor is cut into tiles: the last two dimensions are rows and columns, the others are numbered through.
 * @param {number[]} shape of the tensor
 * @returns {{count: number, height: number, width: number}}
 */
export function cut(shape) {
  const [height = 1, width = 1] = shape.length > 1 ? shape.slice(-2) : [1, shape[0] ?? 1];
  const count = shape.slice(0, -2).reduce((a, b) => a * b, 1);
  return { count: shape.length > 2 ? count : 1, height, width };
}

/**
 * Build a tile.
 * @param {Numbers} data of the tile
 * @param {number} height rows
 * @param {number} width columns
 * @param {number} index of the tile
 * @param {Range|null} shared range of all tiles; null for the tile's own
 * @param {boolean} grey grey levels in place of colours
 */
export function tile(data, height, width, index, shared, grey) {
  const { min, max, nan, inf } = statisticsOf(data);
  const range = shared ?? { low: min, high: max };
  const canvas = h("canvas", { class: "tile", width, height, role: "img", "data-index": index,
    "aria-label": `Channel ${index}: from ${format.value(min)} to ${format.value(max)}${nan ? `, ${nan} NaN` : ""}` });
  const pen = canvas.getContext("2d");
  pen?.putImageData(pixels(data, height, width, range, grey), 0, 0);
  const odd = nan + inf > 0;
  return h("figure", { class: "tile-frame" }, canvas, h("figcaption", { class: odd ? "odd number" : "number quiet" },
    `${index}`, odd && ` · ${nan ? `${nan} NaN` : ""}${nan && inf ? ", " : ""}${inf ? `${inf} Inf` : ""}`));
}

/**
 * The pixels of a tile: each value on a scale from the range's low end to its high end; NaN and infinite ones in magenta.
 * @param {Numbers} data of the tile
 * @param {number} height rows
 * @param {number} width columns
 * @param {Range} range that the scale spans
 * @param {boolean} grey grey levels in place of colours
 * @returns {ImageData}
 */
export function pixels(data, height, width, { low, high }, grey) {
  const image = new ImageData(width, height);
  const span = high - low || 1;
  for (let at = 0; at < data.length; at += 1) {
    const value = data[at] ?? NaN;
    const part = (value - low) / span;
    const level = Math.round(Math.min(1, Math.max(0, part)) * 255);
    const colour = !Number.isFinite(value) ? NAN : grey ? [level, level, level] : heatColour(part);
    image.data.set([...colour, 255], at * 4);
  }
  return image;
}
