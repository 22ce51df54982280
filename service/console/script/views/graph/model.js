/**
 * The drawing that the server laid out, with what neighbours what.
 * @module
 */

/**
 * @typedef {{id: string, kind: string, name: string, type: string, module: string, operators: string[],
 *   x: number, y: number, width: number, height: number, rank: number}} GraphNode
 * @typedef {{source: string, target: string, operand: string, operands: string[], points: [number, number][], stub: boolean}} GraphEdge
 * @typedef {{name: string, parent: string, operator_count: number, open: boolean}} Module
 * @typedef {{width: number, height: number, operator_count: number, nodes: GraphNode[], edges: GraphEdge[], modules: Module[]}} Layout
 */

/** A layout that can be asked for neighbours and paths. */
export class Drawing {
  /** @param {Layout} layout as `/graph?format=layout` gives it */
  constructor(layout) {
    this.layout = layout;
    /** @type {Map<string, GraphNode>} */
    this.nodes = new Map(layout.nodes.map((node) => [node.id, node]));
    /** @type {Map<string, string>} */
    this.owners = new Map(layout.nodes.flatMap((node) => node.operators.map((name) => /** @type {[string, string]} */ ([name, node.id]))));
    /** @type {Map<string, GraphEdge[]>} */
    this.below = new Map();
    /** @type {Map<string, GraphEdge[]>} */
    this.above = new Map();
    for (const edge of layout.edges) {
      this.below.set(edge.source, [...(this.below.get(edge.source) ?? []), edge]);
      this.above.set(edge.target, [...(this.above.get(edge.target) ?? []), edge]);
    }
  }

  /** @param {string|null} operator @returns {GraphNode|null} the node that an operator is drawn as */
  nodeOf(operator) {
    return this.nodes.get(operator ?? "") ?? this.nodes.get(this.owners.get(operator ?? "") ?? "") ?? null;
  }

  /**
   * The node to which a key leads.
   * @param {GraphNode} node from where
   * @param {string} key an arrow
   * @returns {GraphNode|null}
   */
  next(node, key) {
    const vertical = { ArrowDown: (this.below.get(node.id) ?? []).map(({ target }) => target), ArrowUp: (this.above.get(node.id) ?? []).map(({ source }) => source) }[key];
    const middle = node.x + node.width / 2;
    if (vertical) return this.nearest(vertical, middle);
    const side = key === "ArrowRight" ? 1 : -1;
    const row = this.layout.nodes.filter((other) => other.rank === node.rank && (other.x - node.x) * side > 0);
    return this.nearest(row.map(({ id }) => id), middle);
  }

  /**
   * @param {string[]} ids
   * @param {number} middle
   * @returns {GraphNode|null}
   */
  nearest(ids, middle) {
    const found = ids.map((id) => this.nodes.get(id)).filter((node) => node !== undefined);
    return found.sort((a, b) => Math.abs(a.x + a.width / 2 - middle) - Math.abs(b.x + b.width / 2 - middle))[0] ?? null;
  }

  /**
   * The shortest way between two nodes along edges, in whichever direction there is one.
   * @param {string} from id of a node
   * @param {string} to id of another one
   * @returns {string[]} ids from the upper to the lower one; empty where none leads to the other
   */
  path(from, to) {
    const down = this.search(from, to);
    return down.length ? down : this.search(to, from);
  }

  /**
   * @param {string} from
   * @param {string} to
   * @returns {string[]}
   */
  search(from, to) {
    /** @type {Map<string, string|null>} */
    const met = new Map([[from, null]]);
    const waiting = [from];
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      if (id === to) {
        const way = [];
        for (let at = /** @type {string|null} */ (to); at !== null; at = met.get(at) ?? null) way.unshift(at);
        return way;
      }
      for (const { target } of this.below.get(id) ?? []) {
        if (met.has(target)) continue;
        met.set(target, id);
        waiting.push(target);
      }
    }
    return [];
  }
}
