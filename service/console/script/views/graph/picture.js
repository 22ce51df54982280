/**
 * The drawing as a file: SVG, or PNG drawn from it.
 * @module
 */
import { s } from "../../dom.js";
import { download } from "../../inference.js";
import { colour } from "../../theme.js";

const MARGIN = 20;
/** Pixels of the longer side, and of all, that browsers draw. */
const LONGEST = 16_000;
const MAX_PIXELS = 60e6;

/**
 * The whole drawing as it is coloured now, as SVG.
 * @param {import("./canvas.js").GraphCanvas} graph
 * @returns {string}
 */
export function svgOf(graph) {
  const { layout } = graph.drawing;
  const [width, height] = [layout.width + 2 * MARGIN, layout.height + 2 * MARGIN];
  const root = s("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `${-MARGIN} ${-MARGIN} ${width} ${height}`, "font-family": "system-ui, sans-serif", "font-size": 11 },
    s("rect", { x: -MARGIN, y: -MARGIN, width, height, fill: colour("page") }),
    layout.edges.map(({ points }) => s("polyline", { points: points.map((point) => point.join(",")).join(" "), fill: "none", stroke: colour("line-strong") })),
    layout.nodes.map((node) => boxOf(node, graph.looks.get(node.id))));
  return new XMLSerializer().serializeToString(root);
}

/**
 * @param {import("./model.js").GraphNode} node
 * @param {import("./measures.js").Look|undefined} look
 */
function boxOf(node, look) {
  const { x, y, width, height, name, type, kind, operators } = node;
  const fused = kind === "operator" ? operators.slice(1).map((other) => `+ ${other}`) : [];
  const below = kind === "module" ? `${operators.length} operators` : type.replace(/^nn\.|^pnnx\./, "");
  const lines = kind === "input" || kind === "output" ? [name] : [name, look?.text ? `${below} · ${look.text}` : below, ...fused];
  return s("g", { fill: look?.ink ?? colour("text") }, s("title", {}, `${name}\n${type}`),
    s("rect", { x, y, width, height, rx: 7, fill: look?.fill ?? colour("card"), stroke: colour("line-strong") }),
    lines.map((line, index) => s("text", { x: x + 10, y: y + 19 + 17 * index, "font-weight": index ? 400 : 600 }, line.length > 28 ? `…${line.slice(-27)}` : line)));
}

/**
 * Offer the drawing as a file.
 * @param {import("./canvas.js").GraphCanvas} graph
 * @param {string} name of the file, without its ending
 * @param {"svg"|"png"} kind
 */
export async function downloadPicture(graph, name, kind) {
  const svg = new Blob([svgOf(graph)], { type: "image/svg+xml" });
  download(kind === "svg" ? svg : await pngOf(svg, graph.drawing.layout), `${name}.${kind}`);
}

/**
 * @param {Blob} svg
 * @param {{width: number, height: number}} layout
 * @returns {Promise<Blob>}
 */
async function pngOf(svg, layout) {
  const [width, height] = [layout.width + 2 * MARGIN, layout.height + 2 * MARGIN];
  const scale = Math.min(2, LONGEST / Math.max(width, height), Math.sqrt(MAX_PIXELS / (width * height)));
  const image = new Image();
  image.src = URL.createObjectURL(svg);
  await image.decode();
  const canvas = new OffscreenCanvas(Math.ceil(width * scale), Math.ceil(height * scale));
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return canvas.convertToBlob({ type: "image/png" });
}
