/**
 * Spans on a canvas, a row per thread; it zooms and pans.
 * @module
 */
import { hue, stageColour } from "../../charts/colours.js";
import { h } from "../../dom.js";
import { colour } from "../../theme.js";
import * as format from "../../format.js";

/** @typedef {import("./spans.js").Span} Span */

const LINE = 30;
const GAP = 14;
const TITLE = 20;
const AXIS = 26;


/** A canvas of spans. */
export class Flame {
  /**
   * @param {import("./spans.js").Spans} spans to draw
   * @param {(span: Span|null) => void} pick called with the chosen one
   */
  constructor(spans, pick) {
    this.spans = spans;
    this.pick = pick;
    this.from = 0;
    this.to = spans.total;
    /** @type {Span|null} */
    this.chosen = null;
    this.tip = h("div", { class: "tip", hidden: true });
    this.tops = this.placeRows();
    this.element = h("canvas", { class: "flame", tabindex: 0, role: "application",
      "aria-label": "Timeline of the run. Left and right go from span to span, plus and minus zoom, 0 shows all. The table below holds the same." });
    this.element.style.height = `${this.height}px`;
    this.pen = /** @type {CanvasRenderingContext2D} */ (this.element.getContext("2d"));
    this.types = [...new Set(spans.spans.map(({ detail, layer }) => (layer ? detail : "")))].filter(Boolean);
    this.listen();
  }

  /** @returns {number[]} upper side of each row */
  placeRows() {
    let top = AXIS;
    const tops = this.spans.rows.map(({ depth }) => {
      const at = top + TITLE;
      top = at + depth * LINE + GAP;
      return at;
    });
    this.height = top;
    return tops;
  }

  /** Pixels per millisecond. */
  get unit() {
    return (this.element.clientWidth || 1) / (this.to - this.from);
  }

  /**
   * Where a span is drawn, in pixels of the page.
   * @param {Span} span one of the spans
   * @returns {{left: number, top: number, width: number, height: number}}
   */
  place(span) {
    return { left: (span.start - this.from) * this.unit, top: (this.tops[span.row] ?? 0) + span.depth * LINE, width: (span.end - span.start) * this.unit, height: LINE - 3 };
  }

  /** Draw what is in view. */
  draw() {
    const { pen, element } = this;
    const dense = devicePixelRatio || 1;
    const [width, height] = [element.clientWidth, element.clientHeight];
    element.width = Math.round(width * dense);
    element.height = Math.round(height * dense);
    pen.scale(dense, dense);
    this.drawAxis(width, height);
    pen.textBaseline = "middle";
    this.spans.rows.forEach(({ title }, index) => {
      pen.fillStyle = colour("quiet");
      pen.font = "600 12px system-ui, sans-serif";
      pen.fillText(title, 4, (this.tops[index] ?? 0) - TITLE / 2);
    });
    for (const span of this.spans.spans) this.drawSpan(span, width);
  }

  /**
   * @param {Span} span
   * @param {number} viewWidth
   */
  drawSpan(span, viewWidth) {
    const { pen } = this;
    const { left, top, width, height } = this.place(span);
    if (left > viewWidth || left + width < 0) return;
    const shown = Math.max(1, width > 3 ? width - 1 : width);
    pen.fillStyle = span.layer && span.kind !== "numpy" ? hue(this.types.indexOf(span.detail)) : stageColour(span.kind);
    pen.fillRect(left, top, shown, height);
    if (span === this.chosen) {
      pen.strokeStyle = colour("text");
      pen.lineWidth = 2.5;
      pen.strokeRect(left + 1, top + 1, Math.max(1, shown - 2), height - 2);
    }
    const inside = Math.min(left + width, viewWidth) - Math.max(0, left);
    if (inside < 26) return;
    pen.save();
    pen.beginPath();
    pen.rect(Math.max(0, left), top, inside - 3, height);
    pen.clip();
    pen.fillStyle = "#10151c";
    pen.font = "12px system-ui, sans-serif";
    pen.fillText(`${span.name}  ${format.milliseconds(span.end - span.start)}`, Math.max(0, left) + 6, top + height / 2);
    pen.restore();
  }

