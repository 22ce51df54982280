/**
 * The choice of a model and of its version, in the bar.
 * @module
 */
import { fill, h } from "./dom.js";
import { address } from "./router.js";

/**
 * Show which model is chosen, and let another one be chosen.
 * @param {import("./store.js").Model[]} all models of the server
 * @param {import("./store.js").Model|null} model the chosen one
 * @param {string|null} version the chosen version
 * @param {string} page that stays open
 */
export function showPickers(all, model, version, page) {
  const root = /** @type {HTMLElement} */ (document.getElementById("pickers"));
  if (!all.length) {
    fill(root);
    return;
  }
  const models = h(
    "select",
    { "aria-label": "Model", onchange: () => { location.hash = address(models.value, page); } },
    !model && h("option", { value: "", disabled: true, selected: true }, "Choose a model"),
    all.map(({ name, state }) =>
      h("option", { value: name, selected: name === model?.name }, state === "ready" ? name : `${name} (${state})`)),
  );
  const ready = (model?.versions ?? []).filter(({ state }) => state === "ready");
  const versions = h(
    "select",
    {
      "aria-label": "Version",
      onchange: () => { location.hash = address(model?.name ?? null, page, { version: versions.value }); },
    },
    h("option", { value: "" }, `Version ${model?.version ?? ""} (served)`),
    ready
      .filter((entry) => entry.version !== model?.version)
      .map((entry) => h("option", { value: entry.version, selected: entry.version === version }, `Version ${entry.version}`)),
  );
  fill(root, models, ready.length > 1 && versions);
}
