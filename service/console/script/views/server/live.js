/**
 * Charts of what happens now.
 * @module
 */
import { percentile, sumOf } from "./counters.js";
import { json } from "../../api.js";
import { lineChart } from "../../charts/line.js";
import { fill, h } from "../../dom.js";
import * as format from "../../format.js";

/** @typedef {import("./counters.js").Stats} Stats */

const EVERY_MS = 1000;
/** Polls that are kept: two minutes. Older ones are dropped, so that an open page does not grow. */
const KEPT = 120;

/**
 * Build the charts, and keep them up to date while the page is seen.
 * @param {HTMLElement} root where they are shown
 * @param {AbortSignal} signal aborted when the page is left
 */
export function live(root, signal) {
  const charts = {
    requests: lineChart("Requests a second", "All requests, including refused ones.", (value) => value.toFixed(1)),
    latency: lineChart("Latency", "Median and 99th percentile of each second, estimated from histogram buckets.", format.milliseconds),
    queue: lineChart("Queue", "Requests that wait, and requests that run.", (value) => value.toFixed(0)),
    batch: lineChart("Batch size", "Items of a run, on average.", (value) => value.toFixed(1)),
    errors: lineChart("Errors a second", "Responses that were refusals or failures.", (value) => value.toFixed(1)),
    memory: lineChart("Memory", "Resident memory of the server’s process.", format.bytes),
  };
  const counter = h("p", { class: "counter" });
  const problem = h("p", { class: "notice warn", role: "status", hidden: true });
  const choice = h("select", { id: "live-model", onchange: () => { draw(); } }, h("option", { value: "" }, "all models"));
  /** @type {{at: number, stats: Stats}[]} */
  const polls = [];
  fill(root, h("div", { class: "row between" }, h("h2", {}, "Now"), h("div", { class: "row" }, h("label", { for: "live-model" }, "Of"), choice)),
    counter, problem, h("div", { class: "charts" }, Object.values(charts).map(({ element }) => element)));

  /** Show the polls. */
  function draw() {
    const latest = polls.at(-1);
    if (!latest) return;
    const model = choice.value || null;
    const sums = polls.map(({ at, stats }) => ({ at, stats, sum: sumOf(stats, model) }));
    const steps = sums.slice(1).map((now, index) => ({ now, before: /** @type {typeof now} */ (sums[index]), seconds: (now.at - (sums[index]?.at ?? 0)) / 1000 }));
    const requests = steps.map(({ now, before, seconds }) => (now.sum.requests - before.sum.requests) / seconds);
    const errors = steps.map(({ now, before, seconds }) => (now.sum.errors - before.sum.errors) / seconds);
    const classes = steps.map(({ now, before }) => now.sum.counts.map((count, index) => count - (before.sum.counts[index] ?? 0)));
    const bounds = sums[0]?.sum.bounds ?? [];
    const [median, high] = [0.5, 0.99].map((part) => classes.map((counts) => percentile(bounds, counts, part)));
    const batches = steps.map(({ now, before }) => (now.sum.runs > before.sum.runs ? (now.sum.items - before.sum.items) / (now.sum.runs - before.sum.runs) : null));
    const last = sums.at(-1)?.sum;
    charts.requests.draw([{ name: "requests", values: requests }], (requests.at(-1) ?? 0).toFixed(1));
    charts.errors.draw([{ name: "errors", values: errors }], (errors.at(-1) ?? 0).toFixed(1));
    charts.latency.draw([{ name: "median", values: median ?? [] }, { name: "99 %", values: high ?? [] }], `${format.milliseconds(lastOf(median))} · ${format.milliseconds(lastOf(high))}`);
    charts.queue.draw([{ name: "waiting", values: sums.map(({ sum }) => sum.queue) }, { name: "running", values: sums.map(({ sum }) => sum.inFlight) }], `${last?.queue ?? 0} · ${last?.inFlight ?? 0}`);
    charts.batch.draw([{ name: "items", values: batches }], lastOf(batches)?.toFixed(1) ?? "–");
    charts.memory.draw([{ name: "memory", values: sums.map(({ stats }) => stats.memory_bytes) }], format.bytes(latest.stats.memory_bytes));
    fill(counter, h("strong", { class: "number", id: "request-count", "data-requests": last?.requests ?? 0 }, (last?.requests ?? 0).toLocaleString("en")), " requests since the start, ",
      h("span", { class: "number" }, (last?.errors ?? 0).toLocaleString("en")), ` errors · up for ${format.duration(latest.stats.uptime_s)} · ${latest.stats.busy} of ${latest.stats.workers} workers busy`);
  }
  /** Ask once. */
  async function poll() {
    try {
      const stats = /** @type {Stats} */ (await json("/stats", { signal }));
      polls.push({ at: performance.now(), stats });
      if (polls.length > KEPT) polls.shift();
      problem.hidden = true;
      for (const name of Object.keys(stats.models)) {
        if (![...choice.options].some(({ value }) => value === name)) choice.append(h("option", { value: name }, name));
      }
      draw();
    } catch (error) {
      if (signal.aborted) return;
      problem.textContent = error instanceof Error ? error.message : String(error);
      problem.hidden = false;
    }
  }
  whileSeen(poll, signal);
}

/**
 * Call a function every second, but not while nobody sees the page.
 * @param {() => Promise<void>} call
 * @param {AbortSignal} signal ends it
 */
function whileSeen(call, signal) {
  let timer = 0;
  /** Call, and again a second after the response. */
  async function next() {
    if (document.hidden || signal.aborted) return;
    await call();
    clearTimeout(timer);
    if (!document.hidden && !signal.aborted) timer = setTimeout(() => void next(), EVERY_MS);
  }
  document.addEventListener("visibilitychange", () => { clearTimeout(timer); void next(); }, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  void next();
}

/** @param {(number|null)[]|undefined} values @returns {number|null} */
const lastOf = (values) => values?.findLast((value) => value !== null) ?? null;
