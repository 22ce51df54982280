/**
 * What nodes may be coloured by: times of a run and other measures, summed where a node stands for several operators.
 * @module
 */
import { heat, heatColour, hue, ink } from "../../charts/colours.js";
import * as format from "../../format.js";

/** @typedef {import("../../store.js").Layer} Layer */
/** @typedef {{fill: string, ink: string, text: string, part: number, value?: number}} Look how a node is drawn; part is of the most, 0 to 1; value is missing where there is no order */
/** @typedef {{id: string, kind: string, operators: string[]}} Drawn */

/**
 * @typedef {object} Measure
 * @property {string} name in addresses
 * @property {string} title for people
 * @property {string} help one sentence
 * @property {(layers: Layer[]) => number|null} [sum] of a node's layers
 * @property {(layers: Layer[]) => string|null} [kind] of a node's layers, for measures without an order
 * @property {(value: number) => string} [write] a value
 */

/** @param {Layer[]} layers @param {(layer: Layer) => number} of */
const total = (layers, of) => layers.reduce((sum, layer) => sum + of(layer), 0);

/** @type {Measure[]} */
export const MEASURES = [
  { name: "time", title: "Time of this run", help: "How long each operator took in this run; fused ones are counted where they were fused into.",
    sum: (layers) => total(layers, (layer) => layer.duration_ms), write: format.milliseconds },
  { name: "multiply_adds", title: "Multiply-adds", help: "How many multiplications with an addition each operator needs.",
    sum: (layers) => total(layers, (layer) => layer.multiply_adds), write: format.count },
  { name: "gflops", title: "GFLOP/s", help: "Floating-point operations per second in this run; a multiply-add counts as two.",
    sum: (layers) => { const ms = total(layers, (layer) => layer.duration_ms); return ms ? total(layers, (layer) => layer.multiply_adds) * 2e-6 / ms : null; },
    write: (value) => `${value.toFixed(value < 10 ? 2 : 0)} GFLOP/s` },
  { name: "bytes", title: "Bytes moved", help: "Bytes of inputs, attributes and outputs.", sum: (layers) => total(layers, (layer) => layer.bytes), write: format.bytes },
  { name: "precision", title: "Precision", help: "What the operands of products were rounded to.", kind: (layers) => one(layers.map(({ precision }) => precision)) },
  { name: "backend", title: "Backend", help: "native: a compiled kernel; numpy: numpy’s layers; folded: computed before the run.", kind: (layers) => one(layers.map(({ backend }) => backend)) },
  { name: "loss", title: "Numerical difference", help: "Largest difference from the reference (numpy) implementation, relative to the largest value. The Compare page shows more.", sum: () => null,
    write: (value) => value.toExponential(1) },
];

/** @param {string[]} kinds @returns {string|null} */
const one = (kinds) => (new Set(kinds).size > 1 ? "mixed" : kinds[0] ?? null);

const KINDS = ["native", "numpy", "folded", "f32", "bf16", "int8", "mixed"];
/** Hues of kinds: those that are shown together differ. @type {Record<string, number>} */
const KIND_HUES = { native: 0, numpy: 1, folded: 7, f32: 0, bf16: 1, int8: 2, mixed: 4 };

/**
 * How each node looks under a measure.
 * @param {Measure} measure chosen
 * @param {Drawn[]} nodes of the drawing
 * @param {Map<string, Layer>} layers of the run, by operator; empty where nothing has run
 * @param {Map<string, number>} losses numerical differences by operator, for the measure `loss`
 * @returns {{looks: Map<string, Look>, most: number, hottest: string|null, kinds: string[]}}
 */
export function looksOf(measure, nodes, layers, losses) {
  /** @type {Map<string, number>} */
  const values = new Map();
  /** @type {Map<string, string>} */
  const kinds = new Map();
  for (const { id, operators, kind: sort } of nodes) {
    if (sort === "input" || sort === "output") continue;
    const own = operators.map((name) => layers.get(name)).filter((layer) => layer !== undefined);
    const value = measure.name === "loss" ? lossOf(operators, losses) : own.length ? measure.sum?.(own) ?? null : null;
    if (value !== null) values.set(id, value);
    const kind = own.length ? measure.kind?.(own) ?? null : null;
    if (kind !== null) kinds.set(id, kind);
  }
  const most = [...values.values()].reduce((a, b) => Math.max(a, b), 0);
  const hottest = [...values].reduce((/** @type {[string, number]|null} */ best, entry) => (best && best[1] >= entry[1] ? best : entry), null);
  /** @type {Map<string, Look>} */
  const looks = new Map();
  for (const [id, value] of values) {
    // the root spreads the many small ones, which would all look alike
    const part = most > 0 ? Math.sqrt(Math.max(0, value) / most) : 0;
    looks.set(id, { fill: heat(part), ink: ink(heatColour(part)), text: measure.write?.(value) ?? String(value), part, value });
  }
  for (const [id, kind] of kinds) looks.set(id, { fill: hue(KIND_HUES[kind] ?? 5), ink: "#10151c", text: kind, part: 0.5 });
  return { looks, most, hottest: hottest?.[0] ?? null, kinds: KINDS.filter((kind) => [...kinds.values()].includes(kind)) };
}

/**
 * @param {string[]} operators
 * @param {Map<string, number>} losses
 */
function lossOf(operators, losses) {
  const found = operators.map((name) => losses.get(name)).filter((loss) => loss !== undefined);
  return found.length ? Math.max(...found) : null;
}

/** @param {string} kind @returns {string} colour of a kind, for the legend */
export const kindColour = (kind) => hue(KIND_HUES[kind] ?? 5);
