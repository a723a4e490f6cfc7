// How many numbers a model has, by what is counted: the same rules as planning/matrices.py.

/**
 * @typedef {object} Matrix
 * @property {string} kind
 * @property {"weight"|"vector"|"position"|"unembedding"} sort
 * @property {number|null} layer
 * @property {number[]} shape
 * @property {number} numel
 * @property {number} heads
 * @property {number} axis
 * @property {number} copies
 * @property {boolean} tied
 */

export const FILE = { tied: true, vectors: true, positions: true, output_per_head: false };
export const LECTURE = { tied: false, vectors: false, positions: false, output_per_head: false };

/** Whether a convention counts a tensor. */
export function counts(one, convention) {
  if (one.tied && (convention.tied || one.sort !== "unembedding")) return false;
  return one.sort === "vector" ? convention.vectors : one.sort === "position" ? convention.positions : true;
}

/** Into how many matrices a convention cuts a tensor; a vector is none. */
export function pieces(one, convention) {
  if (one.sort === "vector") return 0;
  return one.copies * (one.axis === 0 || convention.output_per_head ? one.heads : 1);
}

/** @returns {{numbers: number, matrices: number}} */
export function total(rows, convention) {
  const kept = rows.filter((one) => counts(one, convention));
  return { numbers: kept.reduce((sum, one) => sum + one.numel * one.copies, 0), matrices: kept.reduce((sum, one) => sum + pieces(one, convention), 0) };
}
