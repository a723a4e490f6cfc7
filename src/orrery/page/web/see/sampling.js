// The distribution that a token is drawn from: temperature, top-k, top-p, in the order of the server's sampler.

/** The places of numbers, the greatest first; of equal ones the lower place. */
export function descending(values) {
  return Uint32Array.from(values.keys()).sort((a, b) => values[b] - values[a] || a - b);
}

/** `softmax(values)` of those that are kept, in the order of `order`; the others get 0. */
function softmax(values, order, kept) {
  const shares = new Float64Array(values.length);
  let sum = 0;
  for (let i = 0; i < kept; i++) sum += shares[order[i]] = Math.exp(values[order[i]] - values[order[0]]);
  for (let i = 0; i < kept; i++) shares[order[i]] /= sum;
  return shares;
}

/**
 * @param {ArrayLike<number>} logits
 * @param {{temperature: number, top_k?: number|null, top_p?: number|null}} settings temperature 0 takes the first
 * @param {Uint32Array} [order] of the logits
 * @returns {Float64Array} probabilities; 0 for tokens that are not possible
 */
export function drawn(logits, { temperature, top_k = null, top_p = null }, order = descending(logits)) {
  if (temperature === 0) return softmax(logits, order, 1);
  const scaled = Float64Array.from(logits, (one) => one / temperature);
  let kept = order.length;
  while (kept > 1 && !(scaled[order[kept - 1]] > -Infinity)) kept--;
  // Those equal to the last that stays, stay too.
  if (top_k !== null) for (kept = Math.min(kept, top_k); kept < order.length && scaled[order[kept]] === scaled[order[kept - 1]]; ) kept++;
  if (top_p === null || top_p === 1) return softmax(scaled, order, kept);
  const mass = softmax(scaled, order, kept);
  let stays = 0;
  for (let sum = 0; stays < kept && (stays === 0 || sum < top_p); stays++) sum += mass[order[stays]];
  return softmax(scaled, order, stays);
}

/** `-sum p log p`, in nats. */
export function entropy(probabilities) {
  return probabilities.reduce((sum, p) => (p > 0 ? sum - p * Math.log(p) : sum), 0);
}
