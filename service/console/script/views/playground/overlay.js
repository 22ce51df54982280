/**
 * What was found, drawn over the picture: boxes, masks, points. The slider filters without another request.
 * @module
 */
import { LEAST, responsesBoxes } from "./request.js";
import { fill, h } from "../../dom.js";
import { hue } from "../../charts/colours.js";
import { decodeMask } from "../../rle.js";
import * as format from "../../format.js";

/**
 * @typedef {{label: string, index: number, probability?: number, box: number[], area?: number|null, share?: number,
 *   points?: number[][], corners?: number[][], mask?: any, rle?: any}} Found
 * @typedef {{boxes: boolean, masks: boolean, names: boolean, points: boolean}} Shown
 */

/** What is shown of responses, over all runs of this page. */
const kept = { threshold: /** @type {Map<string, number>} */ (new Map()), shown: { boxes: true, masks: true, names: true, points: true } };

/**
 * Build the picture with what was found in it.
 * @param {import("./response.js").RunResponse} answered run
 */
export async function overlay({ model, result, input }) {
  const bitmap = await createImageBitmap(/** @type {Blob} */ (input.body));
  const items = result.predictions[0];
  /** @type {Found[]} */
  const found = (items[0]?.regions ?? items).map((/** @type {any} */ item) => ("text" in item ? { ...item, label: item.text, index: 0 } : item));
  const canvas = h("canvas", { class: "picture", role: "img" });
  const table = h("tbody", {});
  const summary = h("p", { class: "found", role: "status" });
  const filters = responsesBoxes(model);
  const usual = Number(model.task_defaults?.confidence ?? 0.25);
  const threshold = h("input", { type: "range", id: "threshold", min: LEAST, max: 1, step: 0.01, value: String(kept.threshold.get(model.name) ?? usual) });
  const least = h("output", { for: "threshold", class: "number" });

  /** Show what is at least as probable as the slider says. */
  function draw() {
    const limit = filters ? Number(threshold.value) : 0;
    if (filters) kept.threshold.set(model.name, limit);
    least.textContent = format.percent(limit);
    const chosen = found.filter(({ probability }) => probability === undefined || probability >= limit);
    paint(canvas, bitmap, chosen, kept.shown, model);
    const words = chosen.length ? wordsOf(chosen) : "nothing";
    canvas.setAttribute("aria-label", `The picture, with what was found: ${words}`);
    summary.textContent = chosen.length ? `Found: ${words}` : filters && found.length ? "Nothing is this probable: move the slider down." : "Nothing was found.";
    fill(table, chosen.map((item) => rowOf(item)));
  }
  threshold.addEventListener("input", draw);
  /** @type {[keyof Shown, string, boolean][]} */
  const choices = [["boxes", "Boxes", true], ["names", "Labels", !found.some(({ corners }) => corners)], ["masks", "Masks", found.some(({ mask, rle }) => mask || rle)], ["points", "Points", found.some(({ points }) => points)]];
  draw();
  const percentName = filters ? "Probability" : "Share";
  return h("div", { class: "stack" }, canvas,
    h("div", { class: "row" },
      ...choices.filter(([, , there]) => there).map(([name, title]) => h("label", { class: "check" }, h("input", {
        type: "checkbox", checked: kept.shown[name], onchange: (/** @type {Event} */ event) => { kept.shown[name] = /** @type {HTMLInputElement} */ (event.target).checked; draw(); },
      }), title)),
      filters && h("div", { class: "row slider" }, h("label", { for: "threshold" }, "At least"), threshold, least)),
    summary,
    h("details", { "data-name": "found" }, h("summary", {}, "As a table"), h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Label"), h("th", { scope: "col", class: "number" }, percentName), h("th", { scope: "col" }, "Left, top, right, bottom"))), table))));
}

/**
 * What was found, in words: names, or lines of text below one another.
 * @param {Found[]} found
 */
function wordsOf(found) {
  if (!found[0]?.corners) return found.map(({ label }) => label).join(", ");
  return found.map(({ label }) => label).filter(Boolean).join("\n") || `${found.length} ${found.length === 1 ? "line" : "lines"} of text`;
}

/** @param {Found} item */
function rowOf(item) {
  const part = item.probability ?? item.share;
  return h("tr", {}, h("td", {}, item.label), h("td", { class: "number" }, part === undefined ? "–" : format.percent(part)),
    h("td", { class: "mono box" }, item.box.map(Math.round).join(", ")));
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {ImageBitmap} bitmap
 * @param {Found[]} found
 * @param {Shown} shown
 * @param {import("../../store.js").ModelDetail} model
 */
function paint(canvas, bitmap, found, shown, model) {
  // drawn larger than small pictures are, so that letters are sharp
  const scale = Math.min(4, Math.max(1, 1400 / Math.max(bitmap.width, bitmap.height)));
  canvas.width = Math.round(bitmap.width * scale);
  canvas.height = Math.round(bitmap.height * scale);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const unit = Math.max(canvas.width, canvas.height) / 1000;
  if (shown.masks) for (const item of found) paintMask(pen, item, scale);
  for (const item of [...found].reverse()) {
    const colour = hue(item.index);
    if (shown.boxes) paintBox(pen, item.corners ?? cornersOf(item.box), scale, colour, unit);
    if (shown.points && item.points) paintPoints(pen, item.points, scale, unit, model.skeleton ?? null);
    if (shown.names && !item.corners) paintName(pen, item, scale, colour, unit);
  }
}

/**
 * @param {number[]} box
 * @returns {number[][]}
 */
function cornersOf([left = 0, top = 0, right = 0, bottom = 0]) {
  return [[left, top], [right, top], [right, bottom], [left, bottom]];
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number[][]} corners
 * @param {number} scale
 * @param {string} colour
 * @param {number} unit
 */
function paintBox(pen, corners, scale, colour, unit) {
  pen.beginPath();
  for (const [x = 0, y = 0] of corners) pen.lineTo(x * scale, y * scale);
  pen.closePath();
  pen.lineJoin = "round";
  // a dark line below the coloured one can be seen on any picture
  pen.strokeStyle = "rgb(0 0 0 / 65%)";
  pen.lineWidth = 7 * unit;
  pen.stroke();
  pen.strokeStyle = colour;
  pen.lineWidth = 4 * unit;
  pen.stroke();
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {Found} item
 * @param {number} scale
 * @param {string} colour
 * @param {number} unit
 */
function paintName(pen, item, scale, colour, unit) {
  const text = item.probability === undefined ? item.label : `${item.label}  ${format.percent(item.probability)}`;
  pen.font = `600 ${28 * unit}px ${getComputedStyle(document.body).fontFamily}`;
  const width = pen.measureText(text).width + 16 * unit;
  const height = 38 * unit;
  const left = Math.max(0, Math.min((item.box[0] ?? 0) * scale - 2 * unit, pen.canvas.width - width));
  const above = (item.box[1] ?? 0) * scale - height;
  const top = above < 0 ? (item.box[1] ?? 0) * scale : above;
  pen.fillStyle = colour;
  pen.fillRect(left, top, width, height);
  pen.fillStyle = "#10151c";
  pen.textBaseline = "middle";
  pen.fillText(text, left + 8 * unit, top + height / 2);
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {Found} item
 * @param {number} scale
 */
function paintMask(pen, item, scale) {
  const coded = item.mask ?? item.rle;
  if (!coded?.size) return;
  const [height, width] = coded.size;
  const image = new ImageData(width, height);
  const colour = parseInt(hue(item.index).slice(1), 16);
  decodeMask(coded).forEach((inside, at) => {
    if (inside) image.data.set([colour >> 16, (colour >> 8) & 255, colour & 255, 150], at * 4);
  });
  const layer = new OffscreenCanvas(width, height);
  layer.getContext("2d")?.putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(layer, 0, 0, width * scale, height * scale);
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number[][]} points
 * @param {number} scale
 * @param {number} unit
 * @param {number[][]|null} skeleton
 */
function paintPoints(pen, points, scale, unit, skeleton) {
  const sure = points.map(([x = 0, y = 0, probability = 1]) => (probability >= 0.5 ? [x * scale, y * scale] : null));
  pen.lineWidth = 4 * unit;
  pen.strokeStyle = "#ffffff";
  for (const [from = 0, to = 0] of skeleton ?? []) {
    const [a, b] = [sure[from], sure[to]];
    if (!a || !b) continue;
    pen.beginPath();
    pen.moveTo(a[0] ?? 0, a[1] ?? 0);
    pen.lineTo(b[0] ?? 0, b[1] ?? 0);
    pen.stroke();
  }
  sure.forEach((point, index) => {
    if (!point) return;
    pen.beginPath();
    pen.arc(point[0] ?? 0, point[1] ?? 0, 8 * unit, 0, 7);
    pen.fillStyle = hue(index);
    pen.fill();
    pen.stroke();
  });
}
