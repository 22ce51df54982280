/**
 * Addresses of pages: `#/MODEL/PAGE?state`, which can be shared and survive a reload.
 * @module
 */

/** @typedef {{model: string|null, page: string, state: URLSearchParams}} Place */

/**
 * Where the page is.
 * @returns {Place}
 */
export function place() {
  const [path = "", state = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  const [model = "", page = ""] = path.split("/").map(decode);
  return { model: model && model !== "-" ? model : null, page: page || "playground", state: new URLSearchParams(state) };
}

/** @param {string} part @returns {string} */
function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/**
 * The address of a page.
 * @param {string|null} model name, or null for pages without one
 * @param {string} page name of the page
 * @param {Record<string, string|number|null|undefined>} [state] what it shows
 * @returns {string} from `#` on
 */
export function address(model, page, state = {}) {
  const given = Object.entries(state).filter(([, entry]) => entry !== null && entry !== undefined && entry !== "");
  const text = new URLSearchParams(given.map(([name, entry]) => [name, String(entry)])).toString();
  return `#/${model === null ? "-" : encodeURIComponent(model)}/${page}${text ? `?${text}` : ""}`;
}

/**
 * Change what this page's address says it shows.
 * @param {Record<string, string|number|null|undefined>} changes null takes an entry away
 * @param {boolean} [step] whether the browser's Back undoes the change
 */
export function remember(changes, step = false) {
  const { model, page, state } = place();
  const differs = Object.entries(changes).some(([name, entry]) => (state.get(name) ?? "") !== String(entry ?? ""));
  for (const [name, entry] of Object.entries(changes)) {
    if (entry === null || entry === undefined || entry === "") state.delete(name);
    else state.set(name, String(entry));
  }
  const to = address(model, page, Object.fromEntries(state));
  if (step && differs) history.pushState(null, "", to);
  else history.replaceState(null, "", to);
}
