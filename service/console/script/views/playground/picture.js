/**
 * A picture: dropped, pasted, chosen, or one of the model's samples.
 * @module
 */
import { jsonOrNull, query, send } from "../../api.js";
import { fill, h } from "../../dom.js";
import { inputOfFile } from "../../inference.js";

/**
 * Show the place where pictures are dropped, and the samples.
 * @param {HTMLElement} panel where it draws
 * @param {import("./page.js").Bench} bench of the page
 */
export function picture(panel, bench) {
  const chooser = h("input", {
    type: "file", class: "visually-hidden", id: "picture-file", accept: "image/*,.npy,.npz,.json,.csv",
    onchange: () => {
      const file = chooser.files?.[0];
      chooser.value = ""; // the same file may be chosen once more
      if (file) void bench.run(inputOfFile(file));
    },
  });
  panel.append(
    h("div", { class: "drop" },
      h("span", { class: "drop-sign", "aria-hidden": "true" }, "⇣"),
      h("p", {}, h("strong", {}, "Drop a picture here"), ", or paste one"),
      chooser, h("label", { for: "picture-file", class: "button primary file" }, "Choose a file")),
    h("p", { class: "help" }, "PNG, JPEG, WebP or BMP. Arrays (.npy, .npz) may be dropped as well."));
  const strip = h("div", { class: "stack tight" });
  panel.append(strip);
  void samples(strip, bench);
}

/**
 * @param {HTMLElement} strip
 * @param {import("./page.js").Bench} bench
 */
async function samples(strip, { model, version, run, signal }) {
  const path = `/models/${encodeURIComponent(model.name)}/samples`;
  const found = await jsonOrNull(path + query({ version })).catch(() => null);
  const pictures = (found?.samples ?? []).filter((/** @type {{media_type: string}} */ { media_type: type }) => type.startsWith("image/"));
  if (!pictures.length || signal.aborted) return;
  fill(strip, h("h3", {}, "Samples of this model"), h("div", { class: "samples" }, pictures.slice(0, 24).map(
    (/** @type {{name: string}} */ { name }) => sample(path, name, version, run, signal))));
}

/**
 * A button for a sample. Its picture is fetched when it comes into view.
 * @param {string} path
 * @param {string} name
 * @param {string|null} version
 * @param {import("./page.js").Bench["run"]} run
 * @param {AbortSignal} signal
 */
function sample(path, name, version, run, signal) {
  /** @type {Promise<Blob>|null} */
  let loaded = null;
  const label = h("span", { class: "sample-name" }, name.replace(/\.[^.]+$/, ""));
  const button = h("button", { class: "sample", title: name, "aria-label": `Sample ${name}`, onclick: async () => {
    const blob = await load();
    await run({ body: blob, type: blob.type, name, kind: "picture" });
  } }, label);
  /** @returns {Promise<Blob>} */
  function load() {
    loaded ??= send(`${path}/${encodeURIComponent(name)}${query({ version })}`, { signal }).then((response) => response.blob());
    return loaded;
  }
  /** Show the picture in place of the name. */
  async function thumbnail() {
    if (signal.aborted) return;
    const url = URL.createObjectURL(await load());
    signal.addEventListener("abort", () => URL.revokeObjectURL(url));
    fill(button, h("img", { src: url, alt: "", width: 56, height: 56 }));
  }
  const observer = new IntersectionObserver(([entry]) => {
    if (!entry?.isIntersecting) return;
    observer.disconnect();
    thumbnail().catch(() => {});
  });
  observer.observe(button);
  signal.addEventListener("abort", () => observer.disconnect());
  return button;
}
