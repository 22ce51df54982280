/**
 * Comparisons of runs, as the server makes them.
 * @module
 */
import { json, query } from "../../api.js";
import { inventInput } from "../../invented.js";
import { firstSample } from "../../runs.js";
import { keptInput } from "../../store.js";

/**
 * @typedef {{name: string, type: string, left_ms: number|null, right_ms: number|null, max_abs: number|string|null, max_rel: number|string|null,
 *   snr_db: number|string|null, problem?: string|null}} Compared
 * @typedef {{left: {label: string}, right: {label: string}, operators: Compared[], first: string|null, agree: boolean}} Comparison
 */

/**
 * Compare two runs of an input.
 * @param {string} model name of the model
 * @param {string|null} version of it
 * @param {import("../../store.js").Input} input of both
 * @param {Record<string, string>} against what the other run is: `with_backend`, `with_version` or `with_precision`
 * @param {File|null} reference tensors in place of another run
 * @param {AbortSignal} signal gives it up
 * @returns {Promise<Comparison>}
 */
export function compare(model, version, input, against, reference, signal) {
  const path = `/compare${query({ model, version, ...against })}`;
  if (!reference) return json(path, { method: "POST", headers: input.type ? { "Content-Type": input.type } : {}, body: input.body, signal });
  const form = new FormData();
  form.append("file", input.body instanceof Blob ? input.body : new Blob([input.body], { type: input.type }), input.name);
  form.append("reference", reference, reference.name);
  return json(path, { method: "POST", body: form, signal });
}

/**
 * How far each operator's compiled result is from numpy's.
 * @param {import("../../app.js").Context} context of the page
 * @returns {Promise<Map<string, number>>} largest difference relative to the largest value, by operator
 */
export async function compareWithNumpy({ model, version, signal }) {
  const name = model?.name ?? "";
  const input = keptInput(name)?.input ?? await firstSample(name, version) ?? await inventInput(/** @type {import("../../store.js").Model} */ (model), version);
  const found = await compare(name, version, input, { with_backend: "numpy" }, null, signal);
  return new Map(found.operators.flatMap((operator) =>
    typeof operator.max_rel === "number" ? [/** @type {[string, number]} */ ([operator.name, operator.max_rel])] : []));
}
