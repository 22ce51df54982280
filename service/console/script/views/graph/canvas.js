/**
 * The graph on a canvas: it moves and zooms, and reports what was clicked.
 * @module
 */
import { LINE } from "./fused.js";
import { paintLandmarks, TOP } from "./landmarks.js";
import { colour } from "../../theme.js";
import { h } from "../../dom.js";

/** @typedef {import("./model.js").GraphNode} GraphNode */
/** @typedef {import("./model.js").GraphEdge} GraphEdge */

const STUB = 22;
const LEAST = 0.001;
const MOST = 4;
/** From which scale on boxes hold letters that can be read; below it there are landmarks. */
const READABLE = 0.5;
/** On which part of the room beside the drawing its left side is, on a narrow canvas: names on the right are longer. */
const NARROW_LEFT = 0.33;
const NARROW = 500;

/** A canvas that shows a drawing. */
export class GraphCanvas {
  /**
   * @param {import("./model.js").Drawing} drawing to show
   * @param {{pick: (name: string) => void, open: (node: GraphNode) => void, moved: () => void}} listener for clicks and moves
   */
  constructor(drawing, listener) {
    this.drawing = drawing;
    this.listener = listener;
    this.element = h("canvas", {
      class: "graph-canvas", tabindex: 0, role: "application",
      "aria-label": "Graph of the model. Arrows go along its lines, Enter opens a module, plus and minus zoom. The table below has the same operators.",
    });
    this.pen = /** @type {CanvasRenderingContext2D} */ (this.element.getContext("2d"));
    this.x = 0;
    this.y = 0;
    this.scale = 1;
    /** @type {Map<string, import("./measures.js").Look>} */
    this.looks = new Map();
    /** @type {string|null} */
    this.chosen = null;
    /** @type {Set<string>} */
    this.path = new Set();
    /** @type {Set<string>} */
    this.marked = new Set();
    this.waiting = false;
    this.listen();
  }

  /** The size of the canvas in pixels of the page. */
  get size() {
    return { width: this.element.clientWidth || 1, height: this.element.clientHeight || 1 };
  }

