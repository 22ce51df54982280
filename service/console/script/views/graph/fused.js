/**
 * Operators that were computed by another one's kernel, drawn as lines in its box.
 * @module
 */

/** @typedef {import("./model.js").GraphNode} GraphNode */
/** @typedef {import("./model.js").GraphEdge} GraphEdge */
/** @typedef {import("./model.js").Layout} Layout */

/** Height of a line in a box. */
export const LINE = 17;

/**
 * Move fused operators into the boxes of their hosts; rows that become empty close.
 * @param {Layout} layout as `/graph?format=layout` gives it
 * @param {Map<string, import("../../store.js").Layer>} layers of a run, by operator
 * @returns {Layout}
 */
export function absorb(layout, layers) {
  const nodes = new Map(layout.nodes.map((node) => [node.id, { ...node, operators: [...node.operators] }]));
  /** @param {string} id @returns {string} id of the node whose box it is drawn in */
  const hostOf = (id) => {
    const host = layers.get(id)?.fused_into;
    return host && nodes.get(host)?.kind === "operator" ? host : id;
  };
  const kept = [...nodes.values()].filter(({ id }) => hostOf(id) === id);
  if (kept.length === nodes.size) return layout;
  for (const { id } of layout.nodes) {
    const host = nodes.get(hostOf(id));
    if (host && host.id !== id) host.operators.push(id);
  }
  for (const node of kept) if (node.kind === "operator") node.height += LINE * (node.operators.length - 1);
  const move = closeRows(layout.nodes, kept);
  for (const node of kept) node.y = move(node.y);
  return { ...layout, nodes: kept, edges: edgesBetween(layout.edges, nodes, hostOf, move), height: move(layout.height) };
}

/**
 * Where rows are after those without a node have closed and others have grown.
 * @param {GraphNode[]} before nodes as they were laid out
 * @param {GraphNode[]} kept those that are still drawn, with their new heights
 * @returns {(y: number) => number} new place of an old one
 */
function closeRows(before, kept) {
  /** @type {Map<number, {top: number, bottom: number, height: number}>} */
  const rows = new Map();
  for (const { rank, y, height } of before) {
    const row = rows.get(rank) ?? { top: y, bottom: y + height, height: 0 };
    rows.set(rank, { top: Math.min(row.top, y), bottom: Math.max(row.bottom, y + height), height: 0 });
  }
  for (const { rank, y, height } of kept) {
    const row = rows.get(rank);
    if (row) row.height = Math.max(row.height, y - row.top + height);
  }
  /** @type {[number, number][]} */
  const stops = [[0, 0]];
  for (const { top, bottom, height } of [...rows.values()].sort((a, b) => a.top - b.top)) {
    const [oldY, newY] = stops[stops.length - 1] ?? [0, 0];
    const start = newY + (height ? Math.max(0, top - oldY) : 0);
    stops.push([top, start], [bottom, start + height]);
  }
  return (y) => {
    const place = stops.findLastIndex(([old]) => old <= y);
    const [[oldY, newY] = [0, 0], next] = [stops[place], stops[place + 1]];
    if (!next || next[0] === oldY) return newY + y - oldY;
    return newY + ((y - oldY) * (next[1] - newY)) / (next[0] - oldY);
  };
}

/**
 * Lines between the boxes that are left, each once.
 * @param {GraphEdge[]} edges
 * @param {Map<string, GraphNode>} nodes
 * @param {(id: string) => string} hostOf
 * @param {(y: number) => number} move
 * @returns {GraphEdge[]}
 */
function edgesBetween(edges, nodes, hostOf, move) {
  /** @type {Map<string, GraphEdge>} */
  const merged = new Map();
  for (const edge of edges) {
    const [source, target] = [nodes.get(hostOf(edge.source)), nodes.get(hostOf(edge.target))];
    if (!source || !target || source === target) continue;
    const key = `${source.id} ${target.id}`; // names have no spaces
    const known = merged.get(key);
    if (known) { known.operands = [...known.operands, ...edge.operands]; continue; }
    const [start, end] = [source.y + source.height, target.y];
    const points = edge.points.map(([x, y]) => /** @type {[number, number]} */ ([x, move(y)]));
    const firstX = source.id === edge.source ? points[0]?.[0] : source.x + source.width / 2;
    const lastX = target.id === edge.target ? points[points.length - 1]?.[0] : target.x + target.width / 2;
    const between = points.slice(1, -1).filter(([, y]) => y > start && y < end);
    merged.set(key, { ...edge, source: source.id, target: target.id, points: [[firstX ?? 0, start], ...between, [lastX ?? 0, end]] });
  }
  return [...merged.values()];
}
