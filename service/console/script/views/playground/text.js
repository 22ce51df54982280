/**
 * Text, for models that read it.
 * @module
 */
import { h } from "../../dom.js";

/**
 * Show the field.
 * @param {HTMLElement} panel where it draws
 * @param {import("./page.js").Bench} bench of the page
 */
export function text(panel, { run, model }) {
  const field = h("textarea", { id: "text-input", class: "prose", rows: 6, placeholder: "The harvest was better than anyone had hoped." });
  /** Ask the model: several lines with a blank one between are several texts. */
  function ask() {
    const texts = field.value.split(/\n\s*\n/).map((part) => part.trim()).filter(Boolean);
    if (!texts.length) return field.focus();
    const body = JSON.stringify(texts.length > 1 ? { texts } : { text: texts[0] });
    void run({ body, type: "application/json", name: "text.json", kind: "text" });
  }
  field.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask(); });
  panel.append(
    h("div", { class: "field" }, h("label", { for: "text-input" }, `Text for ${model.name}`), field),
    h("div", { class: "row" }, h("button", { class: "primary", onclick: ask }, "Run"), h("span", { class: "help" }, "or Ctrl + Enter. A blank line begins another text.")));
}
