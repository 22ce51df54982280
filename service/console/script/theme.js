/**
 * Light or dark: as the system has it, or as chosen here.
 * @module
 */
import { h } from "./dom.js";

const NAMES = /** @type {const} */ (["auto", "light", "dark"]);
const SIGNS = { auto: "◐", light: "☀", dark: "☾" };

/** Build the switch, and apply what was chosen before. */
export function themeSwitch() {
  const before = localStorage.getItem("theme");
  let chosen = NAMES.find((name) => name === before) ?? "auto";
  const sign = h("span", { "aria-hidden": "true" });
  const button = h("button", { class: "small", onclick: next }, sign);
  /** Go on to the next of the three. */
  function next() {
    chosen = NAMES[(NAMES.indexOf(chosen) + 1) % NAMES.length] ?? "auto";
    localStorage.setItem("theme", chosen);
    apply();
  }
  /** Show what is chosen. */
  function apply() {
    if (chosen === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    sign.textContent = SIGNS[chosen];
    const text = chosen === "auto" ? "Theme: as the system" : `Theme: ${chosen}`;
    button.setAttribute("aria-label", text);
    button.title = text;
    dispatchEvent(new Event("themechange"));
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("themechange")));
  apply();
  return button;
}

/**
 * A colour of the theme in force, for canvases.
 * @param {string} name without its dashes
 * @returns {string}
 */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
