/**
 * An expression taken apart: tokens, tree, reverse Polish notation, and its value step by step.
 * @module
 */
import { json } from "../../api.js";
import { failure, fill, h, s } from "../../dom.js";
import { stepper } from "./stepper.js";
import { remember } from "../../router.js";

/**
 * @typedef {{text: string, kind: string, start: number, end: number}} Token
 * @typedef {{text: string, start: number, children: Tree[]}} Tree
 * @typedef {{token: string, start: number, taken: number, depth: number, stack: {text: string, dtype: string}[]}} Step
 */

const EXAMPLES = ["add(@0,mul(@1,@2))", "mul(@0,sigmoid(@0))", "div(sub(@0,@1),sqrt(add(@2,1e-5)))", "pow(add(@0,2),3)"];
const VALUES = "2\n[3, -1]\n4";

/**
 * Show the lesson.
 * @param {HTMLElement} root where it is shown
 * @param {URLSearchParams} state of the address
 * @param {AbortSignal} signal aborted when the page is left
 */
export function expression(root, state, signal) {
  const field = h("input", { id: "expression", class: "mono wide", value: state.get("expression") ?? EXAMPLES[0] ?? "", spellcheck: "false", autocomplete: "off", maxlength: 2000 });
  const values = h("textarea", { id: "values", rows: 3, class: "values", spellcheck: "false" }, state.get("values") ?? VALUES);
  const result = h("div", { class: "stack" });
  let timer = 0;
  /** Ask the server, when the typing has stopped for a moment. */
  function ask() {
    clearTimeout(timer);
    timer = setTimeout(() => void show(result, field.value, values.value, signal), 200);
  }
  for (const input of [field, values]) input.addEventListener("input", ask);
  signal.addEventListener("abort", () => clearTimeout(timer));
  fill(root, h("h2", {}, "How an expression is computed"),
    h("p", { class: "quiet" }, "The exporter writes chains of arithmetic as one operator, pnnx.Expression. It is read as tokens, becomes a tree, and is computed in reverse Polish order with a stack."),
    h("div", { class: "field" }, h("label", { for: "expression" }, "Expression"), field),
    h("div", { class: "row" }, h("span", { class: "quiet" }, "Examples"), EXAMPLES.map((text) => h("button", { class: "small mono", onclick: () => { field.value = text; ask(); } }, text))),
    h("div", { class: "field" }, h("label", { for: "values" }, "Values of @0, @1 …, one a line: a number, or a list in JSON"), values), result);
  void show(result, field.value, values.value, signal);
}

/**
 * @param {HTMLElement} root
 * @param {string} text
 * @param {string} lines
 * @param {AbortSignal} signal
 */
async function show(root, text, lines, signal) {
  remember({ expression: text === EXAMPLES[0] ? null : text, values: lines === VALUES ? null : lines });
  try {
    const values = lines.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
    const found = await json("/expression", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ text, values }), signal });
    fill(root, ...lesson(found));
  } catch (error) {
    if (signal.aborted) return;
    fill(root, error instanceof SyntaxError ? h("p", { class: "notice bad", role: "alert" }, "A value is neither a number nor a list of numbers, such as [1, 2.5].") : failure(error));
  }
}

/** @param {any} found as `/expression` gives it */
function lesson(found) {
  const tokens = /** @type {Token[]} */ (found.tokens).filter(({ kind }) => kind !== "end");
  const steps = /** @type {Step[]} */ (found.steps);
  return [
    h("div", { class: "stack tight" }, h("h3", {}, "1. Tokens"), h("ol", { class: "tokens" }, tokens.map(({ text, kind }) => h("li", { class: `token ${kind}` }, h("span", { class: "mono" }, text), h("span", { class: "token-kind" }, kind))))),
    h("div", { class: "stack tight" }, h("h3", {}, "2. Tree"), h("div", { class: "scroll" }, tree(found.tree))),
    h("div", { class: "stack tight" }, h("h3", {}, "3. Reverse Polish notation"), h("p", { class: "help" }, "Operands come before what is done with them, so that no brackets are needed."), h("p", { class: "mono postfix" }, found.postfix.join(" "))),
    steps.length
      ? h("div", { class: "stack tight" }, h("h3", {}, "4. Value, step by step"), stepper(steps.length, (index) => step(steps, index)), h("p", { class: "value-line" }, "Value: ", h("strong", { class: "mono", id: "value" }, found.value?.text ?? "–")))
      : h("p", { class: "quiet" }, "Give the operands values, and the expression is computed step by step."),
  ];
}

/**
 * @param {Step[]} steps
 * @param {number} index
 */
function step(steps, index) {
  const now = steps[index];
  if (!now) return [];
  const what = now.taken ? `${now.token} takes ${now.taken} from the stack and puts its result there.` : `${now.token} goes onto the stack.`;
  return [
    h("p", { class: "mono postfix" }, steps.map(({ token }, at) => h("span", { class: at === index ? "now" : at < index ? "done" : "later" }, `${token} `))),
    h("p", {}, what),
    h("ol", { class: "pile", reversed: true, "aria-label": "Stack, top first" }, [...now.stack].reverse().map(({ text, dtype }) => h("li", {}, h("span", { class: "mono" }, text), h("span", { class: "quiet" }, ` ${dtype}`)))),
  ];
}

/** @param {Tree} root */
function tree(root) {
  /** @type {{node: Tree, x: number, y: number, parent: {x: number, y: number}|null}[]} */
  const placed = [];
  let leaves = 0;
  /** @param {Tree} node @param {number} depth @returns {{x: number, y: number}} */
  function place(node, depth) {
    const children = node.children.map((child) => place(child, depth + 1));
    const x = children.length ? ((children[0]?.x ?? 0) + (children.at(-1)?.x ?? 0)) / 2 : leaves++ * 84 + 50;
    const at = { x, y: depth * 58 + 24 };
    for (const entry of placed) if (node.children.includes(entry.node)) entry.parent = at;
    placed.push({ node, ...at, parent: null });
    return at;
  }
  place(root, 0);
  const width = Math.max(...placed.map(({ x }) => x)) + 50;
  const height = Math.max(...placed.map(({ y }) => y)) + 26;
  return s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "tree", role: "img", "aria-label": `Tree of the expression: ${words(root)}` },
    placed.map(({ x, y, parent }) => parent && s("line", { x1: parent.x, y1: parent.y + 15, x2: x, y2: y - 15, class: "tree-line" })),
    placed.map(({ node, x, y }) => s("g", {}, s("rect", { x: x - 38, y: y - 15, width: 76, height: 30, rx: 8, class: node.children.length ? "tree-node" : "tree-leaf" }),
      s("text", { x, y: y + 4.5, "text-anchor": "middle", class: "tree-text" }, node.text))));
}

/** @param {Tree} node @returns {string} */
const words = (node) => (node.children.length ? `${node.text} of ${node.children.map(words).join(" and ")}` : node.text);
