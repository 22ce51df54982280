/**
 * What the playground asks for beside the response, and hints about refusals.
 * @module
 */
import { ApiError } from "../../api.js";
import { h } from "../../dom.js";

/** Boxes less probable than this are not asked for; the slider filters those above it. */
export const LEAST = 0.05;

/** Tasks whose responses are boxes. */
const BOXES = ["detection", "instance-segmentation", "keypoints"];

/**
 * Whether the responses of a model are boxes.
 * @param {import("../../store.js").ModelDetail} model that responds
 */
export const responsesBoxes = (model) => BOXES.includes(model.task ?? "");

/**
 * The query of a run: of boxes, also those that the slider may show later.
 * @param {import("../../store.js").ModelDetail} model that responds
 * @param {boolean} live whether it is one picture of many: those are not traced
 * @returns {import("../../inference.js").Options}
 */
export function options(model, live) {
  return { ...(responsesBoxes(model) ? { confidence: LEAST } : {}), ...(live ? { trace: "off" } : {}) };
}

/**
 * What helps where a request was refused.
 * @param {unknown} error what was thrown
 */
export function hint(error) {
  if (!(error instanceof ApiError) || !error.status) return null;
  return h("p", { class: "help" }, "That is the server’s own response. ", h("a", { href: "/docs" }, "The API’s description"), " says what it takes.");
}
