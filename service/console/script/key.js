/**
 * Asks for the server's key.
 * @module
 */
import { h } from "./dom.js";

/** @type {Promise<string>|null} */
let asking = null;
/** The key that was given last: when the page asks again, it was refused. */
let last = "";

/**
 * Ask for a key; several calls that wait for one share the question.
 * @param {string} reason the server's sentence
 * @param {Error} refusal what is thrown where nobody gives one
 * @returns {Promise<string>}
 */
export function askForKey(reason, refusal) {
  asking ??= open(reason, refusal).finally(() => {
    asking = null;
  });
  return asking;
}

/**
 * @param {string} reason
 * @param {Error} refusal
 * @returns {Promise<string>}
 */
function open(reason, refusal) {
  return new Promise((resolve, reject) => {
    const field = h("input", { type: "password", id: "api-key", autocomplete: "off", required: true, value: last, "aria-invalid": last ? "true" : null, "aria-describedby": "key-problem" });
    const dialog = h(
      "dialog",
      { "aria-labelledby": "key-title" },
      h(
        "form",
        { method: "dialog", class: "stack" },
        h("h2", { id: "key-title" }, "This server asks for a key"),
        h("p", { class: "quiet" }, reason),
        h("div", { class: "field" }, h("label", { for: "api-key" }, "API key"), field,
          h("p", { id: "key-problem", class: "field-problem", role: "alert", hidden: !last }, "The server does not accept this key.")),
        h("p", { class: "help" }, "It is kept in this page's memory only, and forgotten when you close or reload it."),
        h(
          "div",
          { class: "row" },
          h("button", { class: "primary", value: "use" }, "Use this key"),
          h("button", { value: "cancel", formnovalidate: true }, "Cancel"),
        ),
      ),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      last = dialog.returnValue === "use" ? field.value.trim() : "";
      if (last) resolve(last);
      else reject(refusal);
    });
    document.body.append(dialog);
    dialog.showModal();
    if (last) field.select();
  });
}
