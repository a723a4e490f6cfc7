// Lines over a horizontal axis, as SVG with texts that can be selected.
import { h, number, whole } from "#see/dom.js";

export const LINES = ["var(--accent)", "var(--look)", "var(--good)", "var(--soft)", "var(--bad)", "var(--ink)"];
const DASHES = [null, "6 3", "2 3", "9 3 2 3", "1 4", "12 4"];

/** How wide a chart is drawn, in pixels: its texts are as large on a phone as on a desk. */
export const room = () => Math.min(560, document.documentElement.clientWidth - 48);

/** About `count` round numbers between two ends; `binary` ones are round in bytes. */
export function ticks(low, high, count = 5, binary = false) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = binary ? 2 ** Math.ceil(Math.log2(rough)) : [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough * 0.999);
  const found = [];
  for (let now = Math.ceil(low / step) * step; now <= high + step * 1e-6; now += step) found.push(Math.abs(now) < step * 1e-6 ? 0 : now);
  return found;
}

/**
 * @param {object} data
 * @param {Array<{name: string, points: Array<[number, number]>}>} data.series
 * @param {string} data.label
 * @param {(value: number) => string} [data.show] how a number of the vertical axis reads
 * @param {string} [data.x] the name of the horizontal axis
 * @param {boolean} [data.log] whether the vertical axis is logarithmic
 * @param {boolean} [data.binary] whether it counts bytes
 * @param {{width?: number, height?: number, at?: number|null, zero?: boolean}} [look] `at` is marked
 */
export function chart({ series, label, show = (value) => number(value, 3), x = "", log = false, binary = false }, { width = room(), height = 240, at = null, zero = false } = {}) {
  const scale = log ? Math.log10 : (value) => value;
  const kept = series.map(({ name, points }) => ({ name, points: points.filter(([, value]) => Number.isFinite(value) && (!log || value > 0)) }));
  const all = kept.flatMap(({ points }) => points);
  if (!all.length) return h("p.soft", {}, "–");
  const [left, right, top, bottom] = [64, 12, 10, 34];
  const ends = (values) => values.reduce(([low, high], one) => [Math.min(low, one), Math.max(high, one)], [Infinity, -Infinity]);
  const [x0, x1] = ends(all.map(([place]) => place));
  let [y0, y1] = ends(all.map(([, value]) => scale(value)));
  if (zero && !log) y0 = Math.min(0, y0);
  if (y1 === y0) [y0, y1] = [y0 - (Math.abs(y0) || 1) / 2, y1 + (Math.abs(y1) || 1) / 2];
  const px = (place) => left + ((place - x0) / (x1 - x0 || 1)) * (width - left - right);
  const py = (value) => top + ((y1 - scale(value)) / (y1 - y0)) * (height - top - bottom);
  const rows = log ? ticks(y0, y1, 4).map((power) => 10 ** power) : ticks(y0, y1, 4, binary);
  const text = (words, attributes) => h("text.axis", attributes, words);
  return h(
    "svg.chart",
    { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, style: { width: `${width}px` } },
    h("title", {}, label),
    rows.map((value) => [h("line", { class: "rule", x1: left, x2: width - right, y1: py(value), y2: py(value) }), text(show(value), { x: left - 6, y: py(value) + 4, "text-anchor": "end" })]),
    ticks(x0, x1, width < 400 ? 3 : 5).map((place) => text(whole(place), { x: px(place), y: height - bottom + 16, "text-anchor": "middle" })),
    text(x, { x: width - right, y: height - 2, "text-anchor": "end" }),
    at !== null && h("line", { class: "rule now", x1: px(at), x2: px(at), y1: top, y2: height - bottom }),
    kept.map(({ name, points }, i) => points.length > 0 && h("path", { class: "curve", "data-series": name, style: { stroke: LINES[i % LINES.length] }, "stroke-dasharray": DASHES[i % DASHES.length], d: `M${points.map(([place, value]) => `${px(place).toFixed(1)} ${py(value).toFixed(1)}`).join("L")}${points.length === 1 ? "h1" : ""}` })),
  );
}

/** The names of the lines, each with its colour and its dashes. */
export function legend(names) {
  return h("p.legend", {}, names.map((name, i) => h("span", {}, h("svg", { width: 26, height: 8, "aria-hidden": "true" }, h("path", { class: "curve", style: { stroke: LINES[i % LINES.length] }, "stroke-dasharray": DASHES[i % DASHES.length], d: "M0 4h26" })), " ", name)));
}
