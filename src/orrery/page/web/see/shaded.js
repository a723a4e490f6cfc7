// Tokens one after another, each behind the colour of its number: blue for, orange against.
import { h, number, visible } from "#see/dom.js";

/** The share of the colour where a number is greatest: text on it can still be read. */
const MOST = 45;

/**
 * @param {Array<{text: string}>} tokens
 * @param {ArrayLike<number>} values one a token
 * @param {number} most the number that has the full colour
 */
export function shaded(tokens, values, most) {
  return tokens.map(({ text }, place) => {
    const share = Math.round((MOST * Math.abs(values[place])) / most);
    const colour = values[place] < 0 ? "var(--look)" : "var(--accent)";
    return h("span.shaded", { title: number(values[place], 3), style: { background: `color-mix(in srgb, ${colour} ${share}%, transparent)` } }, visible(text));
  });
}
