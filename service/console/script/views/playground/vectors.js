/**
 * Vectors of embeddings: a strip of colours, and what the server says of them.
 * @module
 */
import { h } from "../../dom.js";
import * as format from "../../format.js";
import { diverging } from "../../charts/colours.js";

/**
 * Build the strip.
 * @param {{vector?: number[], embedding?: number[], norm?: number, cosines?: number[]|null, tokens?: number}[]} items of one input
 */
export function vectors(items) {
  return h("div", { class: "stack tight" }, ...items.map((item) => {
    const vector = item.vector ?? item.embedding ?? [];
    const most = vector.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
    const canvas = h("canvas", { width: vector.length, height: 1, class: "strip", role: "img", "aria-label": `A vector of ${vector.length} numbers` });
    const pen = canvas.getContext("2d");
    vector.forEach((value, index) => {
      if (!pen) return;
      pen.fillStyle = diverging(value / most);
      pen.fillRect(index, 0, 1, 1);
    });
    return h("div", { class: "stack tight" }, canvas,
      h("p", { class: "quiet number" }, [`${vector.length} numbers`, item.norm !== undefined && `norm ${format.value(item.norm)}`,
        item.tokens !== undefined && `${item.tokens} tokens`].filter(Boolean).join(" · ")),
      item.cosines && h("p", { class: "number" }, "Cosines with the items of this request: ", item.cosines.map((value) => format.value(value)).join(", ")),
      h("p", { class: "mono quiet" }, vector.slice(0, 12).map((value) => format.value(value)).join(", "), vector.length > 12 && " …"));
  }));
}
