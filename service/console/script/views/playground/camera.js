/**
 * The camera: one picture after the other, as fast as the model responds.
 * @module
 */
import { fill, h } from "../../dom.js";

/**
 * Show the camera's picture, and a button that starts it.
 * @param {HTMLElement} panel where it draws
 * @param {import("./page.js").Bench} bench of the page
 */
export function camera(panel, bench) {
  const video = h("video", { class: "camera", muted: true, playsinline: true, autoplay: true, "aria-label": "Picture of the camera" });
  video.muted = true;
  const rate = h("p", { class: "rate number", role: "status" });
  const start = h("button", { class: "primary" }, "Start the camera");
  const stop = h("button", { hidden: true }, "Stop");
  const message = h("div", {});
  panel.append(video, h("div", { class: "row" }, start, stop, rate), message,
    h("p", { class: "help" }, "Pictures go to this server and nowhere else. The camera ends when you leave this page."));
  /** @type {MediaStream|null} */
  let stream = null;

  /** Give the camera back. */
  function end() {
    for (const track of stream?.getTracks() ?? []) track.stop();
    stream = null;
    video.srcObject = null;
    start.hidden = false;
    stop.hidden = true;
  }
  start.addEventListener("click", async () => {
    fill(message);
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: { width: { ideal: 640 }, facingMode: "environment" } });
    } catch (error) {
      fill(message, h("p", { class: "notice warn", role: "alert" }, explain(error)));
      return;
    }
    if (bench.signal.aborted || !video.isConnected) return end();
    video.srcObject = stream;
    start.hidden = true;
    stop.hidden = false;
    await loop(video, rate, bench, () => stream !== null && video.isConnected);
    end();
  });
  stop.addEventListener("click", end);
  bench.signal.addEventListener("abort", end);
  // another kind of input takes the panel's children away
  new MutationObserver((_, observer) => {
    if (video.isConnected) return;
    end();
    observer.disconnect();
  }).observe(panel.parentElement ?? panel, { childList: true });
}

/**
 * Run the model on one picture after the other, never two at once.
 * @param {HTMLVideoElement} video
 * @param {HTMLElement} rate
 * @param {import("./page.js").Bench} bench
 * @param {() => boolean} goesOn
 */
async function loop(video, rate, bench, goesOn) {
  const canvas = document.createElement("canvas");
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  /** @type {number[]} */
  const responses = [];
  while (goesOn()) {
    await new Promise(requestAnimationFrame);
    if (!video.videoWidth) continue;
    const scale = Math.min(1, 640 / video.videoWidth);
    canvas.width = Math.round(video.videoWidth * scale);
    canvas.height = Math.round(video.videoHeight * scale);
    pen.drawImage(video, 0, 0, canvas.width, canvas.height);
    const blob = await new Promise((/** @type {(blob: Blob|null) => void} */ resolve) => canvas.toBlob(resolve, "image/jpeg", 0.9));
    if (!blob || !goesOn()) break;
    if (!await bench.run({ body: blob, type: "image/jpeg", name: "camera.jpg", kind: "picture" }, true)) break;
    responses.push(performance.now());
    while (responses.length > 2 && (responses.at(-1) ?? 0) - (responses[0] ?? 0) > 2000) responses.shift();
    const seconds = ((responses.at(-1) ?? 0) - (responses[0] ?? 0)) / 1000;
    rate.textContent = seconds ? `${((responses.length - 1) / seconds).toFixed(1)} responses a second` : "";
  }
}

/** @param {unknown} error @returns {string} */
function explain(error) {
  const name = error instanceof Error ? error.name : "";
  if (!navigator.mediaDevices) return "Browsers give cameras only to pages from this machine or over HTTPS.";
  if (name === "NotAllowedError") return "The camera may not be used: allow it in the browser’s address bar.";
  if (name === "NotFoundError") return "There is no camera.";
  return "The camera cannot be opened: another program may be using it.";
}
