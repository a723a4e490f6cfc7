// Sines and cosines as the hands of clocks: each pair of channels turns at its own speed.
import { h, number } from "#see/dom.js";
import { t } from "#see/words.js";

const SHOWN = 16;
const RADIUS = 24;

/** Pairs that are drawn: evenly spread from the fastest to the slowest. */
export function pairs(count, most = SHOWN) {
  return count <= most ? [...Array(count).keys()] : Array.from({ length: most }, (_, i) => Math.round((i * (count - 1)) / (most - 1)));
}

/**
 * @param {ArrayLike<number>} rates radians a place, by pair
 * @param {Array<{place: number, colour: string, name: string}>} hands
 */
export function clocks(rates, hands) {
  return h(
    "div.clocks",
    {},
    pairs(rates.length).map((pair) => {
      const turn = (2 * Math.PI) / rates[pair];
      const drawn = hands.map(({ place, colour, name }) => {
        const angle = place * rates[pair];
        return h("line", { x1: 0, y1: 0, x2: RADIUS * 0.86 * Math.sin(angle), y2: -RADIUS * 0.86 * Math.cos(angle), stroke: colour, "stroke-width": 2.5, "stroke-linecap": "round", "data-angle": angle }, h("title", {}, `${name}: ${number(angle, 4)} rad`));
      });
      const told = t("position.clock", { pair, turn: number(turn, 3) });
      return h("figure", {}, h("svg", { viewBox: "-27 -27 54 54", width: 54, height: 54, role: "img", "aria-label": told }, h("circle", { r: RADIUS, fill: "none", stroke: "var(--line)", "stroke-width": 1.5 }), drawn), h("figcaption.soft", {}, String(pair), h("br"), number(turn, 3)));
    }),
  );
}
