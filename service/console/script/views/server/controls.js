/**
 * Which runs are traced without being asked for, and what is logged, where the server lets it be changed.
 * @module
 */
import { json } from "../../api.js";
import { fill, h } from "../../dom.js";

/**
 * Build the controls.
 * @param {HTMLElement} root where they are shown
 */
export async function controls(root) {
  const [log, trace] = await Promise.all([json("/v2/logging").catch(() => null), json("/v2/trace/setting").catch(() => null)]);
  const message = h("p", { role: "status", class: "help" }, "Every run that this page asks for is traced; the rate is about the others.");
  /** @param {string} path @param {object} body */
  async function change(path, body) {
    try {
      await json(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
      message.textContent = "Changed, until the server starts again.";
    } catch (error) {
      message.textContent = error instanceof Error ? error.message : String(error);
    }
  }
  const verbose = Number(log?.log_verbose_level ?? 0) > 0;
  fill(root, h("h2", {}, "Logs and traces"),
    log && h("div", { class: "row" }, [["log_info", "Information"], ["log_warning", "Warnings"], ["log_error", "Errors"]].map(([name = "", title = ""]) =>
      h("label", { class: "check" }, h("input", { type: "checkbox", checked: Boolean(log[name]), onchange: (/** @type {Event} */ event) =>
        void change("/v2/logging", { [name]: /** @type {HTMLInputElement} */ (event.target).checked }) }), title)),
      "log_verbose_level" in log && h("label", { class: "check" }, h("input", { type: "checkbox", checked: verbose, onchange: (/** @type {Event} */ event) =>
        void change("/v2/logging", { log_verbose_level: /** @type {HTMLInputElement} */ (event.target).checked ? 1 : 0 }) }), "Everything")),
    trace && rate(trace, change), message);
}

/**
 * @param {Record<string, unknown>} trace
 * @param {(path: string, body: object) => Promise<void>} change
 */
function rate(trace, change) {
  const field = h("input", { type: "number", id: "trace-rate", min: 0, step: 1, class: "short", value: String(trace.trace_rate ?? "") });
  return h("div", { class: "row end" }, h("div", { class: "field" }, h("label", { for: "trace-rate" }, "Trace one run of each"), field),
    h("button", { onclick: () => change("/v2/trace/setting", { trace_rate: field.value || null }) }, "Change"));
}
