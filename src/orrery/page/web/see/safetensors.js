// Reads a safetensors file: eight bytes with the length of a JSON header, the header, the numbers.

/**
 * @param {ArrayBuffer} buffer
 * @returns {{facts: any, checks: Array, tensors: Object<string, {shape: number[], data: any}>}}
 */
export function decode(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const { __metadata__: { view = "{}" } = {}, ...entries } = header;
  const tensors = {};
  for (const [name, { dtype, shape, data_offsets: [from, to] }] of Object.entries(entries)) {
    tensors[name] = { shape, data: numbers(dtype, buffer.slice(8 + length + from, 8 + length + to)) };
  }
  return { facts: null, checks: [], ...JSON.parse(view), tensors };
}

function numbers(dtype, bytes) {
  if (dtype === "F16") return halves(new Uint16Array(bytes));
  const Kind = { F64: Float64Array, F32: Float32Array, I64: BigInt64Array, I32: Int32Array, U8: Uint8Array, BOOL: Uint8Array }[dtype];
  if (!Kind) throw new Error(`no reader for numbers of kind ${dtype}`);
  return new Kind(bytes);
}

/** Half-precision numbers as float32, by a table of all of them. */
function halves(codes) {
  const table = (halves.table ??= everyHalf());
  const read = new Float32Array(codes.length);
  for (let i = 0; i < codes.length; i++) read[i] = table[codes[i]]; // a loop: `from` would call a function for each
  return read;
}

function everyHalf() {
  const table = new Float32Array(65536);
  for (let code = 0; code < table.length; code++) table[code] = half(code);
  return table;
}

function half(code) {
  const sign = code & 0x8000 ? -1 : 1;
  const exponent = (code >> 10) & 31;
  const fraction = code & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction);
}

/** One index of the first axis of a tensor, without a copy. */
export function at({ shape, data }, index) {
  const rest = shape.slice(1);
  const size = rest.reduce((a, b) => a * b, 1);
  return { shape: rest, data: data.subarray(index * size, (index + 1) * size) };
}
