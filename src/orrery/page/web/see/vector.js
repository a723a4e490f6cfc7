// A vector as cells with their numbers: eight of its places, or all of them.
import { fill, h, number } from "#see/dom.js";
import { explained } from "#see/explain.js";
import { palette, place, scheme } from "#see/palette.js";
import { t } from "#see/words.js";

const SAMPLED = 8;
/** More cells than this are never drawn. */
const MOST = 1024;

/** Places of a vector, evenly spread: at most `count` of `size`. */
export function sampled(size, count = SAMPLED) {
  if (size <= count) return [...Array(size).keys()];
  return Array.from({ length: count }, (_, i) => Math.round((i * (size - 1)) / (count - 1)));
}

/** The colour behind a number, and one in which text can be read on it. */
export function shade(value, highest) {
  const table = palette("signed", scheme());
  const from = 3 * place(value, -highest, highest);
  const [red, green, blue] = table.subarray(from, from + 3);
  return { background: `rgb(${red} ${green} ${blue})`, color: readable(red, green, blue) };
}

/** Black or white, whichever can be read on a colour: of both that with the greater contrast has 4.58 or more. */
export function readable(red, green, blue) {
  const luminance = 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  return luminance > 0.179 ? "#000" : "#fff";
}

/** How bright a part of a colour is, as WCAG has it. */
function linear(part) {
  return part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4;
}

/**
 * @param {ArrayLike<number>} values
 * @param {object} about
 * @param {string} about.label
 * @param {(place: number) => [string, number[]]|null} [about.key] the tensor and the index of a number, where it can be explained
 * @param {(place: number) => void} [about.chosen] told of a click on a place
 * @param {number|null} [about.now] the chosen place
 */
export function vector(values, { label, key, chosen, now = null }) {
  const element = h("div.vector");
  let whole = false;
  const draw = () => {
    const highest = Math.max(1e-9, ...Array.from(values, Math.abs).filter(Number.isFinite));
    const places = whole ? sampled(values.length, MOST) : sampled(values.length);
    if (now !== null && now < values.length && !places.includes(now)) places[places.length - 1] = now;
    const cell = (i) => {
      const from = key?.(i);
      return h(
        "span.cell",
        { style: shade(values[i], highest), "data-place": i, class: `cell${i === now ? " chosen" : ""}` },
        chosen ? h("button.place", { onclick: () => chosen(i), "aria-label": `${label} ${i}`.trim() }, String(i)) : h("small.place", {}, String(i)),
        from ? explained(values[i], ...from, 3) : h("span.number", {}, number(values[i], 3)),
      );
    };
    const more = values.length > SAMPLED && h("button.quiet.fold", { onclick: () => ((whole = !whole), draw()) }, t(whole ? "vector.few" : "vector.all", { count: values.length }));
    fill(element, label && h("span.soft", {}, label), h("div.cells", { role: "group", "aria-label": label || t("vector.cells") }, places.sort((a, b) => a - b).map(cell)), more);
  };
  draw();
  return element;
}
