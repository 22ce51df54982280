/**
 * A canvas to draw on: dark strokes on white.
 * @module
 */
import { h } from "../../dom.js";

const SIZE = 280;

/**
 * Show the canvas.
 * @param {HTMLElement} panel where it draws
 * @param {import("./page.js").Bench} bench of the page
 */
export function drawing(panel, { run }) {
  const canvas = h("canvas", {
    width: SIZE, height: SIZE, class: "drawing", tabindex: 0, role: "application",
    "aria-label": "Canvas. Draw with the mouse or a finger; with the keyboard, arrows move the pen and Shift with arrows draws.",
  });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
  const width = h("input", { type: "range", min: 4, max: 48, value: "22", id: "pen-width" });
  /** @type {ImageData[]} */
  const undo = [];
  let at = { x: SIZE / 2, y: SIZE / 2 };
  let timer = 0;

  /** Make the canvas white. */
  function clear() {
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, SIZE, SIZE);
  }
  /** @param {{x: number, y: number}} to */
  function stroke(to) {
    pen.strokeStyle = "#111";
    pen.lineCap = "round";
    pen.lineJoin = "round";
    pen.lineWidth = Number(width.value);
    pen.beginPath();
    pen.moveTo(at.x, at.y);
    pen.lineTo(to.x, to.y);
    pen.stroke();
    at = to;
  }
  /** Keep what was there, for undo. */
  function begin() {
    undo.push(pen.getImageData(0, 0, SIZE, SIZE));
    if (undo.length > 20) undo.shift();
  }
  /** Ask the model when the pen has rested for a moment. */
  function ask() {
    clearTimeout(timer);
    timer = setTimeout(() => canvas.toBlob((blob) => {
      if (blob) void run({ body: blob, type: "image/png", name: "drawing.png", kind: "picture" });
    }), 120);
  }
  /** @param {PointerEvent} event */
  function point(event) {
    const box = canvas.getBoundingClientRect();
    return { x: ((event.clientX - box.left) * SIZE) / box.width, y: ((event.clientY - box.top) * SIZE) / box.height };
  }
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    begin();
    at = point(event);
    stroke(at);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons & 1) for (const step of event.getCoalescedEvents?.() ?? [event]) stroke(point(step));
  });
  canvas.addEventListener("pointerup", ask);
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-8, 0], ArrowRight: [8, 0], ArrowUp: [0, -8], ArrowDown: [0, 8] }[event.key];
    if (!step) return;
    event.preventDefault();
    const to = { x: clamp(at.x + (step[0] ?? 0)), y: clamp(at.y + (step[1] ?? 0)) };
    if (event.shiftKey) {
      begin();
      stroke(to);
      ask();
    } else at = to;
  });
  clear();
  panel.append(
    canvas,
    h("div", { class: "row" },
      h("label", { for: "pen-width" }, "Pen width"), width,
      h("button", { class: "small", onclick: () => { const last = undo.pop(); if (last) { pen.putImageData(last, 0, 0); ask(); } } }, "Undo"),
      h("button", { class: "small", onclick: () => { begin(); clear(); } }, "Clear")),
    h("p", { class: "help" }, "The model is asked each time the pen rests."));
}

/** @param {number} position @returns {number} */
const clamp = (position) => Math.min(SIZE, Math.max(0, position));
