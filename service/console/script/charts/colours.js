/**
 * Colours of data. Hues are Okabe and Ito's, scales grow steadily in lightness: colour-blind people can distinguish both.
 * @module
 */

const HUES = ["#56b4e9", "#e69f00", "#2fbf8f", "#f0e442", "#cc79a7", "#ff8a50", "#9ad1f5", "#c9c9c9"];

/** @param {number} index @returns {string} one of eight hues, light enough for dark letters */
export const hue = (index) => HUES[((index % HUES.length) + HUES.length) % HUES.length] ?? "#56b4e9";

/** Hues of the stages of a request, on every page. @type {Record<string, number>} */
const STAGES = { queue: 1, decode: 3, run: 6, encode: 2, numpy: 5 };

/** @param {string} name of a stage @returns {string} */
export const stageColour = (name) => hue(STAGES[name] ?? 7);

/** Viridis at nine equal steps, from dark to light. */
const VIRIDIS = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"].map(split);

/** From blue through a pale grey to orange. */
const DIVERGING = ["#08519c", "#4292c6", "#a6cbe3", "#eceff2", "#fdc28b", "#ec7a24", "#a63603"].map(split);

/** @param {string} colour @returns {number[]} */
function split(colour) {
  const number = parseInt(colour.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

/**
 * @param {number[][]} steps
 * @param {number} at from 0 to 1
 * @returns {number[]} red, green and blue
 */
function between(steps, at) {
  const place = Math.min(1, Math.max(0, Number.isFinite(at) ? at : 0)) * (steps.length - 1);
  const low = Math.min(steps.length - 2, Math.floor(place));
  return (steps[low] ?? []).map((value, index) => Math.round(value + ((steps[low + 1]?.[index] ?? value) - value) * (place - low)));
}

/** @param {number} at from 0 to 1 @returns {number[]} red, green and blue */
export const heatColour = (at) => between(VIRIDIS, at);

/** @param {number} at from 0 to 1 @returns {string} */
export const heat = (at) => `rgb(${heatColour(at).join(" ")})`;

/** @param {number} at from -1 to 1 @returns {string} */
export const diverging = (at) => `rgb(${between(DIVERGING, (at + 1) / 2).join(" ")})`;

/**
 * Black or white: what can be read on a colour.
 * @param {number[]} colour red, green and blue
 * @returns {string}
 */
export function ink([red = 0, green = 0, blue = 0]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#10151c" : "#ffffff";
}
