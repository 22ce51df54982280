/**
 * Reads and writes `.npz`: a zip archive with an array in each entry.
 * @module
 */
import { readNpy } from "./npy.js";

/** @typedef {import("./npy.js").Tensor} Tensor */

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;

/**
 * Read the entries of an archive.
 * @param {ArrayBuffer} buffer the whole file
 * @returns {Promise<Map<string, Uint8Array>>} bytes by name, without `.npy`
 * @throws {Error} it is no archive, or is compressed in a way that is not read here
 */
export async function readNpz(buffer) {
  const view = new DataView(buffer);
  let end = buffer.byteLength - 22;
  while (end >= 0 && view.getUint32(end, true) !== END) end -= 1;
  if (end < 0) throw new Error("This is no npz file.");
  /** @type {Map<string, Uint8Array>} */
  const entries = new Map();
  let at = view.getUint32(end + 16, true);
  for (let number = view.getUint16(end + 10, true); number > 0; number -= 1) {
    if (view.getUint32(at, true) !== CENTRAL) throw new Error("The npz file is damaged.");
    const [nameLength, extra, comment] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true));
    const name = new TextDecoder().decode(new Uint8Array(buffer, at + 46, nameLength));
    entries.set(name.replace(/\.npy$/, ""), await content(buffer, view, at));
    at += 46 + (nameLength ?? 0) + (extra ?? 0) + (comment ?? 0);
  }
  return entries;
}

/**
 * @param {ArrayBuffer} buffer
 * @param {DataView} view
 * @param {number} at offset of the entry in the directory
 * @returns {Promise<Uint8Array>}
 */
async function content(buffer, view, at) {
  const method = view.getUint16(at + 10, true);
  const size = view.getUint32(at + 20, true);
  const local = view.getUint32(at + 42, true);
  const start = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
  const stored = new Uint8Array(buffer, start, size);
  if (method === 0) return stored;
  if (method !== 8) throw new Error("The npz file is compressed in a way that browsers do not know.");
  const stream = new Blob([stored]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * The array of an entry, or its text where it holds no array.
 * @param {Uint8Array} bytes of the entry
 * @returns {Tensor|string}
 */
export function readEntry(bytes) {
  return bytes[0] === 0x93 ? readNpy(bytes) : new TextDecoder().decode(bytes);
}

/**
 * Write an archive, without compression.
 * @param {[string, Uint8Array<ArrayBuffer>][]} files name, without `.npy`, and npy file
 * @returns {Blob}
 */
export function writeNpz(files) {
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const parts = [];
  /** @type {Uint8Array<ArrayBuffer>[]} */
  const directory = [];
  let offset = 0;
  for (const [name, bytes] of files) {
    const path = new TextEncoder().encode(`${name}.npy`);
    const common = [20, 0x0800, 0, 0, 0x21];
    const sizes = [checksum(bytes), bytes.length, bytes.length];
    const local = record(LOCAL, common, sizes, [path.length, 0], [], path);
    parts.push(local, bytes);
    directory.push(record(CENTRAL, [20, ...common], sizes, [path.length, 0, 0, 0, 0], [0, offset], path));
    offset += local.length + bytes.length;
  }
  const length = directory.reduce((sum, entry) => sum + entry.length, 0);
  const last = record(END, [0, 0, files.length, files.length], [length, offset], [0], [], new Uint8Array());
  return new Blob([...parts, ...directory, last], { type: "application/x-npz" });
}

/**
 * A record of a zip archive: a signature, numbers of two and four bytes in turn, and a name.
 * @param {number} signature
 * @param {number[]} shorts
 * @param {number[]} longs
 * @param {number[]} moreShorts
 * @param {number[]} moreLongs
 * @param {Uint8Array} name
 */
function record(signature, shorts, longs, moreShorts, moreLongs, name) {
  const head = 4 + 2 * (shorts.length + moreShorts.length) + 4 * (longs.length + moreLongs.length);
  const bytes = new Uint8Array(head + name.length);
  const view = new DataView(bytes.buffer);
  let at = 4;
  view.setUint32(0, signature, true);
  for (const number of shorts) { view.setUint16(at, number, true); at += 2; }
  for (const number of longs) { view.setUint32(at, number, true); at += 4; }
  for (const number of moreShorts) { view.setUint16(at, number, true); at += 2; }
  for (const number of moreLongs) { view.setUint32(at, number, true); at += 4; }
  bytes.set(name, head);
  return bytes;
}

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit += 1) sum = sum & 1 ? (sum >>> 1) ^ 0xedb88320 : sum >>> 1;
  return sum;
});

/**
 * @param {Uint8Array} bytes
 * @returns {number} the CRC-32 of zip archives
 */
function checksum(bytes) {
  let sum = 0xffffffff;
  for (const byte of bytes) sum = (sum >>> 8) ^ (CRC[(sum ^ byte) & 255] ?? 0);
  return (sum ^ 0xffffffff) >>> 0;
}
