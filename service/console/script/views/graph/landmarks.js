/**
 * What a graph is recognised by from afar: its modules and the operators that cost most, in letters that can be read.
 * @module
 */

/** @typedef {import("./canvas.js").GraphCanvas} GraphCanvas */
/** @typedef {{text: string, side: "left"|"right", top: number, bottom: number, y: number, x: number}} Landmark
 *   in pixels of the canvas; top to bottom is what it names, y where its letters are */

/** Room above the drawing, for the buttons. */
export const TOP = 48;
const LETTERS = 16;
/** From what is named to its name, where there is room for that. */
const GAP = { left: 26, right: 30 };
const LEAST_GAP = 8;
const EDGE = 4;
const COSTLIEST = 8;

/**
 * Choose the landmarks of what is in view; none covers another.
 * @param {GraphCanvas} graph
 * @returns {Landmark[]}
 */
export function landmarksOf(graph) {
  const { layout } = graph.drawing;
  const edge = { left: graph.x + Math.min(0, ...layout.nodes.map(({ x }) => x)) * graph.scale, right: graph.x + layout.width * graph.scale };
  const costly = layout.nodes.filter(({ id }) => (graph.looks.get(id)?.value ?? 0) > 0)
    .sort((a, b) => (graph.looks.get(b.id)?.value ?? 0) - (graph.looks.get(a.id)?.value ?? 0)).slice(0, COSTLIEST)
    .map((node) => ({ text: `${node.name} · ${graph.looks.get(node.id)?.text}`, side: /** @type {const} */ ("right"), top: node.y, bottom: node.y + node.height, x: node.x + node.width }));
  const modules = modulesOf(graph).map((module) => ({ ...module, side: /** @type {const} */ ("left"), x: 0 }));
  /** @type {Landmark[]} */
  const placed = [];
  for (const { text, side, top, bottom, x } of [...costly, ...modules]) {
    const [start, end] = [graph.y + top * graph.scale, graph.y + bottom * graph.scale];
    const y = placeFor((start + end) / 2, placed.filter((other) => other.side === side), graph.size.height);
    if (y !== null) placed.push({ text, side, top: start, bottom: end, y, x: side === "left" ? edge.left : graph.x + x * graph.scale });
  }
  return placed;
}

/**
 * @param {number} wanted
 * @param {Landmark[]} others on the same side
 * @param {number} height of the canvas
 * @returns {number|null} the nearest free place, not far away
 */
function placeFor(wanted, others, height) {
  if (wanted < -4 || wanted > height + 4) return null;
  for (let far = 0; far <= 4 * LETTERS; far += 4) {
    for (const y of [wanted + far, wanted - far]) {
      if (y > TOP && y < height - LETTERS / 2 && others.every((other) => Math.abs(other.y - y) >= LETTERS)) return y;
    }
  }
  return null;
}

/**
 * The modules of the greatest depth whose names find room beside the drawing.
 * @param {GraphCanvas} graph
 * @returns {{text: string, top: number, bottom: number}[]}
 */
function modulesOf(graph) {
  const { nodes } = graph.drawing.layout;
  const room = Math.max(3, graph.size.height / LETTERS / 1.5);
  /** @type {Map<string, {text: string, top: number, bottom: number}>} */
  let found = new Map();
  for (let depth = 1; depth <= 4; depth += 1) {
    /** @type {typeof found} */
    const deeper = new Map();
    for (const { kind, name, module, y, height } of nodes) {
      const text = (kind === "module" ? name : module).split(".").slice(0, depth).join(".");
      if (!text) continue;
      const known = deeper.get(text) ?? { text, top: y, bottom: y + height };
      deeper.set(text, { text, top: Math.min(known.top, y), bottom: Math.max(known.bottom, y + height) });
    }
    if (depth > 1 && deeper.size > room || deeper.size === found.size) break;
    found = deeper;
  }
  return [...found.values()].sort((a, b) => (b.bottom - b.top) - (a.bottom - a.top));
}

/**
 * Write the landmarks over the drawing.
 * @param {GraphCanvas} graph
 * @param {Record<string, string>} tones
 */
export function paintLandmarks(graph, tones) {
  const { pen } = graph;
  const { width } = graph.size;
  const marks = landmarksOf(graph);
  /** @type {number[]} */
  const gaps = [];
  pen.font = "600 12.5px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.textAlign = "left";
  pen.lineWidth = 1;
  for (const { text, side, top, bottom, y, x } of marks) {
    const room = (side === "left" ? x : width - x) - EDGE - LEAST_GAP;
    const shown = shortened(pen, text, side, room);
    const wide = pen.measureText(shown).width;
    const at = side === "left" ? Math.max(EDGE, x - GAP.left - wide) : Math.min(width - wide - EDGE, x + GAP.right);
    gaps.push(side === "left" ? x - at - wide : at - x);
    pen.strokeStyle = tones.quiet ?? "";
    pen.beginPath();
    if (side === "left") {
      const line = Math.max(at + wide + 6, x - 10);
      pen.moveTo(line + 4, top + 1); pen.lineTo(line, top + 1); pen.lineTo(line, bottom - 1); pen.lineTo(line + 4, bottom - 1);
    } else {
      pen.moveTo(x + 2, (top + bottom) / 2); pen.lineTo(at - 4, y);
    }
    pen.stroke();
    pen.globalAlpha = 0.85;
    pen.fillStyle = tones.card ?? "";
    pen.fillRect(at - 3, y - LETTERS / 2, wide + 6, LETTERS);
    pen.globalAlpha = 1;
    pen.fillStyle = side === "left" ? tones.quiet ?? "" : tones.text ?? "";
    pen.fillText(shown, at, y);
  }
  graph.element.dataset.landmarks = JSON.stringify(marks.map(({ text, y }, place) => [text, Math.round(y), Math.round(gaps[place] ?? 0)]));
}

/**
 * A name as far as there is room for it: of an operator its beginning and its cost, of a module its end.
 * @param {CanvasRenderingContext2D} pen
 * @param {string} text
 * @param {"left"|"right"} side
 * @param {number} room in pixels
 */
function shortened(pen, text, side, room) {
  const [name = "", cost = ""] = side === "left" ? [text] : text.split(/(?= · )/);
  let shown = text;
  for (let kept = name.length - 1; kept > 1 && pen.measureText(shown).width > room; kept -= 1) {
    shown = side === "left" ? `…${name.slice(-kept)}` : `${name.slice(0, kept)}…${cost}`;
  }
  return shown;
}
