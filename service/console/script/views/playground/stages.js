/**
 * Where the time of a request went.
 * @module
 */
import { stageColour } from "../../charts/colours.js";
import { h } from "../../dom.js";
import * as format from "../../format.js";

/**
 * Build a bar of the stages, and the same as a list.
 * @param {import("./response.js").RunResponse} answered run
 * @param {import("../../store.js").Run|null} run as the server keeps it: its times are those of the other pages
 */
export function stages({ result, roundTrip }, run) {
  const timing = run ? timesOf(run) : result.timing;
  /** @type {[string, string, number, string][]} */
  const parts = [
    ["decode", "Decode", timing.decode_ms, "The body was read, pictures were prepared"],
    ["queue", "Queue", timing.queue_ms, "The request waited for a worker"],
    ["run", "Run", timing.forward_ms, "The layers ran"],
    ["encode", "Encode", timing.encode_ms, "Predictions were made and written"],
  ];
  const known = parts.reduce((sum, [, , ms]) => sum + ms, 0);
  const other = Math.max(0, timing.total_ms - known);
  if (other > 0.02 * timing.total_ms) parts.push(["other", "Between", other, "Handing over between the stages"]);
  const total = parts.reduce((sum, [, , ms]) => sum + ms, 0) || 1;
  return h("div", { class: "stack tight" }, h("h3", {}, "Where the time went"),
    h("div", { class: "stage-bar", "aria-hidden": "true" }, parts.map(([name, , ms]) =>
      h("span", { class: "stage", style: { "flex-grow": String(ms / total), background: stageColour(name) } }))),
    h("ul", { class: "legend" }, parts.map(([name, title, ms, why]) =>
      h("li", { title: why }, h("span", { class: "swatch", style: { background: stageColour(name) }, "aria-hidden": "true" }), `${title} `, h("span", { class: "number stage-time" }, format.milliseconds(ms))))),
    h("p", { class: "help number" }, `The browser waited ${format.milliseconds(roundTrip)} in all, with the network.`));
}

/**
 * The stages of a run by its stamps.
 * @param {import("../../store.js").Run} run
 */
function timesOf({ stamps, total_ms: total }) {
  /** @param {string} name */
  const at = (name) => stamps[`${name}_ms`] ?? 0;
  return {
    decode_ms: at("decode_end") - at("decode_start"), forward_ms: at("forward_end") - at("forward_start"),
    queue_ms: at("decode_start") - at("queued") + at("forward_start") - at("decode_end"),
    encode_ms: at("encode_end") - at("forward_end"), total_ms: total,
  };
}
