/**
 * What pages share: the models, and the last run of each with its input.
 * @module
 */
import { json, jsonOrNull, query } from "./api.js";

/**
 * @typedef {{name: string, operand: string, shape: (number|null)[]|null, dtype: string|null}} Port
 * @typedef {{version: string, state: string, reason: string|null}} Version
 * @typedef {{name: string, version: string|null, versions: Version[], state: string, reason: string|null,
 *   task: string|null, description: string|null, inputs: Port[], outputs: Port[], parameter_count: number|null,
 *   bytes: number|null}} Model
 * @typedef {Model & {labels: string[]|null, multiply_adds: number|null, accepts?: string[], skeleton?: number[][]|null,
 *   task_defaults?: Record<string, unknown>, warnings: string[], precision: string|null, max_batch_size: number|null}} ModelDetail
 * @typedef {{name: string, shape: number[]|null, dtype: string}} Operand
 * @typedef {{index: number, name: string, type: string, inputs: Operand[], outputs: Operand[], start_ms: number,
 *   duration_ms: number, share: number, multiply_adds: number, bytes: number, backend: string, fused: string[],
 *   fused_into: string|null, precision: string}} Layer
 * @typedef {{total_ms: number, observed?: boolean, layers: Layer[]}} Trace
 * @typedef {{body: Blob|string, type: string, name: string, kind: string}} Input what a request carries
 * @typedef {{request_id: string, model: string, version: string, trace: Trace, stamps: Record<string, number|null>,
 *   received_ms: number, total_ms: number, worker: string, batch_size: number, observed: boolean}} Run
 */

/**
 * The models of the server.
 * @returns {Promise<Model[]>}
 */
export async function models() {
  return (await json("/models")).models;
}

/**
 * One model in detail.
 * @param {string} name of the model
 * @param {string|null} [version] of it
 * @returns {Promise<ModelDetail>}
 */
export const modelDetail = (name, version) => json(`/models/${encodeURIComponent(name)}${query({ version })}`);

/** Most characters that are kept over a reload: browsers give a page about five million. */
const KEPT = 2_000_000;

/** @type {Map<string, {input: Input, request: string}>} */
const inputs = new Map();

/**
 * Keep the input of a model's last run, so that other pages can run it again.
 * @param {string} model name of the model
 * @param {Input} input of the run
 * @param {string} request id of the run
 */
export async function keepInput(model, input, request) {
  inputs.set(model, { input, request });
  const text = typeof input.body === "string" ? input.body : await base64(input.body);
  const kept = JSON.stringify({ ...input, body: text, binary: typeof input.body !== "string", request });
  try {
    if (kept.length <= KEPT) sessionStorage.setItem(`input/${model}`, kept);
    else sessionStorage.removeItem(`input/${model}`);
  } catch {
    // storage is full or switched off: the input then lasts as long as the page
  }
}

/**
 * The input of a model's last run.
 * @param {string} model name of the model
 * @returns {{input: Input, request: string}|null}
 */
export function keptInput(model) {
  const held = inputs.get(model);
  if (held) return held;
  const text = sessionStorage.getItem(`input/${model}`);
  if (!text) return null;
  const { binary, body, request, ...rest } = JSON.parse(text);
  const bytes = binary ? Uint8Array.from(atob(body), (sign) => sign.charCodeAt(0)) : null;
  const kept = { input: { ...rest, body: bytes ? new Blob([bytes], { type: rest.type }) : body }, request };
  inputs.set(model, kept);
  return kept;
}

/**
 * @param {Blob} blob
 * @returns {Promise<string>}
 */
async function base64(blob) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (let start = 0; start < bytes.length; start += 8192) {
    text += String.fromCharCode(...bytes.subarray(start, start + 8192));
  }
  return btoa(text);
}

/**
 * A run that the server keeps; null where it keeps it no longer.
 * @param {string} request id of the run
 * @returns {Promise<Run|null>}
 */
export const keptRun = (request) => jsonOrNull(`/traces/${encodeURIComponent(request)}`);
