/**
 * Inputs for models that come without samples.
 * @module
 */
import { json, query } from "./api.js";
import { DTYPES, writeNpy } from "./npy.js";
import { writeNpz } from "./npz.js";

/** Side of a dimension that a model leaves open, other than the batch. */
const OPEN = 32;

/**
 * Make up an input of a model: random numbers between 0 and 1, and ids that its embeddings have.
 * @param {import("./store.js").Model} model
 * @param {string|null} version of it
 * @returns {Promise<import("./store.js").Input>}
 */
export async function inventInput(model, version) {
  const whole = model.inputs.some(({ dtype }) => !isFloat(dtype));
  const graph = whole ? await json(`/graph${query({ model: model.name, version })}`) : null;
  const next = generator(1, "uniform");
  const files = model.inputs.map((port) => {
    const shape = (port.shape ?? [1]).map((size, index) => size ?? (index ? OPEN : 1));
    const values = new Float64Array(shape.reduce((a, b) => a * b, 1));
    const count = isFloat(port.dtype) ? 0 : idsOf(graph, port.operand);
    for (let at = 0; at < values.length; at += 1) values[at] = count ? Math.floor(next() * count) : next();
    return /** @type {[string, Uint8Array<ArrayBuffer>]} */ ([port.operand, writeNpy(shape, DTYPES[port.dtype ?? "f32"] ?? "<f4", values)]);
  });
  const [first] = files;
  const single = files.length === 1 && first;
  const body = single ? new Blob([single[1]], { type: "application/x-npy" }) : writeNpz(files);
  return { body, type: body.type, name: single ? "random.npy" : "random.npz", kind: "tensor" };
}

/** @param {string|null|undefined} dtype */
const isFloat = (dtype) => (DTYPES[dtype ?? "f32"] ?? "<f4").includes("f");

/**
 * How many ids an input may hold: rows of the smallest embedding that takes it; 2 where none does, as for masks.
 * @param {any} graph as `/graph` gives it
 * @param {string} operand of the input
 * @returns {number}
 */
export function idsOf(graph, operand) {
  const sizes = graph.nodes.filter((/** @type {any} */ node) => node.inputs[0] === operand && node.parameters.num_embeddings > 0)
    .map((/** @type {any} */ node) => node.parameters.num_embeddings);
  return sizes.length ? Math.min(...sizes) : 2;
}

/**
 * Numbers of Mulberry32, a small generator that gives the same numbers for the same seed everywhere.
 * @param {number} seed
 * @param {string} kind
 * @returns {() => number}
 */
export function generator(seed, kind) {
  if (kind === "zeros") return () => 0;
  if (kind === "ones") return () => 1;
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  // Box and Muller's transform
  return kind === "uniform" ? uniform : () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}
