/**
 * Calls to the server that this page came from.
 * @module
 */

/** What the server responded when it refused: its sentence, its code, its status. */
export class ApiError extends Error {
  /**
   * @param {string} message the server's sentence
   * @param {string} code the server's code
   * @param {number} status of HTTP; 0 where no response came
   */
  constructor(message, code, status) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

/**
 * The key lives here and nowhere else: not in storage, not in an address.
 * @type {string|null}
 */
let key = null;

/** @typedef {{method?: string, headers?: Record<string, string>, body?: BodyInit|null, signal?: AbortSignal|null}} Call */

/**
 * Send a request; ask for a key where the server wants one.
 * @param {string} path with its query
 * @param {Call} [call] method, headers and body
 * @returns {Promise<Response>} a response of status 200 to 299
 * @throws {ApiError} the server refused, or cannot be reached
 */
export async function send(path, call = {}) {
  for (let attempt = 0; ; attempt += 1) {
    const used = key;
    const headers = { ...call.headers, ...(used ? { Authorization: `Bearer ${used}` } : {}) };
    let response;
    try {
      response = await fetch(path, { ...call, headers, credentials: "omit", cache: "no-cache" });
    } catch (error) {
      if (call.signal?.aborted) throw error;
      throw new ApiError("The server cannot be reached. Is it still running?", "unreachable", 0);
    }
    if (response.ok) return response;
    const refusal = await explain(response);
    const wantsKey = response.status === 401 || (response.status === 403 && refusal.code.includes("key"));
    if (!wantsKey || attempt > 4) throw refusal;
    const { askForKey } = await import("./key.js");
    // another call may have asked meanwhile
    if (used === key) key = await askForKey(refusal.message, refusal);
  }
}

/**
 * @param {Response} response
 * @returns {Promise<ApiError>}
 */
async function explain(response) {
  const text = await response.text();
  try {
    const body = JSON.parse(text);
    return new ApiError(String(body.error ?? text), String(body.code ?? ""), response.status);
  } catch {
    return new ApiError(text.slice(0, 300) || `The server responded with status ${response.status}.`, "", response.status);
  }
}

/**
 * Send a request and read its JSON.
 * @param {string} path with its query
 * @param {Call} [call] method, headers and body
 * @returns {Promise<any>}
 */
export async function json(path, call) {
  const response = await send(path, call);
  return response.json();
}

/**
 * As `json`, but null where the server has no such thing.
 * @param {string} path with its query
 * @param {Call} [call] method, headers and body
 * @returns {Promise<any>}
 */
export async function jsonOrNull(path, call) {
  try {
    return await json(path, call);
  } catch (error) {
    if (error instanceof ApiError && [404, 405].includes(error.status)) return null;
    throw error;
  }
}

/**
 * Write a query; what is null or empty is left out.
 * @param {Record<string, string|number|boolean|null|undefined>} entries by name
 * @returns {string} with its question mark, or nothing
 */
export function query(entries) {
  const given = Object.entries(entries).filter(([, entry]) => entry !== null && entry !== undefined && entry !== "");
  const text = new URLSearchParams(given.map(([name, entry]) => [name, String(entry)])).toString();
  return text ? `?${text}` : "";
}

/** Whether requests carry a key: code to copy then says where it goes. */
export const hasKey = () => key !== null;
