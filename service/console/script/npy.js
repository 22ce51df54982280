/**
 * Reads and writes `.npy`, numpy's format of an array.
 * @module
 */

/**
 * @typedef {Float32Array|Float64Array|Int32Array|Int16Array|Int8Array|Uint8Array|Uint16Array|Uint32Array} Numbers
 * @typedef {{shape: number[], dtype: string, data: Numbers}} Tensor `dtype` as numpy writes it, such as `<f4`
 */

/** How a dtype of numpy is read; what browsers have no array for is converted. @type {Record<string, (buffer: ArrayBuffer) => Numbers>} */
const READERS = {
  f4: (buffer) => new Float32Array(buffer),
  f8: (buffer) => new Float64Array(buffer),
  f2: (buffer) => Float32Array.from(new Uint16Array(buffer), half),
  i8: (buffer) => Float64Array.from(new BigInt64Array(buffer), Number),
  u8: (buffer) => Float64Array.from(new BigUint64Array(buffer), Number),
  i4: (buffer) => new Int32Array(buffer),
  u4: (buffer) => new Uint32Array(buffer),
  i2: (buffer) => new Int16Array(buffer),
  u2: (buffer) => new Uint16Array(buffer),
  i1: (buffer) => new Int8Array(buffer),
  u1: (buffer) => new Uint8Array(buffer),
  b1: (buffer) => new Uint8Array(buffer),
};

/** numpy's name of each of PNNX's dtypes that can be written. @type {Record<string, string>} */
export const DTYPES = {
  f32: "<f4", f64: "<f8", i64: "<i8", i32: "<i4", i16: "<i2", i8: "|i1", u8: "|u1", bool: "|b1",
};

/** @param {string} dtype as numpy writes it @returns {string} PNNX's name of it, where it has one */
export const dtypeName = (dtype) => Object.entries(DTYPES).find(([, own]) => own === dtype)?.[0] ?? dtype;

/**
 * Read an array.
 * @param {Uint8Array} bytes the whole file
 * @returns {Tensor} in C order
 * @throws {Error} it is no npy file, or of a kind that is not read here
 */
export function readNpy(bytes) {
  const head = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 12 || String.fromCharCode(...bytes.subarray(1, 6)) !== "NUMPY") throw new Error("This is no npy file.");
  const long = bytes[6] !== 1;
  const start = long ? 12 : 10;
  const length = long ? head.getUint32(8, true) : head.getUint16(8, true);
  const header = new TextDecoder("latin1").decode(bytes.subarray(start, start + length));
  const dtype = /'descr':\s*'([^']+)'/.exec(header)?.[1] ?? "";
  const shape = (/'shape':\s*\(([^)]*)\)/.exec(header)?.[1] ?? "").split(",").filter((size) => size.trim()).map(Number);
  const reader = READERS[dtype.slice(1)];
  if (!reader || dtype.startsWith(">")) throw new Error(`Arrays of ${dtype || "an unknown dtype"} cannot be shown here.`);
  const data = reader(bytes.slice(start + length).buffer);
  return { shape, dtype, data: /'fortran_order':\s*True/.test(header) ? fromColumns(data, shape) : data };
}

/**
 * @param {number} bits of a half-precision number
 * @returns {number}
 */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/**
 * @param {Numbers} data by columns
 * @param {number[]} shape
 * @returns {Numbers} by rows
 */
function fromColumns(data, shape) {
  const result = data.slice();
  const index = shape.map(() => 0);
  const steps = shape.map((_, axis) => shape.slice(0, axis).reduce((a, b) => a * b, 1));
  for (let target = 0; target < data.length; target += 1) {
    result[target] = /** @type {number} */ (data[index.reduce((sum, at, axis) => sum + at * (steps[axis] ?? 0), 0)]);
    for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
      index[axis] = (index[axis] ?? 0) + 1;
      if ((index[axis] ?? 0) < (shape[axis] ?? 0)) break;
      index[axis] = 0;
    }
  }
  return result;
}

/**
 * Write an array.
 * @param {number[]} shape of the array
 * @param {string} dtype as numpy writes it, one of `DTYPES`
 * @param {ArrayLike<number>} values in C order
 * @returns {Uint8Array<ArrayBuffer>} the file
 */
export function writeNpy(shape, dtype, values) {
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const text = `{'descr': '${dtype}', 'fortran_order': False, 'shape': (${sizes}), }`;
  const header = `${text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11)}\n`;
  const body = new Uint8Array(elements(dtype, values).buffer);
  const file = new Uint8Array(10 + header.length + body.length);
  file.set([0x93, 78, 85, 77, 80, 89, 1, 0, header.length & 255, header.length >> 8]);
  file.set(new TextEncoder().encode(header), 10);
  file.set(body, 10 + header.length);
  return file;
}

/**
 * @param {string} dtype
 * @param {ArrayLike<number>} values
 */
function elements(dtype, values) {
  switch (dtype.slice(1)) {
    case "f4": return Float32Array.from(values);
    case "f8": return Float64Array.from(values);
    case "i8": return BigInt64Array.from(values, (value) => BigInt(Math.round(value)));
    case "i4": return Int32Array.from(values);
    case "i2": return Int16Array.from(values);
    case "i1": return Int8Array.from(values);
    default: return Uint8Array.from(values);
  }
}