  /**
   * @param {number} width
   * @param {number} height
   */
  drawAxis(width, height) {
    const { pen } = this;
    const rough = (this.to - this.from) / Math.max(2, width / 120);
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
    pen.font = "11px system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.lineWidth = 1;
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = (at - this.from) * this.unit;
      pen.strokeStyle = colour("line");
      pen.beginPath();
      pen.moveTo(x, AXIS - 6);
      pen.lineTo(x, height);
      pen.stroke();
      pen.fillStyle = colour("quiet");
      pen.fillText(at === 0 ? "0" : format.milliseconds(at), x + 3, 10);
    }
  }

  /** @param {number} from @param {number} to milliseconds that are shown */
  show(from, to) {
    const span = Math.min(this.spans.total, Math.max(this.spans.total / 1e5, to - from));
    this.from = Math.min(Math.max(0, from), this.spans.total - span);
    this.to = this.from + span;
    this.draw();
  }

  /** @param {number} factor @param {number} [x] pixel that stays where it is */
  zoom(factor, x = this.element.clientWidth / 2) {
    const at = this.from + x / this.unit;
    this.show(at - (at - this.from) / factor, at + (this.to - at) / factor);
  }

  /** @param {Span|null} span to choose, and to bring into view */
  choose(span) {
    this.chosen = span;
    if (span && (span.end < this.from || span.start > this.to)) {
      const half = (this.to - this.from) / 2;
      this.show((span.start + span.end) / 2 - half, (span.start + span.end) / 2 + half);
    } else this.draw();
    this.pick(span);
  }

  /** @param {MouseEvent} event @returns {Span|null} */
  hit(event) {
    return this.spans.spans.findLast((span) => {
      const { left, top, width, height } = this.place(span);
      return event.offsetX >= left - 1 && event.offsetX <= left + Math.max(2, width) && event.offsetY >= top && event.offsetY <= top + height;
    }) ?? null;
  }

  /** Follow mouse, fingers, wheel and keys. */
  listen() {
    const { element } = this;
    let travelled = 0;
    element.addEventListener("pointerdown", (event) => { element.setPointerCapture(event.pointerId); travelled = 0; });
    element.addEventListener("pointermove", (event) => {
      if (event.buttons & 1) {
        travelled += Math.abs(event.movementX);
        const moved = event.movementX / this.unit;
        this.show(this.from - moved, this.to - moved);
      }
      this.showTip(event, this.hit(event));
    });
    element.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    element.addEventListener("click", (event) => { if (travelled < 5) this.choose(this.hit(event)); });
    element.addEventListener("dblclick", (event) => {
      const span = this.hit(event);
      if (span) this.show(span.start - (span.end - span.start) * 0.1, span.end + (span.end - span.start) * 0.1);
    });
    element.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.deltaX && !event.shiftKey) return;
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(-event.deltaY / 240), event.offsetX);
      else this.show(this.from + (event.deltaX || event.deltaY) / this.unit, this.to + (event.deltaX || event.deltaY) / this.unit);
    }, { passive: false });
    element.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {MouseEvent} event @param {Span|null} span */
  showTip(event, span) {
    this.tip.hidden = !span;
    if (!span) return;
    this.tip.textContent = `${span.name} · ${format.milliseconds(span.end - span.start)} · ${span.detail}`;
    this.tip.style.left = `${Math.min(event.offsetX + 14, Math.max(0, this.element.clientWidth - 260))}px`;
    this.tip.style.top = `${event.offsetY + 18}px`;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const { spans } = this.spans;
    const at = this.chosen ? spans.indexOf(this.chosen) : -1;
    if (event.key === "ArrowRight") this.choose(spans[Math.min(spans.length - 1, at + 1)] ?? null);
    else if (event.key === "ArrowLeft") this.choose(spans[Math.max(0, at - 1)] ?? null);
    else if (event.key === "+" || event.key === "=") this.zoom(1.5);
    else if (event.key === "-") this.zoom(1 / 1.5);
    else if (event.key === "0") this.show(0, this.spans.total);
    else return;
    event.preventDefault();
  }
}
