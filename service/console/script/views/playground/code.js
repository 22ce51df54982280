/**
 * The request of a run, to copy into a terminal or a program.
 * @module
 */
import { h } from "../../dom.js";
import { hasKey } from "../../api.js";
import { inferPath } from "../../inference.js";
import { tabs } from "../../tabs.js";

/** Longest text that is written into a request instead of being read from a file. */
const INLINE = 300;

/**
 * Build the three forms.
 * @param {import("./response.js").RunResponse} answered run
 * @param {HTMLInputElement|null} threshold slider of the probability from which on boxes are shown
 */
export function code({ model, version, input, options }, threshold) {
  const text = typeof input.body === "string" && input.body.length <= INLINE ? input.body : null;
  /** @returns {Request} with the threshold that the page shows */
  function request() {
    const shown = threshold ? { ...options, confidence: threshold.value } : options;
    return { url: location.origin + inferPath(model.name, version, shown), type: input.type, file: input.name, text, key: hasKey() };
  }
  let rewrite = () => {};
  threshold?.addEventListener("input", () => rewrite());
  const forms = /** @type {const} */ ([["curl", "curl", curl], ["python", "Python", python], ["javascript", "JavaScript", javascript]]);
  return h("details", { "data-name": "code" }, h("summary", {}, "This request, to copy"),
    tabs("Language", forms.map(([name, title, write]) => ({ name, title, show: (panel) => {
      const box = copyable(write(request()));
      rewrite = () => box.replaceChildren(...copyable(write(request())).childNodes);
      panel.append(box);
    } })), "curl"));
}

/**
 * Code with a button that copies it.
 * @param {string} text of the code
 */
export function copyable(text) {
  const button = h("button", {
    class: "small copy",
    onclick: async () => {
      await navigator.clipboard.writeText(text).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Select it and press Ctrl + C"; });
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    },
  }, "Copy");
  return h("div", { class: "code-box" }, h("pre", { tabindex: 0, "aria-label": "Code of the request" }, text), button);
}

/** @typedef {{url: string, type: string, file: string, text: string|null, key: boolean}} Request */

/** @param {string} text @returns {string} in single quotes, as a shell reads them */
const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** @param {Request} request @returns {string} */
function curl({ url, type, file, text, key }) {
  const body = text === null ? `--data-binary ${quote(`@${file}`)}` : `-d ${quote(text)}`;
  return ["curl -s", type && `-H ${quote(`Content-Type: ${type}`)}`, key && '-H "Authorization: Bearer $KEY"', body, quote(url)].filter(Boolean).join(" \\\n  ");
}

/** @param {Request} request @returns {string} */
function python({ url, type, file, text, key }) {
  const headers = [type && `"Content-Type": ${JSON.stringify(type)}`, key && '"Authorization": "Bearer " + os.environ["KEY"]'].filter(Boolean);
  const body = text === null ? `with open(${JSON.stringify(file)}, "rb") as file:\n    body = file.read()` : `body = ${JSON.stringify(text)}.encode()`;
  return `import json\n${key ? "import os\n" : ""}from urllib.request import Request, urlopen\n\n${body}\nrequest = Request(\n    ${JSON.stringify(url)},\n    body,\n    {${headers.join(", ")}},\n)\nwith urlopen(request) as response:\n    print(json.load(response))\n`;
}

/** @param {Request} request @returns {string} */
function javascript({ url, type, file, text, key }) {
  const headers = [type && `"Content-Type": ${JSON.stringify(type)}`, key && "Authorization: `Bearer ${key}`"].filter(Boolean);
  const body = text === null ? `input.files[0]` : JSON.stringify(text);
  return `${text === null ? `// input: an <input type="file"> with ${file}\n` : ""}const response = await fetch(${JSON.stringify(url)}, {\n  method: "POST",\n  headers: { ${headers.join(", ")} },\n  body: ${body},\n});\nconsole.log(await response.json());\n`;
}
