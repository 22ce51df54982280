/**
 * Numbers as people read them.
 * @module
 */

/** @param {number|null|undefined} ms @returns {string} */
export function milliseconds(ms) {
  if (ms === null || ms === undefined || !Number.isFinite(ms)) return "–";
  if (ms >= 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (ms >= 100) return `${ms.toFixed(0)} ms`;
  if (ms >= 1) return `${ms.toFixed(2)} ms`;
  return `${(ms * 1000).toFixed(ms >= 0.1 ? 0 : 1)} µs`;
}

/** @param {number|null|undefined} bytes @returns {string} */
export function bytes(bytes) {
  if (bytes === null || bytes === undefined) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let size = bytes;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit && size < 100 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** @param {number|null|undefined} count @returns {string} */
export function count(count) {
  if (count === null || count === undefined) return "–";
  for (const [limit, sign] of /** @type {[number, string][]} */ ([[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e4, "k"]])) {
    if (Math.abs(count) >= limit) {
      const scaled = count / (sign === "k" ? 1e3 : limit);
      return `${scaled.toFixed(Math.abs(scaled) < 100 ? 1 : 0)} ${sign}`;
    }
  }
  return count.toLocaleString("en");
}

/** @param {number} share of 1 @returns {string} */
export const percent = (share) => `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`;

/**
 * A value of a tensor. The API writes NaN and the infinities as names.
 * @param {number|string|bigint|null|undefined} value @returns {string}
 */
export function value(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (!Number.isFinite(value) || Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(3) : value.toPrecision(5);
}

/** @param {(number|null)[]|null|undefined} shape @returns {string} */
export function shape(shape) {
  return shape ? shape.map((size) => size ?? "?").join(" × ") || "scalar" : "open";
}

/** @param {number} seconds @returns {string} */
export function duration(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} days`;
}
