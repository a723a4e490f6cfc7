// Lines over a row of whole numbers: a value for each place, as SVG with its axes.
import { h, number } from "#see/dom.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [560, 220, 56, 30];

/**
 * @param {object} data
 * @param {Array<{values: ArrayLike<number>, colour: string, name: string}>} data.lines
 * @param {number} [data.first] the number of the first place
 * @param {string} data.label what a screen reader says
 * @param {string} data.across what the places are
 * @param {number|null} [data.marked] a place that is marked
 */
export function curves({ lines, first = 0, label, across, marked = null }) {
  const all = lines.flatMap(({ values }) => Array.from(values)).filter(Number.isFinite);
  const [low, high] = [Math.min(0, ...all), Math.max(0, ...all)];
  const span = high - low || 1;
  const count = lines[0].values.length;
  const x = (i) => LEFT + ((WIDTH - LEFT - 8) * i) / Math.max(1, count - 1);
  const y = (value) => 8 + (HEIGHT - BOTTOM - 8) * (1 - (value - low) / span);
  const points = (values) => Array.from(values, (value, i) => `${x(i).toFixed(1)},${y(value).toFixed(1)}`).join(" ");
  const tick = (value) => [h("line", { x1: LEFT, x2: WIDTH - 8, y1: y(value), y2: y(value), stroke: "var(--line)" }), h("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end", class: "axis" }, number(value, 3))];
  const foot = [0, Math.floor((count - 1) / 2), count - 1].map((i) => h("text", { x: x(i), y: HEIGHT - 12, "text-anchor": i ? (i === count - 1 ? "end" : "middle") : "start", class: "axis" }, number(first + i)));
  return h(
    "figure.curves",
    {},
    h(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
      [...new Set([low, 0, high])].map(tick),
      marked !== null && marked >= 0 && marked < count && h("line", { x1: x(marked), x2: x(marked), y1: 8, y2: HEIGHT - BOTTOM, stroke: "var(--look)" }),
      lines.map(({ values, colour, name }) => h("polyline", { points: points(values), fill: "none", stroke: colour, "stroke-width": 1.6 }, h("title", {}, name))),
      foot,
    ),
    h("figcaption.soft", {}, across, lines.length > 1 && h("span.legend", {}, lines.map(({ colour, name }) => h("span", { style: { "--colour": colour } }, name)))),
  );
}
