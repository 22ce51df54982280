/**
 * The server: its models, what happens now, recent runs, settings.
 * @module
 */
import { live } from "./live.js";
import { modelTable } from "./models.js";
import { controls } from "./controls.js";
import { json, jsonOrNull } from "../../api.js";
import { failure, fill, h, stylesheet } from "../../dom.js";
import { address } from "../../router.js";
import { sortedTable } from "../../sorting.js";
import * as format from "../../format.js";

/**
 * Show the page.
 * @param {import("../../app.js").Context} context of the page
 */
export async function show({ root, signal }) {
  void stylesheet("server");
  const parts = { now: section("Now"), models: section("Models"), runs: section("Recent runs"), controls: section("Logs and traces"), settings: section("Settings") };
  fill(root, h("div", { class: "head" }, h("h1", {}, "Server"), h("p", {}, "What this server serves and does. Charts stand still while the page is hidden.")),
    parts.now, parts.models, h("div", { class: "columns two" }, parts.runs, h("div", { class: "stack" }, parts.controls, parts.settings)));
  live(parts.now, signal);
  const settings = jsonOrNull("/settings").catch(() => null);
  /** @param {HTMLElement} part @param {Promise<void>} work */
  const shown = (part, work) => work.catch((error) => { if (!signal.aborted) part.append(failure(error)); });
  const control = settings.then((found) => valueOf(found, "model_control") === "explicit");
  await Promise.all([
    shown(parts.models, control.then((allowed) => modelTable(parts.models, allowed))),
    shown(parts.runs, recentRuns(parts.runs)),
    shown(parts.controls, controls(parts.controls)),
    shown(parts.settings, settings.then((found) => settingTable(parts.settings, found))),
  ]);
}

/** @param {string} name */
const section = (name) => h("section", { class: "card stack", "aria-label": name });

/**
 * @param {any} settings
 * @param {string} name
 */
const valueOf = (settings, name) => settings?.settings.find((/** @type {{name: string}} */ entry) => entry.name === name)?.value;

/** @param {HTMLElement} root */
async function recentRuns(root) {
  const { traces } = await json("/traces");
  fill(root, h("div", { class: "row between" }, h("h2", {}, "Recent runs"), h("button", { class: "small", onclick: () => void recentRuns(root) }, "Refresh")), traces.length ? sortedTable("Recent runs", [
    { title: "When", value: (/** @type {any} */ run) => run.received_ms, show: (/** @type {any} */ run) => new Date(run.received_ms).toLocaleTimeString("en-GB") },
    { title: "Model", value: (run) => run.model, show: (run) => `${run.model} ${run.version}` },
    { title: "Time", number: true, value: (run) => run.total_ms, show: (run) => format.milliseconds(run.total_ms) },
    { title: "Batch", number: true, value: (run) => run.batch_size },
    { title: "Ending", value: (run) => run.ending.toLowerCase() },
    { title: "See", value: () => null, show: (run) => h("span", { class: "row nowrap" }, [["graph", "graph"], ["timeline", "timeline"]].map(([page = "", title = ""]) =>
      h("a", { href: address(run.model, page, { version: run.version, run: run.request_id }), "aria-label": `${title} of run ${run.request_id}` }, title))) },
  ], traces) : h("p", { class: "quiet" }, "No run was traced yet. Ask a model something in the playground."));
}

/**
 * @param {HTMLElement} root
 * @param {any} found
 */
function settingTable(root, found) {
  if (!found) return fill(root, h("h2", {}, "Settings"), h("p", { class: "quiet" }, "The server does not show its settings."));
  fill(root, h("h2", {}, "Settings in force"), sortedTable("Settings in force", [
    { title: "Setting", value: (/** @type {any} */ entry) => entry.name, show: (/** @type {any} */ entry) => h("span", { class: "mono", title: entry.help }, entry.name) },
    { title: "Value", value: (entry) => String(entry.value ?? ""), show: (entry) => h("span", { class: "mono wrap" }, entry.secret && entry.value ? "set" : String(entry.value ?? "–")) },
    { title: "From", value: (entry) => entry.origin, show: (entry) => h("span", { class: entry.origin === "default" ? "quiet" : "pill" }, entry.origin) },
  ], [...found.settings].sort((a, b) => Number(a.origin === "default") - Number(b.origin === "default"))));
}
