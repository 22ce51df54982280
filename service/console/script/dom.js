/**
 * Elements, built without markup: what models are called is always text, never HTML.
 * @module
 */

/** @typedef {Node|string|number|null|undefined|false|Child[]} Child */
/** @typedef {Record<string, unknown>} Properties */

const SVG = "http://www.w3.org/2000/svg";

/**
 * Build an element.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag name of the element
 * @param {Properties} [properties] attributes; `on…` are listeners, `class` and `data-…` as in HTML, `style` an object
 * @param {...Child} children text and elements; false and null are left out
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  apply(element, properties);
  add(element, children);
  return element;
}

/**
 * Build an element of a drawing.
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag name of the element
 * @param {Properties} [properties] as for `h`
 * @param {...Child} children as for `h`
 * @returns {SVGElementTagNameMap[T]}
 */
export function s(tag, properties = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  apply(element, properties);
  add(element, children);
  return /** @type {SVGElementTagNameMap[T]} */ (element);
}

/**
 * Put other children into an element, in place of those that it has.
 * @param {Element} element the parent
 * @param {...Child} children as for `h`
 */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
}

/**
 * @param {Element} element
 * @param {Properties} properties
 */
function apply(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else if (name === "style") {
      // an attribute would be refused by the page's policy; properties are not
      for (const [key, entry] of Object.entries(/** @type {Record<string, string>} */ (value))) {
        /** @type {HTMLElement} */ (element).style.setProperty(key, entry);
      }
    } else if (["value", "checked", "disabled", "hidden", "open", "selected", "srcObject"].includes(name)) {
      Reflect.set(element, name, value);
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/**
 * @param {Element} element
 * @param {Child[]} children
 */
function add(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(element, child);
    else element.append(typeof child === "number" ? String(child) : child);
  }
}

/**
 * Show that something is on its way.
 * @param {string} text what
 */
export const loading = (text) => h("p", { class: "loading", role: "status" }, text);

/**
 * Show what went wrong: the server's own sentence where it has one.
 * @param {unknown} error what was thrown
 */
export function failure(error) {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const text = error instanceof Error ? error.message : String(error);
  return h("div", { class: "notice bad", role: "alert" }, text, code && h("code", { class: "code" }, code));
}

/**
 * Show that there is nothing yet, and what to do about it.
 * @param {string} title what is missing
 * @param {string} text what to do
 * @param {...Child} more a link or button
 */
export const nothing = (title, text, ...more) =>
  h("div", { class: "empty" }, h("strong", {}, title), h("p", {}, text), ...more);

/**
 * Load a stylesheet once.
 * @param {string} name of the file, without its ending
 * @returns {Promise<void>} until it is in force, or cannot be loaded: sizes that are measured before are others
 */
export function stylesheet(name) {
  const href = `/console/style/${name}.css`;
  const link = /** @type {HTMLLinkElement|null} */ (document.head.querySelector(`link[href="${href}"]`)) ?? document.createElement("link");
  return new Promise((resolve) => {
    if (link.sheet) { resolve(); return; }
    link.addEventListener("load", () => resolve(), { once: true });
    link.addEventListener("error", () => { link.remove(); resolve(); }, { once: true });
    if (link.isConnected) return;
    link.rel = "stylesheet";
    link.href = href;
    document.head.append(link);
  });
}
