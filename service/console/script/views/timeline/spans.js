/**
 * A run as spans on rows: the request waits, a worker decodes, runs its layers and encodes.
 * @module
 */

/**
 * @typedef {{name: string, kind: string, start: number, end: number, depth: number, row: number, detail: string, layer: import("../../store.js").Layer|null}} Span
 *   start and end in milliseconds since the end of the request's body
 * @typedef {{ts: number, cat?: string, args?: {name?: string}}} Event
 * @typedef {{rows: {title: string, depth: number}[], spans: Span[], total: number}} Spans
 */

/**
 * When the first layer's clock began, which is a little after the stage did: the trace event file knows.
 * @param {import("../../store.js").Run} run
 * @param {Event[]} events
 * @returns {number|null} milliseconds since the end of the request's body
 */
function beginning(run, events) {
  for (const layer of run.trace.layers) {
    const event = events.find(({ cat, args }) => cat === "layer" && args?.name === layer.name);
    if (event && layer.start_ms > 0) return event.ts / 1000 - layer.start_ms;
  }
  return null;
}

/**
 * The spans of a run.
 * @param {import("../../store.js").Run} run as `/traces/ID` gives it
 * @param {Event[]} events the same as a trace event file, with times in microseconds
 * @returns {Spans}
 */
export function spansOf(run, events) {
  const { stamps, trace } = run;
  /** @param {string} name @returns {number|null} */
  const at = (name) => stamps[`${name}_ms`] ?? null;
  /** @type {Span[]} */
  const spans = [];
  /** @param {string} name @param {string} kind @param {number|null} start @param {number|null} end @param {number} row @param {string} detail */
  const add = (name, kind, start, end, row, detail) => {
    if (start !== null && end !== null && end >= start) spans.push({ name, kind, start, end, depth: 0, row, detail, layer: null });
  };
  add("Queue", "queue", at("queued"), at("decode_start"), 0, "The request waited for a worker.");
  add("Wait for the run", "queue", at("decode_end"), at("forward_start"), 0, "The decoded request waited, for others of its batch or for its turn.");
  add("Decode", "decode", at("decode_start"), at("decode_end"), 1, "The body was read, pictures were prepared.");
  add("Run", "run", at("forward_start") ?? 0, at("forward_end") ?? trace.total_ms, 1, "The layers ran.");
  add("Encode", "encode", at("forward_end"), at("encode_end"), 1, "Predictions were made and written.");
  const offset = beginning(run, events) ?? at("forward_start") ?? 0;
  for (const layer of trace.layers) {
    if (layer.fused_into || layer.duration_ms <= 0) continue;
    const start = offset + layer.start_ms;
    spans.push({ name: layer.name, kind: layer.backend === "numpy" ? "numpy" : "layer", start, end: start + layer.duration_ms, depth: 1, row: 1, detail: layer.type, layer });
  }
  return {
    rows: [{ title: "request waits", depth: 1 }, { title: run.worker || "worker", depth: 2 }],
    spans, total: Math.max(run.total_ms, ...spans.map(({ end }) => end)),
  };
}