  /** Draw at the next frame, however often it is asked for. */
  refresh() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.paint();
    });
  }

  /** Show the whole graph. */
  fit() {
    const { width, height } = this.size;
    const { layout } = this.drawing;
    this.scale = Math.max(LEAST, Math.min(1.2, width / (layout.width + 40), (height - TOP - 8) / layout.height));
    this.x = (width - layout.width * this.scale) * (width < NARROW && this.scale < READABLE ? NARROW_LEFT : 0.5);
    this.y = TOP + (height - TOP - 8 - layout.height * this.scale) / 2;
    this.changed();
  }

  /** Show the whole graph; of a long one its beginning, large enough to read. */
  start() {
    const { width, height } = this.size;
    const { layout } = this.drawing;
    const whole = Math.min(width / (layout.width + 40), height / (layout.height + 40));
    // as large as the page's own letters, which grow with the screen
    const usual = parseFloat(getComputedStyle(document.documentElement).fontSize) / 15;
    this.scale = usual * Math.min(1.2, Math.max(whole / usual, Math.min(1, Math.max(0.75, width / usual / (layout.width + 40)))));
    this.x = (width - layout.width * this.scale) / 2;
    this.y = Math.max(TOP, (height - layout.height * this.scale) / 2);
    if (layout.width * this.scale > width) {
      const top = layout.nodes.reduce((a, b) => (b.y < a.y ? b : a), layout.nodes[0] ?? { x: 0, y: 0, width: 0 });
      this.x = width / 2 - (top.x + top.width / 2) * this.scale;
    }
    this.changed();
  }

  /** @param {number} factor @param {{x: number, y: number}} [at] point of the canvas that stays where it is */
  zoom(factor, at = { x: this.size.width / 2, y: this.size.height / 2 }) {
    const scale = Math.min(MOST, Math.max(LEAST, this.scale * factor));
    this.x = at.x - ((at.x - this.x) * scale) / this.scale;
    this.y = at.y - ((at.y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.changed();
  }

  /** @param {number} x @param {number} y in pixels of the page */
  pan(x, y) {
    this.x += x;
    this.y += y;
    this.changed();
  }

  /** @param {GraphNode} node to bring into the middle, in letters that can be read */
  reveal(node) {
    const { width, height } = this.size;
    this.scale = Math.max(this.scale, 0.75);
    this.x = width / 2 - (node.x + node.width / 2) * this.scale;
    this.y = height / 2 - (node.y + node.height / 2) * this.scale;
    this.changed();
  }

  /** Whether nothing of the drawing is out of view. */
  get isWhole() {
    const { layout } = this.drawing;
    const { width, height } = this.size;
    return this.x >= 0 && this.y >= 0 && this.x + layout.width * this.scale <= width && this.y + layout.height * this.scale <= height;
  }

  /** Draw, and notify those who follow the view. */
  changed() {
    this.refresh();
    this.listener.moved();
  }

  /** @param {{x: number, y: number}} at of the canvas @returns {GraphNode|null} */
  hit(at) {
    const x = (at.x - this.x) / this.scale;
    const y = (at.y - this.y) / this.scale;
    return this.drawing.layout.nodes.find((node) => x >= node.x && x <= node.x + node.width && y >= node.y && y <= node.y + node.height) ?? null;
  }

  /**
   * @param {GraphNode} node
   * @param {number} y in the canvas
   * @returns {string} id of the node, or the name of the fused operator whose line is there
   */
  lineAt(node, y) {
    const below = node.y + node.height - (y - this.y) / this.scale;
    const lines = node.kind === "operator" ? node.operators.slice(1).reverse() : [];
    return (this.scale >= READABLE && lines[Math.floor(below / LINE)]) || node.id;
  }

  /** Draw what is in view. */
  paint() {
    const { pen, scale } = this;
    const { width, height } = this.size;
    const dense = devicePixelRatio || 1;
    const wanted = [Math.round(width * dense), Math.round(height * dense)];
    if (this.element.width !== wanted[0] || this.element.height !== wanted[1]) [this.element.width = 1, this.element.height = 1] = wanted;
    const tones = { line: colour("line-strong"), text: colour("text"), quiet: colour("quiet"), card: colour("card"), sunk: colour("sunk"), accent: colour("accent"), edge: colour("line") };
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.element.width, this.element.height);
    pen.setTransform(scale * dense, 0, 0, scale * dense, this.x * dense, this.y * dense);
    const view = { left: -this.x / scale, top: -this.y / scale, right: (width - this.x) / scale, bottom: (height - this.y) / scale };
    this.paintEdges(view, tones);
    for (const node of this.drawing.layout.nodes) {
      if (node.x > view.right || node.x + node.width < view.left || node.y > view.bottom || node.y + node.height < view.top) continue;
      this.paintNode(node, tones);
    }
    this.element.dataset.view = JSON.stringify([this.x, this.y, this.scale].map((value) => Math.round(value * 1e6) / 1e6));
    delete this.element.dataset.landmarks;
    if (scale >= READABLE) return;
    pen.setTransform(dense, 0, 0, dense, 0, 0);
    paintLandmarks(this, tones);
  }

  /**
   * @param {{left: number, top: number, right: number, bottom: number}} view
   * @param {Record<string, string>} tones
   */
  paintEdges(view, tones) {
    const { pen, scale } = this;
    const strong = [];
    pen.lineWidth = Math.max(1.2, 0.8 / scale);
    pen.strokeStyle = tones.line ?? "";
    pen.beginPath();
    for (const edge of this.drawing.layout.edges) {
      const { points } = edge;
      const [first, last] = [points[0], points[points.length - 1]];
      if (!first || !last || first[1] > view.bottom || last[1] < view.top) continue;
      if (edge.source === this.chosen || edge.target === this.chosen || (this.path.has(edge.source) && this.path.has(edge.target))) strong.push(edge);
      else this.trace(edge);
    }
    pen.stroke();
    pen.strokeStyle = tones.accent ?? "";
    pen.lineWidth = Math.max(2.6, 1.6 / scale);
    pen.beginPath();
    for (const edge of strong) this.trace(edge, true);
    pen.stroke();
    if (scale > 0.45) for (const edge of this.drawing.layout.edges) if (edge.stub) this.nameStub(edge, view, tones);
  }

  /**
   * @param {GraphEdge} edge
   * @param {boolean} [whole] also of a stub: a chosen node shows where its lines lead
   */
  trace({ points, stub }, whole = false) {
    const { pen } = this;
    const [first = [0, 0], second = [0, 0]] = points;
    const last = points[points.length - 1] ?? first;
    pen.moveTo(first[0], first[1]);
    if (stub && !whole) {
      pen.lineTo(first[0], first[1] + STUB);
      pen.moveTo(last[0], last[1] - STUB);
    } else if (points.length === 2) {
      const middle = (first[1] + second[1]) / 2;
      pen.bezierCurveTo(first[0], middle, second[0], middle, second[0], second[1]);
    } else {
      for (let index = 1; index < points.length - 1; index += 1) {
        const [x = 0, y = 0] = points[index] ?? [];
        const [nextX = 0, nextY = 0] = points[index + 1] ?? [];
        const end = index === points.length - 2;
        pen.quadraticCurveTo(x, y, end ? nextX : (x + nextX) / 2, end ? nextY : (y + nextY) / 2);
      }
    }
    if (this.scale > 0.4) {
      pen.moveTo(last[0] - 4, last[1] - 7);
      pen.lineTo(last[0], last[1] - 1);
      pen.lineTo(last[0] + 4, last[1] - 7);
    }
  }

  /**
   * @param {GraphEdge} edge
   * @param {{left: number, top: number, right: number, bottom: number}} view
   * @param {Record<string, string>} tones
   */
  nameStub({ points, source, target }, view, tones) {
    const { pen } = this;
    const [first, last] = [points[0], points[points.length - 1]];
    if (!first || !last) return;
    pen.font = "10.5px system-ui, sans-serif";
    pen.fillStyle = tones.quiet ?? "";
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    const [above, below] = [this.drawing.nodes.get(source)?.name ?? source, this.drawing.nodes.get(target)?.name ?? target];
    if (first[1] < view.bottom && first[1] > view.top) pen.fillText(`↓ ${shorten(pen, below, 120)}`, first[0] + 5, first[1] + STUB - 4);
    if (last[1] < view.bottom && last[1] > view.top) pen.fillText(`↑ ${shorten(pen, above, 120)}`, last[0] + 5, last[1] - STUB + 4);
  }

  /**
   * @param {GraphNode} node
   * @param {Record<string, string>} tones
   */
  paintNode(node, tones) {
    const { pen, scale } = this;
    const look = this.looks.get(node.id);
    const port = node.kind === "input" || node.kind === "output";
    pen.fillStyle = look?.fill ?? (scale < READABLE ? tones.line ?? "" : port ? tones.sunk ?? "" : tones.card ?? "");
    pen.beginPath();
    // from afar a box is a stroke that can still be seen
    const wide = Math.max(node.width, 9 / scale);
    pen.roundRect(node.x - (wide - node.width) / 2, node.y, wide, node.height, port ? node.height / 2 : 7);
    pen.fill();
    const outstanding = node.id === this.chosen || this.path.has(node.id) || this.marked.has(node.id);
    pen.strokeStyle = outstanding ? tones.accent ?? "" : tones.line ?? "";
    pen.lineWidth = outstanding ? Math.max(4, 2.5 / scale) : 1;
    pen.stroke();
    if (scale >= READABLE) this.writeNode(node, look?.ink ?? tones.text ?? "", look?.text ?? "");
  }

  /**
   * @param {GraphNode} node
   * @param {string} tone
   * @param {string} value
   */
  writeNode(node, tone, value) {
    const { pen } = this;
    const left = node.x + 10;
    const width = node.width - 20;
    pen.fillStyle = tone;
    pen.textBaseline = "middle";
    pen.textAlign = "left";
    pen.font = "600 12.5px system-ui, sans-serif";
    const lines = node.kind === "operator" ? node.operators.slice(1) : [];
    const middle = node.y + (node.height - lines.length * LINE) / 2;
    const single = node.height < 40;
    const title = node.kind === "module" ? `▸ ${node.name}` : node.name;
    pen.fillText(shorten(pen, title, width), left, single ? middle : middle - 9);
    if (single) return;
    pen.font = "11px system-ui, sans-serif";
    const valueWidth = value ? pen.measureText(value).width : 0;
    const kind = node.kind === "module" ? `${node.operators.length} operators` : node.type.replace(/^nn\.|^pnnx\./, "");
    pen.fillText(shorten(pen, kind, width - valueWidth - 8), left, middle + 10);
    pen.textAlign = "right";
    pen.fillText(value, left + width, middle + 10);
    pen.textAlign = "left";
    lines.forEach((name, index) => pen.fillText(shorten(pen, `+ ${name}`, width), left, middle + 10 + LINE * (index + 1)));
  }

  /** Follow mouse, fingers, wheel and keys. */
  listen() {
    const { element } = this;
    /** @type {Map<number, {x: number, y: number}>} */
    const fingers = new Map();
    let travelled = 0;
    element.addEventListener("pointerdown", (event) => {
      element.setPointerCapture(event.pointerId);
      fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
      travelled = 0;
    });
    element.addEventListener("pointermove", (event) => {
      const before = fingers.get(event.pointerId);
      const now = { x: event.offsetX, y: event.offsetY };
      if (!before) {
        element.style.cursor = this.hit(now) ? "pointer" : "grab";
        return;
      }
      const other = [...fingers].find(([id]) => id !== event.pointerId)?.[1];
      if (other) this.zoom(distance(now, other) / Math.max(1, distance(before, other)), { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
      else this.pan(now.x - before.x, now.y - before.y);
      travelled += distance(now, before);
      fingers.set(event.pointerId, now);
    });
    for (const end of ["pointerup", "pointercancel"]) {
      element.addEventListener(end, (event) => fingers.delete(/** @type {PointerEvent} */ (event).pointerId));
    }
    element.addEventListener("click", (event) => {
      const node = travelled < 6 ? this.hit({ x: event.offsetX, y: event.offsetY }) : null;
      if (node) this.listener.pick(this.lineAt(node, event.offsetY));
    });
    element.addEventListener("dblclick", (event) => {
      const node = this.hit({ x: event.offsetX, y: event.offsetY });
      if (node) this.listener.open(node);
    });
    element.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(-event.deltaY / 240), { x: event.offsetX, y: event.offsetY });
      else this.pan(-event.deltaX, -event.deltaY);
    }, { passive: false });
    element.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "+" || event.key === "=") this.zoom(1.25);
    else if (event.key === "-") this.zoom(0.8);
    else if (event.key === "0") this.fit();
    else if (event.key === "Enter") {
      const node = this.drawing.nodes.get(this.chosen ?? "");
      if (node) this.listener.open(node);
    } else if (event.key.startsWith("Arrow")) {
      const from = this.drawing.nodes.get(this.chosen ?? "");
      const to = from ? this.drawing.next(from, event.key) : this.drawing.layout.nodes[0];
      if (to) {
        this.listener.pick(to.id);
        this.reveal(to);
      }
    } else return;
    event.preventDefault();
  }
}

/**
 * @param {{x: number, y: number}} a
 * @param {{x: number, y: number}} b
 */
const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {string} text
 * @param {number} width
 * @returns {string} the text, or its end: names of operators differ there
 */
function shorten(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let cut = text.length - 1;
  while (cut > 1 && pen.measureText(`…${text.slice(-cut)}`).width > width) cut -= 1;
  return `…${text.slice(-cut)}`;
}
