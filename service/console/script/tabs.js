/**
 * A row of tabs, as ARIA has them: arrows go from one to the next.
 * @module
 */
import { fill, h } from "./dom.js";

/**
 * @typedef {{name: string, title: string, show: (panel: HTMLElement) => void}} Tab
 */

/**
 * Build tabs and the panel below them.
 * @param {string} label what they choose
 * @param {Tab[]} tabs in order
 * @param {string|null} chosen name of the first that is shown
 * @param {(name: string) => void} [changed] called at each choice
 * @returns {HTMLElement}
 */
export function tabs(label, tabs, chosen, changed = () => {}) {
  const id = `tabs-${Math.random().toString(36).slice(2, 8)}`;
  const panel = h("div", { role: "tabpanel", id: `${id}-panel`, class: "stack" });
  const buttons = tabs.map((tab, index) =>
    h("button", {
      role: "tab", class: "small", id: `${id}-${index}`, "aria-controls": panel.id,
      onclick: () => choose(index),
      onkeydown: (/** @type {KeyboardEvent} */ event) => walk(event, index),
    }, tab.title));
  /** @param {number} index */
  function choose(index) {
    buttons.forEach((button, at) => {
      button.setAttribute("aria-selected", String(at === index));
      button.tabIndex = at === index ? 0 : -1;
    });
    panel.setAttribute("aria-labelledby", `${id}-${index}`);
    const tab = tabs[index];
    if (!tab) return;
    fill(panel);
    tab.show(panel);
    changed(tab.name);
  }
  /**
   * @param {KeyboardEvent} event
   * @param {number} index
   */
  function walk(event, index) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = (index + step + tabs.length) % tabs.length;
    choose(next);
    buttons[next]?.focus();
  }
  choose(Math.max(0, tabs.findIndex(({ name }) => name === chosen)));
  return h("div", { class: "stack" }, h("div", { role: "tablist", "aria-label": label }, buttons), panel);
}
