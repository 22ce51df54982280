/**
 * Adds to each operation of the page a form that tries it. The key, if the server asks for one, is kept in memory only.
 * @module
 */

const LONGEST_TEXT = 200_000;
const FORM_TYPE = "multipart/form-data";

/** @param {string} name @param {Record<string, string>} [attributes] @param {...(Node|string)} children */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const key = /** @type {HTMLInputElement} */ (element("input", { type: "password", autocomplete: "off" }));

/** @returns {Record<string, string>} */
function authorization() {
  return key.value ? { Authorization: `Bearer ${key.value}` } : {};
}

/** @param {any} schema what a parameter may be @returns {string[]} its values, if they are few */
function choices(schema) {
  const schemas = [schema, ...(schema.anyOf ?? [])];
  const listed = schemas.flatMap((one) => one.enum ?? (one.const === undefined ? [] : [one.const]));
  return schemas.some((one) => one.type === "boolean") ? ["true", "false"] : listed.map(String);
}

/** @param {any} parameter of the operation */
function field(parameter) {
  const values = choices(parameter.schema ?? {});
  const attributes = { name: parameter.name, "data-in": parameter.in };
  const input = values.length
    ? element("select", attributes, element("option", { value: "" }), ...values.map((one) => element("option", {}, one)))
    : element("input", { ...attributes, type: "text" });
  if (parameter.required) input.setAttribute("required", "");
  if (parameter.example !== undefined) input.value = parameter.example;
  return element("label", {}, `${parameter.name} `, input);
}

/** The fields of a body: its media type, a file or a text, and what fills in an example. */
class Body {
  /** @param {any} content media type -> what it is */
  constructor(content) {
    this.content = content;
    this.kind = element("select", {}, ...Object.keys(content).map((type) => element("option", {}, type)));
    this.file = element("input", { type: "file" });
    this.text = element("textarea", { rows: "6", spellcheck: "false" });
    this.examples = element("span");
    /** @type {Blob|null} */
    this.example = null;
    this.note = element("span", { role: "status" });
    this.kind.addEventListener("change", () => this.show());
    this.file.addEventListener("change", () => this.take(null, ""));
    this.show();
  }

  /** @returns {Node[]} */
  get elements() {
    const file = element("label", {}, "file ", this.file);
    const text = element("label", {}, "or text ", this.text);
    return [element("label", {}, "body ", this.kind), file, text, element("p", {}, this.examples, " ", this.note)];
  }

  /** Offer the examples of the media type. */
  show() {
    this.take(null, "");
    const known = Object.values(this.content[this.kind.value]?.examples ?? {});
    this.examples.replaceChildren(...known.map((example) => {
      const button = element("button", { type: "button" }, `Example ${example.summary}`);
      button.addEventListener("click", () => this.fill(example));
      return button;
    }));
    if (known[0]?.value !== undefined) this.fill(known[0]);
  }

  /** @param {Blob|null} example @param {string} note */
  take(example, note) {
    this.example = example;
    this.note.textContent = note;
  }

  /** @param {any} example */
  async fill(example) {
    this.file.value = "";
    const model = this.kind.closest("form")?.querySelector("[name=model]");
    if (model && example["x-model"]) model.value = example["x-model"];
    if (example.externalValue) {
      const response = await fetch(example.externalValue, { headers: authorization() });
      this.text.value = "";
      this.take(await response.blob(), response.ok ? "the example's file is the body" : `no example: ${response.status}`);
    } else if (example.value !== undefined) {
      this.take(null, "");
      this.text.value = typeof example.value === "string" ? example.value : JSON.stringify(example.value);
    } else {
      this.take(null, "this example is too large to show; send a file");
    }
  }

  /** @returns {{body: BodyInit, headers: Record<string, string>}} */
  request() {
    const content = this.file.files[0] ?? this.example ?? this.text.value;
    if (this.kind.value !== FORM_TYPE) return { body: content, headers: { "Content-Type": this.kind.value } };
    const form = new FormData();
    form.append("file", content instanceof Blob ? content : new Blob([content]), content.name ?? "file");
    return { body: form, headers: {} };
  }
}

/** @param {string} path @param {HTMLFormElement} form @returns {URL} the address that the fields make */
function address(path, form) {
  const query = new URLSearchParams();
  let filled = path;
  for (const input of form.querySelectorAll("[data-in]")) {
    if (input.dataset.in === "path") filled = filled.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.dataset.in === "query" && input.value !== "") query.append(input.name, input.value);
  }
  const url = new URL(`.${filled}`, document.baseURI);
  url.search = query.toString();
  return url;
}

/** @param {Response} response @returns {Promise<Node>} what it holds */
async function shown(response) {
  const type = response.headers.get("Content-Type") ?? "";
  if (type.startsWith("image/")) {
    return element("img", { alt: "the response", src: URL.createObjectURL(await response.blob()) });
  }
  if (!type.includes("json") && !type.startsWith("text/") && !type.includes("metrics")) {
    const place = URL.createObjectURL(await response.blob());
    return element("a", { href: place, download: "response" }, `download ${type}`);
  }
  const text = await response.text();
  const pretty = type.includes("json") && text.length < LONGEST_TEXT ? JSON.stringify(JSON.parse(text), null, 1) : text;
  return element("pre", { tabindex: "0" }, pretty.slice(0, LONGEST_TEXT));
}

/** Fill in the request whose trace is shown. @param {string|null} id of the last run */
function showTrace(id) {
  for (const input of document.querySelectorAll("[name=request_id]")) input.value = id ?? "";
}

/** @param {string} path @param {string} method @param {any} operation */
function tryForm(path, method, operation) {
  const content = operation.requestBody?.content;
  const body = content && Object.keys(content).length ? new Body(content) : null;
  const output = element("div", { "aria-live": "polite" });
  const form = /** @type {HTMLFormElement} */ (element("form", { class: "try" }, element("h4", {}, "Try it"),
    ...(operation.parameters ?? []).map(field), ...(body?.elements ?? []), element("button", {}, "Send"), output));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    output.replaceChildren("…");
    const began = performance.now();
    try {
      const { body: sent, headers } = body?.request() ?? { body: undefined, headers: {} };
      const response = await fetch(address(path, form), {
        method: method.toUpperCase(), body: sent, headers: { ...headers, ...authorization() },
      });
      const found = await shown(response);
      if (path === "/infer") showTrace(response.headers.get("X-Request-ID"));
      const line = `${response.status} ${response.statusText}, ${Math.round(performance.now() - began)} ms`;
      output.replaceChildren(element("p", {}, element("code", {}, line)), found);
    } catch (error) {
      output.replaceChildren(`There is no response: ${error.message}`);
    }
  });
  return form;
}

/** Add the forms, once the description is there. */
async function start() {
  const response = await fetch("openapi.json", { headers: authorization() });
  if (!response.ok) return false;
  const described = await response.json();
  for (const [path, operations] of Object.entries(described.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      document.getElementById(`${method}${path}`)?.append(tryForm(path, method, operation));
    }
  }
  return true;
}

const box = element("label", { class: "key" }, "API key, where the server asks for one ", key);
document.querySelector("h1")?.after(box);
if (!(await start())) {
  key.addEventListener("change", async () => { if (!document.querySelector("form.try")) await start(); });
}
