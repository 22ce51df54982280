/**
 * The graph of a model, coloured by what a run of it took.
 * @module
 */
import { GraphCanvas } from "./canvas.js";
import { absorb } from "./fused.js";
import { MEASURES, kindColour, looksOf } from "./measures.js";
import { minimap } from "./minimap.js";
import { Drawing } from "./model.js";
import { showPanel } from "./panel.js";
import { operatorTable } from "./table.js";
import { json, query } from "../../api.js";
import { failure, fill, h, loading, stylesheet } from "../../dom.js";
import { remember } from "../../router.js";
import { findRun, noRun, runSample } from "../../runs.js";
import * as format from "../../format.js";

/**
 * Show the page.
 * @param {import("../../app.js").Context} context of the page
 */
export async function show(context) {
  const { root, model, state, signal } = context;
  if (!model) return;
  fill(root, loading("The server lays the graph out …"));
  const [layout, run] = await Promise.all([loadLayout(context), findRun(context), stylesheet("graph")]);
  if (signal.aborted) return;
  const layers = new Map((run?.trace.layers ?? []).map((layer) => [layer.name, layer]));
  const page = new GraphPage(context, new Drawing(absorb(layout, layers)), run, layers);
  page.build();
  page.pick(state.get("node"), true);
}

/**
 * @param {import("../../app.js").Context} context
 * @returns {Promise<import("./model.js").Layout>}
 */
function loadLayout({ model, version, state, signal }) {
  const options = { model: model?.name, version, format: "layout", collapse: state.get("collapse") ?? "auto", expanded: state.get("open"), collapsed: state.get("closed") };
  return json(`/graph${query(options)}`, { signal });
}

/** The page's parts, and what changes them. */
class GraphPage {
  /**
   * @param {import("../../app.js").Context} context
   * @param {Drawing} drawing
   * @param {import("../../store.js").Run|null} run
   * @param {Map<string, import("../../store.js").Layer>} layers of the run
   */
  constructor(context, drawing, run, layers) {
    this.context = context;
    this.drawing = drawing;
    this.run = run;
    this.layers = layers;
    /** @type {Map<string, number>} */
    this.losses = new Map();
    /** @type {string|null} */
    this.pathFrom = null;
    this.graph = new GraphCanvas(drawing, {
      pick: (name) => this.pick(name, false),
      open: (node) => { if (node.kind === "module") this.open(node); },
      moved: () => this.map?.draw(),
    });
    this.map = minimap(this.graph);
    this.panel = h("section", { class: "card panel", "aria-label": "Operator" });
    this.legend = h("div", { class: "heat-legend" });
    this.help = h("p", { class: "help" });
    this.message = h("p", { class: "help", role: "status" });
    const wanted = context.state.get("measure");
    this.measure = MEASURES.find(({ name }) => name === wanted) ?? /** @type {typeof MEASURES[0]} */ (MEASURES[0]);
  }

  /** Put the parts together. */
  build() {
    const { root, model, signal } = this.context;
    const { operator_count: count } = this.drawing.layout;
    const modules = this.drawing.layout.modules.length > 0;
    fill(root,
      h("div", { class: "head" }, h("h1", {}, `Graph of ${model?.name}`),
        h("p", {}, `${count.toLocaleString("en")} operators, from the inputs down to the outputs. ${this.runText()}`)),
      !this.run && h("section", { class: "card graph-run" }, noRun(this.context, () => void show({ ...this.context, state: placeState() }), "Run the model once, and its operators are coloured by the time they took.")),
      h("div", { class: "row graph-tools" }, this.measureChoice(), this.search(), modules && this.moduleButtons()),
      h("div", { class: "row between legend-row" }, this.legend, this.message),
      h("div", { class: "graph-columns" },
        h("div", { class: "graph-frame" }, this.graph.element, this.map.element, this.zoomButtons()),
        this.panel),
      this.help,
      operatorTable(this.drawing, this.layers, (name) => {
        this.pick(name, true);
        this.graph.element.scrollIntoView({ block: "nearest" });
      }));
    fill(this.panel, h("h2", {}, "Operator"), h("p", { class: "quiet" }, "Click an operator, or walk along its lines with the arrow keys. Drag to move, Ctrl + wheel to zoom."));
    const observer = new ResizeObserver(() => this.graph.changed());
    observer.observe(this.graph.element);
    signal.addEventListener("abort", () => observer.disconnect());
    addEventListener("themechange", () => { this.graph.refresh(); this.map.repaint(); }, { signal });
    this.colour();
    this.graph.start();
    if (this.measure.name === "loss") void this.loadLosses().then(() => this.colour());
  }

