// The memory of decoding by formula: what each layer keeps of T tokens.
import { marked } from "#see/dom.js";

/**
 * A layer as another design has it.
 * @param {object} layer `{cached, window, heads, kv_heads, head_width, latent}`
 * @param {{kv_heads?: number|null, window?: number|null, latent?: number|null}} change null leaves it as it is; 0 takes away
 */
export function changed(layer, { kv_heads = null, window = null, latent = null }) {
  const width = layer.head_width;
  let { cached } = layer;
  if (latent) cached = latent;
  else if (kv_heads && width) cached = 2 * kv_heads * width;
  return { ...layer, cached, window: window === null ? layer.window : window || null };
}

/** `size sum_layers cached min(T, window)`, in bytes. */
export function bytes(layers, size, tokens) {
  return layers.reduce((sum, { cached, window }) => sum + size * cached * Math.min(tokens, window ?? tokens), 0);
}

/** Bytes as people read them. */
export function readable(count) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let left = count;
  while (Math.abs(left) >= 1024 && unit < units.length - 1) [left, unit] = [left / 1024, unit + 1];
  return `${marked(left.toFixed(!unit || left >= 100 ? 0 : left < 10 ? 2 : 1))} ${units[unit]}`;
}
