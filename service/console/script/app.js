/**
 * The frame of the console: pages, models, theme. A page is loaded when it is first opened.
 * @module
 */
import { ApiError } from "./api.js";
import { showPickers, themeSwitch } from "./bar.js";
import { failure, fill, h, loading } from "./dom.js";
import { address, place } from "./router.js";
import { models } from "./store.js";

/**
 * @typedef {object} Context what a page is given
 * @property {HTMLElement} root where it draws
 * @property {import("./store.js").Model|null} model the chosen model
 * @property {string|null} version the chosen version
 * @property {URLSearchParams} state of the address
 * @property {AbortSignal} signal aborted when the page is left
 */

/** @type {[string, string, () => Promise<{show: (context: Context) => void|Promise<void>}>][]} */
const PAGES = [
  ["playground", "Playground", () => import("./views/playground/page.js")],
  ["graph", "Graph", () => import("./views/graph/page.js")],
  ["tensors", "Tensors", () => import("./views/tensors/page.js")],
  ["timeline", "Timeline", () => import("./views/timeline/page.js")],
  ["compare", "Compare", () => import("./views/compare/page.js")],
  ["server", "Server", () => import("./views/server/page.js")],
  ["learn", "Learn", () => import("./views/learn/page.js")],
];

/** The model that the console opens with where it is served: the best demonstration of those that ship. */
const DEMONSTRATION = "digits";
const WITHOUT_MODEL = new Set(["server", "learn"]);

let leave = new AbortController();
/** @type {string|null} */
let shown = null;

/**
 * Show the page of the address.
 * @param {import("./store.js").Model[]|null} [known] models, where they were asked for just now
 */
async function route(known = null) {
  leave.abort();
  leave = new AbortController();
  const { signal } = leave;
  const main = /** @type {HTMLElement} */ (document.getElementById("main"));
  const { model: wanted, page, state } = place();
  const entry = PAGES.find(([name]) => name === page) ?? /** @type {typeof PAGES[0]} */ (PAGES[0]);
  main.className = entry[0];
  document.title = `${entry[1]}${wanted ? ` · ${wanted}` : ""} · Kuiper console`;
  if (shown !== entry[0]) fill(main, loading(`Loading ${entry[1].toLowerCase()} …`));
  try {
    const [view, all] = await Promise.all([entry[2]().catch(unreachable), known ?? models()]);
    if (signal.aborted) return;
    const model = all.find(({ name }) => name === wanted) ?? null;
    if (!model && !WITHOUT_MODEL.has(entry[0])) {
      chooseModel(main, wanted, entry[0], all);
      return;
    }
    const version = state.get("version");
    showPickers(all, model, version, entry[0]);
    showTabs(model?.name ?? null, entry[0], version);
    const root = h("div", { class: "stack page" });
    root.style.setProperty("gap", "var(--gap)");
    fill(main, root);
    if (shown !== null && shown !== entry[0]) main.focus({ preventScroll: true });
    shown = entry[0];
    await view.show({ root, model, version, state, signal });
  } catch (error) {
    if (!signal.aborted) fill(main, failure(error), retryButton());
  }
}

/**
 * Say that a page's files did not come; the browser's own words name a file.
 * @returns {never}
 */
function unreachable() {
  throw new ApiError("The page cannot be loaded. Is the server still running?", "unreachable", 0);
}

/** @returns {HTMLElement} */
const retryButton = () => h("p", {}, h("button", { onclick: () => void retry() }, "Try again"));

/** Load the document again if the server responds: browsers remember that a script could not be loaded. */
async function retry() {
  await fetch(document.baseURI, { cache: "no-store" }).then(() => location.reload(), () => route());
}

/**
 * Open the demonstration, or the first model that is served, where the address names none; say so where it names one that is not there.
 * @param {HTMLElement} main
 * @param {string|null} wanted
 * @param {string} page
 * @param {import("./store.js").Model[]} all
 */
function chooseModel(main, wanted, page, all) {
  const ready = all.filter(({ state }) => state === "ready");
  const first = ready.find(({ name }) => name === DEMONSTRATION) ?? ready[0] ?? all[0];
  showPickers(all, null, null, page);
  showTabs(null, page, null);
  if (wanted === null && first) {
    history.replaceState(null, "", address(first.name, page));
    void route(all);
    return;
  }
  const text = wanted === null ? "The server serves no models yet." : `The server has no model “${wanted}”.`;
  fill(main, h("div", { class: "empty card" }, h("strong", {}, text), h("p", {}, "Choose one above, or look at the server."),
    h("a", { class: "button", href: address(null, "server") }, "Open the server’s page")));
}

/**
 * @param {string|null} model
 * @param {string} page
 * @param {string|null} version
 */
function showTabs(model, page, version) {
  const tabs = /** @type {HTMLElement} */ (document.getElementById("tabs"));
  fill(
    tabs,
    PAGES.map(([name, title]) =>
      h("a", { href: address(model, name, { version }), "aria-current": name === page && "page" }, title)),
  );
  const current = tabs.querySelector("[aria-current]");
  if (current instanceof HTMLElement) tabs.scrollLeft = current.offsetLeft - tabs.clientWidth / 2;
}

fill(/** @type {HTMLElement} */ (document.getElementById("tools")), themeSwitch());
addEventListener("hashchange", () => void route());
void route();
