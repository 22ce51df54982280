/**
 * The models and their versions, to load and unload where that is allowed.
 * @module
 */
import { ApiError, json, send } from "../../api.js";
import { fill, h } from "../../dom.js";
import { address } from "../../router.js";
import * as format from "../../format.js";

/** @typedef {import("../../store.js").Model} Model */

/** What a state looks like. @type {Record<string, string>} */
const LOOKS = { ready: "good", broken: "bad", loading: "warn", unloaded: "" };

/**
 * Build the table.
 * @param {HTMLElement} root where it is shown
 * @param {boolean} control whether models may be loaded and unloaded
 */
export async function modelTable(root, control) {
  const message = h("p", { role: "status", class: "help" }, control ? "" : "Loading and unloading needs a server that was started with --model-control explicit.");
  const body = h("tbody", {});
  const head = ["Model", "State", "Task", "Versions", "Parameters", "Size", ...(control ? ["Control"] : [])];
  fill(root, h("h2", {}, "Models"), h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Models of the server" }, h("table", {},
    h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col", class: ["Parameters", "Size"].includes(name) && "number" }, name)))), body)), message);
  /** Show the models as they are now. */
  async function draw() {
    const { models } = await json("/models");
    fill(body, models.map((/** @type {Model} */ model) => row(model, control, act)));
  }
  /** @param {string} name @param {string} action */
  async function act(name, action) {
    message.textContent = `${name}: ${action} …`;
    try {
      await send(`/v2/repository/models/${encodeURIComponent(name)}/${action}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
      message.textContent = `${name}: ${action}ed.`;
    } catch (error) {
      message.textContent = error instanceof ApiError ? error.message : String(error);
    }
    await draw();
  }
  await draw();
}

/**
 * @param {Model} model
 * @param {boolean} control
 * @param {(name: string, action: string) => Promise<void>} act
 */
function row(model, control, act) {
  return h("tr", {},
    h("th", { scope: "row" }, h("a", { href: address(model.name, "playground") }, model.name)),
    h("td", {}, h("span", { class: `pill ${LOOKS[model.state] ?? ""}` }, model.state), model.reason && h("div", { class: "quiet reason" }, model.reason)),
    h("td", {}, model.task ?? "–"),
    h("td", {}, model.versions.map(({ version, state }) => h("span", { class: `pill ${LOOKS[state] ?? ""}` }, `${version}${state === "ready" ? "" : ` ${state}`}`))),
    h("td", { class: "number" }, format.count(model.parameter_count)), h("td", { class: "number" }, format.bytes(model.bytes)),
    control && h("td", {}, h("div", { class: "row nowrap" }, ["load", "unload"].map((action) => h("button", {
      class: "small", "aria-label": `${action} ${model.name}`, disabled: action === "unload" && model.state !== "ready", onclick: () => act(model.name, action),
    }, action === "load" && model.state === "ready" ? "reload" : action)))));
}
