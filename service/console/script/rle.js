/**
 * Masks as the run lengths of COCO's tools.
 * @module
 */

/**
 * Decode a mask.
 * @param {{size: [number, number], counts: string|number[]}} mask height and width, and lengths of runs by columns
 * @returns {Uint8Array} 1 where the mask is, by rows
 */
export function decodeMask({ size: [height, width], counts }) {
  const runs = typeof counts === "string" ? lengths(counts) : counts;
  const mask = new Uint8Array(height * width);
  let at = 0;
  runs.forEach((run, index) => {
    const end = Math.min(at + run, mask.length);
    if (index % 2) {
      for (let pixel = at; pixel < end; pixel += 1) mask[(pixel % height) * width + Math.floor(pixel / height)] = 1;
    }
    at = end;
  });
  return mask;
}

/**
 * Six bits to a character, the lowest first; from the third run on the difference to the last but one is written.
 * @param {string} text
 * @returns {number[]}
 */
function lengths(text) {
  /** @type {number[]} */
  const runs = [];
  let at = 0;
  while (at < text.length) {
    let value = 0;
    let shift = 0;
    let more = true;
    while (more && at < text.length) {
      const bits = text.charCodeAt(at) - 48;
      at += 1;
      value |= (bits & 31) << shift;
      more = (bits & 32) !== 0;
      shift += 5;
      if (!more && bits & 16) value |= -1 << shift;
    }
    if (runs.length > 2) value += runs[runs.length - 2] ?? 0;
    runs.push(value);
  }
  return runs;
}
