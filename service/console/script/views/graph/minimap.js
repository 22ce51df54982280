/**
 * The whole graph in a corner, and which part of it is in view.
 * @module
 */
import { h } from "../../dom.js";
import { colour } from "../../theme.js";

const MOST = { width: 150, height: 190 };

/**
 * Build the map.
 * @param {import("./canvas.js").GraphCanvas} graph that it follows
 * @returns {{element: HTMLCanvasElement, draw: () => void, repaint: () => void}} repaint after colours have changed
 */
export function minimap(graph) {
  const { layout } = graph.drawing;
  const scale = Math.min(MOST.width / layout.width, MOST.height / layout.height);
  const size = { width: Math.max(26, Math.ceil(layout.width * scale)), height: Math.max(26, Math.ceil(layout.height * scale)) };
  const element = h("canvas", { class: "minimap", "aria-hidden": "true", style: { width: `${size.width}px`, height: `${size.height}px` } });
  const dense = devicePixelRatio || 1;
  element.width = size.width * dense;
  element.height = size.height * dense;
  const whole = new OffscreenCanvas(element.width, element.height);

  /** Draw all nodes once; moving the view then costs nothing. */
  function repaint() {
    const pen = /** @type {OffscreenCanvasRenderingContext2D} */ (whole.getContext("2d"));
    pen.clearRect(0, 0, whole.width, whole.height);
    for (const node of layout.nodes) {
      pen.fillStyle = graph.looks.get(node.id)?.fill ?? colour("line-strong");
      pen.fillRect(node.x * scale * dense, node.y * scale * dense, Math.max(2, node.width * scale * dense), Math.max(1.5, node.height * scale * dense));
    }
    draw();
  }
  /** Draw the frame of the view. */
  function draw() {
    element.hidden = graph.isWhole;
    const pen = /** @type {CanvasRenderingContext2D} */ (element.getContext("2d"));
    pen.clearRect(0, 0, element.width, element.height);
    pen.drawImage(whole, 0, 0);
    pen.strokeStyle = colour("accent");
    pen.lineWidth = 2 * dense;
    const unit = (scale * dense) / graph.scale;
    const { width, height } = graph.size;
    pen.strokeRect(Math.max(1, -graph.x * unit), Math.max(1, -graph.y * unit), Math.min(element.width - 2, width * unit), Math.min(element.height - 2, height * unit));
  }
  /** @param {PointerEvent} event */
  function jump(event) {
    const { width, height } = graph.size;
    graph.x = width / 2 - (event.offsetX / scale) * graph.scale;
    graph.y = height / 2 - (event.offsetY / scale) * graph.scale;
    graph.changed();
  }
  element.addEventListener("pointerdown", (event) => { element.setPointerCapture(event.pointerId); jump(event); });
  element.addEventListener("pointermove", (event) => { if (event.buttons & 1) jump(event); });
  return { element, draw, repaint };
}