  /** @returns {string} */
  runText() {
    if (!this.run) return "";
    const native = this.run.trace.layers.every(({ backend, type }) => backend !== "numpy" || /^pnnx\.(In|Out)put$/.test(type));
    const { total_ms: total, observed } = this.run.trace;
    return `The run shown took ${format.milliseconds(total)}${native ? ", all in native kernels" : ""}${observed ? "; it was observed, which makes it slower than others" : ""}.`;
  }

  /** Colour the nodes by the chosen measure. */
  colour() {
    const { looks, most, hottest, kinds } = looksOf(this.measure, this.drawing.layout.nodes, this.layers, this.losses);
    this.graph.looks = looks;
    this.graph.element.dataset.hottest = hottest ?? "";
    this.help.textContent = this.measure.help;
    const ranked = kinds.length === 0 && most > 0;
    fill(this.legend, ranked && [h("span", { class: "number" }, this.measure.write?.(0) ?? "0"), h("span", { class: "heat-scale", "aria-hidden": "true" }), h("span", { class: "number" }, this.measure.write?.(most) ?? ""), h("span", { class: "quiet" }, "square-root scale")],
      kinds.map((kind) => h("span", { class: "row legend-kind" }, h("span", { class: "swatch-kind", style: { background: kindColour(kind) }, "aria-hidden": "true" }), kind)),
      [...this.layers.values()].some((layer) => layer.fused_into) && h("span", { class: "quiet" }, "+ fused into the operator above it"));
    this.graph.refresh();
    this.map.repaint();
  }

  /** A select of the measures. */
  measureChoice() {
    const select = h("select", {
      id: "measure",
      onchange: async () => {
        this.measure = MEASURES.find(({ name }) => name === select.value) ?? this.measure;
        remember({ measure: this.measure.name === "time" ? null : this.measure.name });
        if (this.measure.name === "loss" && !this.losses.size) await this.loadLosses();
        this.colour();
      },
    }, MEASURES.map(({ name, title }) => h("option", { value: name, selected: name === this.measure.name }, title)));
    return h("div", { class: "row" }, h("label", { for: "measure" }, "Colour by"), select);
  }

  /** Ask how far compiled kernels are from numpy. */
  async loadLosses() {
    const { compareWithNumpy } = await import("../compare/losses.js");
    this.message.textContent = "The server runs the model with numpy as well …";
    try {
      if (!this.run) {
        // what was fused is known from a run only, and has its host's result to compare
        await runSample(this.context);
        return this.reload({ measure: "loss" });
      }
      this.losses = await compareWithNumpy(this.context);
      this.message.textContent = "";
    } catch (error) {
      this.message.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  /** A field that finds operators by name or type. */
  search() {
    const names = this.drawing.layout.nodes.flatMap(({ operators }) => operators);
    const field = h("input", { type: "search", id: "graph-search", placeholder: "name or type", list: "graph-names", autocomplete: "off" });
    const list = h("datalist", { id: "graph-names" }, names.slice(0, 400).map((name) => h("option", { value: name })));
    let at = -1;
    field.addEventListener("input", () => { at = -1; this.mark(field.value); });
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      const found = this.mark(field.value);
      if (!found.length) return;
      at = (at + (event.shiftKey ? found.length - 1 : 1)) % found.length;
      this.pick(found[at] ?? null, true);
      this.message.textContent = `${at + 1} of ${found.length}`;
    });
    return h("div", { class: "row" }, h("label", { for: "graph-search" }, "Find"), field, list);
  }

  /**
   * Mark the nodes whose name or type contains a text.
   * @param {string} text
   * @returns {string[]} names of the operators found, exact ones first
   */
  mark(text) {
    const wanted = text.trim().toLowerCase();
    const types = new Map([...this.layers.values()].map(({ name, type }) => [name, type.toLowerCase()]));
    const all = wanted ? this.drawing.layout.nodes.flatMap((node) => node.operators.filter((name) =>
      name.toLowerCase().includes(wanted) || (types.get(name) ?? node.type.toLowerCase()).includes(wanted))) : [];
    all.sort((a, b) => Number(b.toLowerCase() === wanted) - Number(a.toLowerCase() === wanted));
    this.graph.marked = new Set(all.map((name) => this.drawing.owners.get(name) ?? ""));
    this.message.textContent = wanted ? `${all.length} found${all.length ? "; Enter goes to the next" : ""}` : "";
    this.graph.refresh();
    return all;
  }

