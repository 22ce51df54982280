/**
 * The bar above every page: the choice of a model and of its version, and the theme.
 * @module
 */
import { fill, h } from "./dom.js";
import { address } from "./router.js";

const NAMES = /** @type {const} */ (["auto", "light", "dark"]);
const SYSTEM = "(prefers-color-scheme: dark)";
/** When the colours of a dark page are in force. */
const MEDIA = { auto: SYSTEM, light: "not all", dark: "all" };
const SIGNS = { auto: "◐", light: "☀", dark: "☾" };

/**
 * What was chosen before; null also where the browser stores nothing.
 * @returns {string|null}
 */
function storedTheme() {
  try {
    return localStorage.getItem("theme");
  } catch {
    return null;
  }
}

/**
 * Keep a choice, where the browser is allowed to.
 * @param {string} chosen
 */
function storeTheme(chosen) {
  try {
    localStorage.setItem("theme", chosen);
  } catch {
    // it holds until the page is closed
  }
}

/** Build the switch, and apply what was chosen before. */
export function themeSwitch() {
  const before = storedTheme();
  let chosen = NAMES.find((name) => name === before) ?? "auto";
  const dark = /** @type {HTMLLinkElement} */ (document.getElementById("dark"));
  const sign = h("span", { "aria-hidden": "true" });
  const button = h("button", { class: "small", onclick: next }, sign);
  /** Go on to the next of the three. */
  function next() {
    chosen = NAMES[(NAMES.indexOf(chosen) + 1) % NAMES.length] ?? "auto";
    storeTheme(chosen);
    apply();
  }
  /** Show what is chosen. */
  function apply() {
    dark.media = MEDIA[chosen];
    sign.textContent = SIGNS[chosen];
    const text = chosen === "auto" ? "Theme: as the system" : `Theme: ${chosen}`;
    button.setAttribute("aria-label", text);
    button.title = text;
    announce();
  }
  /** Draw canvases again. */
  function announce() {
    dispatchEvent(new Event("themechange"));
  }
  matchMedia(SYSTEM).addEventListener("change", announce);
  dark.addEventListener("load", announce);
  apply();
  return button;
}

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
