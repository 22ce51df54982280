/**
 * A run on a timeline: what waited, what ran, and for how long.
 * @module
 */
import { Flame } from "./flame.js";
import { spansOf } from "./spans.js";
import { jsonOrNull, send } from "../../api.js";
import { fill, h, loading, stylesheet } from "../../dom.js";
import { download } from "../../inference.js";
import { address } from "../../router.js";
import { findRun, noRun, runAgain } from "../../runs.js";
import { sortedTable } from "../../sorting.js";
import { keptInput } from "../../store.js";
import * as format from "../../format.js";

/** @typedef {import("./spans.js").Span} Span */

/**
 * Show the page.
 * @param {import("../../app.js").Context} context of the page
 */
export async function show(context) {
  const { root, model, signal } = context;
  if (!model) return;
  void stylesheet("timeline");
  fill(root, loading("Reading the run …"));
  const run = await findRun(context);
  if (signal.aborted) return;
  if (!run) {
    fill(root, h("div", { class: "head" }, h("h1", {}, `Timeline of ${model.name}`)),
      h("section", { class: "card" }, noRun(context, () => void show({ ...context, state: new URLSearchParams() }), "Run the model once; then this page shows where every microsecond went.")));
    return;
  }
  const chrome = await jsonOrNull(`/traces/${encodeURIComponent(run.request_id)}?format=chrome`);
  if (!signal.aborted) build(context, run, chrome?.traceEvents ?? []);
}

/**
 * @param {import("../../app.js").Context} context
 * @param {import("../../store.js").Run} run
 * @param {import("./spans.js").Event[]} events
 */
function build(context, run, events) {
  const { root, model, version, signal } = context;
  const spans = spansOf(run, events);
  const chosen = h("p", { class: "chosen", role: "status" }, "Drag to move, Ctrl + wheel to zoom; a double click fills the view with a span.");
  const flame = new Flame(spans, (span) => fill(chosen, span ? describe(span, context, run) : "Nothing is chosen."));
  const input = keptInput(model?.name ?? "")?.input;
  fill(root,
    h("div", { class: "head" }, h("h1", {}, `Timeline of ${run.model}`),
      h("p", {}, `Run ${run.request_id} of version ${run.version}, ${new Date(run.received_ms).toLocaleTimeString("en-GB")}: ${format.milliseconds(run.total_ms)} from the end of the request’s body to the response.${run.batch_size > 1 ? ` It ran in a batch of ${run.batch_size}.` : ""}`)),
    run.observed && h("p", { class: "notice warn" }, "This run kept tensors or statistics, which makes it slower than a plain one."),
    h("section", { class: "card stack", "aria-label": "Timeline" },
      h("div", { class: "row" },
        h("button", { class: "small", "aria-label": "Zoom in", onclick: () => flame.zoom(1.5) }, "+"),
        h("button", { class: "small", "aria-label": "Zoom out", onclick: () => flame.zoom(1 / 1.5) }, "−"),
        h("button", { class: "small", onclick: () => flame.show(0, spans.total) }, "Whole request"),
        h("button", { class: "small", onclick: () => zoomToRun(flame) }, "Only the run"),
        input && h("button", { class: "small", onclick: async () => { await runAgain(run.model, version, input, signal); await show({ ...context, state: new URLSearchParams(location.hash.split("?")[1]) }); } }, "Run again"),
        h("button", { class: "small", onclick: () => void save(run.request_id) }, "Download for Perfetto")),
      h("div", { class: "flame-frame" }, flame.element, flame.tip), chosen),
    h("section", { class: "card" }, h("h2", {}, "Spans"), table(spans, (span) => { flame.choose(span); flame.element.scrollIntoView({ block: "nearest" }); })));
  const observer = new ResizeObserver(() => flame.draw());
  observer.observe(flame.element);
  signal.addEventListener("abort", () => observer.disconnect());
  addEventListener("themechange", () => flame.draw(), { signal });
}

/** @param {Flame} flame */
function zoomToRun(flame) {
  const run = flame.spans.spans.find(({ kind }) => kind === "run");
  if (run) flame.show(run.start, run.end);
}

/**
 * @param {Span} span
 * @param {import("../../app.js").Context} context
 * @param {import("../../store.js").Run} run
 */
function describe(span, { model, version }, run) {
  const time = `${format.milliseconds(span.end - span.start)}, from ${format.milliseconds(span.start)} on`;
  if (!span.layer) return h("span", {}, h("strong", {}, span.name), ` ${time}. ${span.detail}`);
  const { layer } = span;
  return h("span", {}, h("a", { class: "mono", href: address(model?.name ?? null, "graph", { version, run: run.request_id, node: layer.name }) }, layer.name),
    ` ${layer.type}, ${time}: ${format.percent(layer.share)} of all layers, ${layer.backend}, ${layer.precision}.`, layer.fused.length > 0 && ` With it ran ${layer.fused.join(", ")}.`);
}

/**
 * @param {import("./spans.js").Spans} spans
 * @param {(span: Span) => void} choose
 */
function table({ spans, rows }, choose) {
  return sortedTable("Spans of the run", [
    { title: "Span", value: ({ name }) => name, show: (span) => h("button", { class: "link mono", "data-name": span.name, "data-start": span.start, "data-duration": span.end - span.start, onclick: () => choose(span) }, span.name) },
    { title: "What", value: ({ detail, layer }) => (layer ? detail : "stage") },
    { title: "Row", value: ({ row }) => rows[row]?.title ?? "" },
    { title: "Start", number: true, value: ({ start }) => start, show: ({ start }) => format.milliseconds(start) },
    { title: "Time", number: true, value: ({ start, end }) => end - start, show: ({ start, end }) => format.milliseconds(end - start) },
    { title: "Share of layers", number: true, value: ({ layer }) => layer?.share ?? null, show: ({ layer }) => (layer ? format.percent(layer.share) : "") },
  ], spans, { sort: 4, descending: true });
}

/** @param {string} request */
async function save(request) {
  const response = await send(`/traces/${encodeURIComponent(request)}?format=chrome`);
  download(await response.blob(), `kuiper-trace-${request}.json`);
}
