/**
 * The run that a page shows: that of the address, or the model's last one.
 * @module
 */
import { jsonOrNull, query, send } from "./api.js";
import { h, nothing } from "./dom.js";
import { infer } from "./inference.js";
import { address, remember } from "./router.js";
import { keepInput, keptInput, keptRun } from "./store.js";

/**
 * Find the run to show; where the server keeps it no longer, or it is of another version, its input runs again.
 * @param {import("./app.js").Context} context of the page
 * @returns {Promise<import("./store.js").Run|null>} null where nothing has run yet
 */
export async function findRun({ model, version, state, signal }) {
  if (!model) return null;
  const wanted = state.get("run");
  const last = keptInput(model.name);
  const known = new Set((await jsonOrNull("/traces"))?.traces.map((/** @type {{request_id: string}} */ run) => run.request_id) ?? []);
  const request = wanted ?? last?.request;
  const run = request && known.has(request) ? await keptRun(request) : null;
  if (run && run.model === model.name && run.version === (version ?? model.version)) return run;
  if (!last || wanted && wanted !== last.request) return null;
  return runAgain(model.name, version, last.input, signal);
}

/**
 * Run an input once, plainly, and return its trace.
 * @param {string} model name of the model
 * @param {string|null} version of it
 * @param {import("./store.js").Input} input of the run
 * @param {AbortSignal} [signal] gives the run up
 * @returns {Promise<import("./store.js").Run|null>}
 */
export async function runAgain(model, version, input, signal) {
  const response = await infer(model, version, input, {}, signal);
  await keepInput(model, input, response.request_id);
  remember({ run: response.request_id });
  const kept = await keptRun(response.request_id);
  if (kept) return kept;
  const { timing } = response;
  return {
    request_id: response.request_id, model: response.model, version: response.version, trace: response.trace, stamps: {},
    received_ms: Date.now(), total_ms: timing.total_ms, worker: "", batch_size: 1, observed: false,
  };
}

/**
 * The first sample of a model, as an input.
 * @param {string} model name of the model
 * @param {string|null} version of it
 * @returns {Promise<import("./store.js").Input|null>} null where it has none
 */
export async function firstSample(model, version) {
  const path = `/models/${encodeURIComponent(model)}/samples`;
  const found = await jsonOrNull(path + query({ version }));
  const sample = (found?.samples ?? []).find((/** @type {{media_type: string}} */ { media_type: type }) => /^image|npy|npz/.test(type));
  if (!sample) return null;
  const body = await (await send(`${path}/${encodeURIComponent(sample.name)}${query({ version })}`)).blob();
  return { body, type: sample.media_type, name: sample.name, kind: sample.media_type.startsWith("image/") ? "picture" : "tensor" };
}

/**
 * Run a model on its last input, its first sample, or one that is made up.
 * @param {{model: import("./store.js").Model|null, version: string|null}} context of the page
 */
export async function runSample({ model, version }) {
  if (!model) return;
  const input = keptInput(model.name)?.input ?? await firstSample(model.name, version) ?? await (await import("./invented.js")).inventInput(model, version);
  await runAgain(model.name, version, input);
}

/**
 * Say that nothing has run yet, and offer to run a sample.
 * @param {import("./app.js").Context} context of the page
 * @param {() => void} again shows the page again
 * @param {string} what the page shows of a run
 */
export function noRun({ model, version, state }, again, what) {
  const name = model?.name ?? "";
  const title = state.has("run") ? "This run is no longer kept, or of another version" : "No run to show yet";
  const message = h("p", { role: "status" });
  const button = h("button", {
    class: "primary",
    onclick: async () => {
      button.disabled = true;
      try {
        await runSample({ model, version });
        again();
      } catch (error) {
        message.textContent = error instanceof Error ? error.message : String(error);
      }
    },
  }, "Run a sample");
  return nothing(title, what, h("p", { class: "row" }, button,
    h("a", { class: "button", href: address(name, "playground", { version }) }, "Open the playground")), message);
}