  /** Buttons that open and close all modules. */
  moduleButtons() {
    /** @type {[string, string][]} */
    const ways = [["auto", "As needed"], ["none", "All open"], ["all", "All closed"]];
    const now = this.context.state.get("collapse") ?? "auto";
    return h("div", { class: "row" }, h("span", { class: "quiet" }, "Modules"), ways.map(([way, title]) => h("button", {
      class: "small", "aria-pressed": String(way === now), onclick: () => this.reload({ collapse: way === "auto" ? null : way, open: null, closed: null }),
    }, title)));
  }

  /** @param {string} module to draw as one node */
  close(module) {
    const state = placeState();
    const kept = (state.get("open") ?? "").split(",").filter((name) => name && name !== module);
    const closed = new Set([...(state.get("closed") ?? "").split(",").filter(Boolean), module]);
    this.reload({ open: kept.join(","), closed: [...closed].join(",") });
  }

  /**
   * What can be done with the chosen node.
   * @param {import("./model.js").GraphNode} node
   */
  nodeButtons(node) {
    return h("p", { class: "row" },
      h("button", { class: "small", onclick: () => { this.pathFrom = node.id; this.message.textContent = "Now choose the other end."; } }, "Path from here"),
      node.module && h("button", { class: "small", onclick: () => this.close(node.module) }, `Close ${node.module}`));
  }

  /** @param {"svg"|"png"} kind */
  async save(kind) {
    try {
      await (await import("./picture.js")).downloadPicture(this.graph, `${this.context.model?.name}-graph`, kind);
    } catch (error) {
      this.message.textContent = error instanceof Error ? error.message : "The browser cannot draw a picture of this size.";
    }
  }

  /** Buttons to zoom, and to download what is drawn. */
  zoomButtons() {
    return h("div", { class: "row zoom" },
      h("button", { class: "small", "aria-label": "Zoom out", onclick: () => this.graph.zoom(0.8) }, "−"),
      h("button", { class: "small", "aria-label": "Zoom in", onclick: () => this.graph.zoom(1.25) }, "+"),
      h("button", { class: "small", onclick: () => this.graph.fit() }, "Fit"),
      h("button", { class: "small", "aria-label": "Download as SVG", onclick: () => this.save("svg") }, "SVG"),
      h("button", { class: "small", "aria-label": "Download as PNG", onclick: () => this.save("png") }, "PNG"));
  }

  /**
   * Open a module, and those around it.
   * @param {import("./model.js").GraphNode} node of the module
   */
  open(node) {
    const state = placeState();
    const around = this.drawing.layout.modules.filter(({ name }) => node.name === name || node.name.startsWith(`${name}.`)).map(({ name }) => name);
    const open = new Set([...(state.get("open") ?? "").split(",").filter(Boolean), ...around, node.name]);
    const closed = (state.get("closed") ?? "").split(",").filter((name) => name && !open.has(name));
    this.reload({ open: [...open].join(","), closed: closed.join(","), node: node.operators[0] ?? null });
  }

  /** @param {Record<string, string|null>} changes of the address */
  reload(changes) {
    remember(changes, true);
    show({ ...this.context, state: placeState() }).catch((error) => fill(this.context.root, failure(error)));
  }

  /**
   * Choose an operator or node.
   * @param {string|null} name of it
   * @param {boolean} reveal whether the drawing moves to it
   */
  pick(name, reveal) {
    const node = this.drawing.nodeOf(name);
    if (!node) return;
    this.graph.chosen = node.id;
    if (this.pathFrom && this.pathFrom !== node.id) {
      const way = this.drawing.path(this.pathFrom, node.id);
      this.graph.path = new Set(way);
      this.message.textContent = way.length ? `Path of ${way.length - 1} steps: ${way.length < 8 ? way.join(" → ") : `${way.slice(0, 3).join(" → ")} → … → ${way.at(-1)}`}` : "No path leads from one to the other.";
      this.pathFrom = null;
    }
    remember({ node: name }, !placeState().has("node"));
    if (reveal) this.graph.reveal(node);
    else this.graph.refresh();
    const fused = node.kind === "operator" && name !== node.id ? this.layers.get(name ?? "") : null;
    void showPanel(this.panel, {
      node: fused ? { ...node, name: fused.name, type: fused.type } : node, buttons: this.nodeButtons(node), model: this.context.model?.name ?? "", version: this.context.version, layers: this.layers, run: this.run,
      pick: (other) => this.pick(other, true), open: (module) => this.open(module),
    });
  }
}

/** @returns {URLSearchParams} the state of the address now */
const placeState = () => new URLSearchParams(location.hash.split("?")[1] ?? "");
