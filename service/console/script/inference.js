/**
 * Runs of a model: one for its response and its times, another one for tensors.
 * @module
 */
import { query, send } from "./api.js";

/** @typedef {import("./store.js").Input} Input */
/** @typedef {Record<string, string|number|boolean|null>} Options */
/** @typedef {import("./npy.js").Tensor & {file: Uint8Array<ArrayBuffer>}} Captured with the npy file that the server sent */

/** What a file is, by the end of its name. @type {Record<string, string>} */
const TYPES = {
  png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", webp: "image/webp", bmp: "image/bmp",
  npy: "application/x-npy", npz: "application/x-npz", json: "application/json", csv: "text/csv", txt: "text/plain",
};

/**
 * A file as the input of a request. Of what kind unknown files are is for the server to say.
 * @param {File} file that somebody chose
 * @returns {Input}
 */
export function inputOfFile(file) {
  const end = /\.([^.]+)$/.exec(file.name)?.[1]?.toLowerCase() ?? "";
  const type = TYPES[end] ?? file.type;
  return { body: file, type, name: file.name || "picture.png", kind: type.startsWith("image/") ? "picture" : "tensor" };
}

/**
 * The address of a run.
 * @param {string} model name of the model
 * @param {string|null} version of it; null for the one that is served
 * @param {Options} [options] more of the query
 * @returns {string}
 */
export const inferPath = (model, version, options = {}) => `/infer${query({ model, version, ...options })}`;

/**
 * Run a model.
 * @param {string} model name of the model
 * @param {string|null} version of it; null for the one that is served
 * @param {Input} input of the run
 * @param {Options} [options] more of the query
 * @param {AbortSignal} [signal] gives the run up
 * @returns {Promise<any>} the response, as `/infer` gives it
 * @throws {import("./api.js").ApiError} the server refused
 */
export async function infer(model, version, input, options = {}, signal) {
  const response = await send(inferPath(model, version, options), { method: "POST", ...payload(input), signal: signal ?? null });
  return response.json();
}

/**
 * Ask why a prediction is what it is.
 * @param {string} model name of the model
 * @param {string|null} version of it; null for the one that is served
 * @param {Input} input of the run
 * @param {Options} options more of the query
 * @param {AbortSignal} signal gives the request up
 * @returns {Promise<any>} the response, as `:explain` gives it
 * @throws {import("./api.js").ApiError} the server refused
 */
export async function explain(model, version, input, options, signal) {
  const path = `/models/${encodeURIComponent(model)}:explain${query({ version, ...options })}`;
  const response = await send(path, { method: "POST", ...payload(input), signal });
  return response.json();
}

/**
 * @param {Input} input
 * @returns {{headers: Record<string, string>, body: Blob|string}}
 */
function payload(input) {
  return { headers: input.type ? { "Content-Type": input.type } : {}, body: input.body };
}

/**
 * Run a model once more, and take operands along. Such a run takes longer: its times are not those of a plain one.
 * @param {string} model name of the model
 * @param {string|null} version of it; null for the one that is served
 * @param {Input} input of the run
 * @param {string[]} operands names of the operands
 * @param {AbortSignal} [signal] gives the run up
 * @returns {Promise<{tensors: Map<string, Captured>, meta: any}>} operands by name
 */
export async function capture(model, version, input, operands, signal) {
  const options = { capture: operands.join(","), trace: "off", outputs: true };
  const { headers, body } = payload(input);
  const response = await send(inferPath(model, version, options), {
    method: "POST", headers: { ...headers, Accept: "application/x-npz" }, body, signal: signal ?? null,
  });
  const { readEntry, readNpz } = await import("./npz.js");
  const entries = await readNpz(await response.arrayBuffer());
  /** @type {Map<string, Captured>} */
  const tensors = new Map();
  for (const [name, bytes] of entries) {
    if (!name.startsWith("captured/")) continue;
    const tensor = readEntry(bytes);
    if (typeof tensor !== "string") tensors.set(name.slice("captured/".length), { ...tensor, file: new Uint8Array(bytes) });
  }
  const meta = entries.get("meta");
  return { tensors, meta: meta ? JSON.parse(/** @type {string} */ (readEntry(meta))) : {} };
}

/**
 * Offer bytes as a file.
 * @param {Blob} blob what the file holds
 * @param {string} name of the file
 */
export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
