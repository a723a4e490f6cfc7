// What is drawn of an attention: weights or weights times lengths, of one head or of all, as shares of a row.
import { at } from "#see/safetensors.js";

/**
 * The shares of each row, one below the other.
 * @param {{shape: number[], data: Float32Array}} pattern [heads, rows, columns]
 * @param {{shape: number[], data: Float32Array}} lengths of the values, [heads, columns]
 * @param {{head: number|null, valued?: boolean, withoutFirst?: boolean}} asked `head` null is the mean of all heads
 * @returns {{values: Float32Array, rows: number, columns: number}} a row that has nothing to show is NaN
 */
export function shares(pattern, lengths, { head, valued = false, withoutFirst = false }) {
  const [heads, rows, columns] = pattern.shape;
  const of = (one) => (valued ? weighted(at(pattern, one).data, at(lengths, one).data, columns) : at(pattern, one).data);
  let values = head === null ? mean(Array.from({ length: heads }, (_, one) => of(one))) : of(head);
  if (valued || withoutFirst) values = normalised(values, columns, withoutFirst ? 1 : 0);
  return { values, rows, columns };
}

function weighted(weights, lengths, columns) {
  return weights.map((weight, cell) => weight * lengths[cell % columns]);
}

function mean(parts) {
  const sum = new Float32Array(parts[0].length);
  for (const part of parts) for (let cell = 0; cell < sum.length; cell++) sum[cell] += part[cell] / parts.length;
  return sum;
}

/** Each row over its sum from a column on; what stands before it is no number. */
function normalised(values, columns, from) {
  const shares = new Float32Array(values.length).fill(NaN);
  for (let start = 0; start < values.length; start += columns) {
    let sum = 0;
    for (let j = from; j < columns; j++) sum += values[start + j];
    if (sum > 0) for (let j = from; j < columns; j++) shares[start + j] = values[start + j] / sum;
  }
  return shares;
}

/**
 * The heaviest edges of every row that together reach a mass, heaviest first.
 * @param {{values: ArrayLike<number>, rows: number, columns: number}} share
 * @param {number} mass of each row, 0 to 1
 * @param {number} most edges in all
 * @returns {Array<[number, number, number]>} row, column, share
 */
export function edges({ values, rows, columns }, mass, most) {
  const best = [];
  for (let row = 0; row < rows; row++) {
    const cells = Array.from({ length: columns }, (_, column) => [row, column, values[row * columns + column]]).filter(([, , value]) => value > 0);
    cells.sort((a, b) => b[2] - a[2]);
    let sum = 0;
    for (const cell of cells) {
      if (sum >= mass - 1e-6) break;
      best.push(cell);
      sum += cell[2];
    }
  }
  return best.sort((a, b) => b[2] - a[2]).slice(0, most);
}
