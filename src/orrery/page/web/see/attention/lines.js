// Attention as lines between two columns of tokens, a colour a head (Vaswani et al. 2017, figures 3 to 5).
import { h } from "#see/dom.js";
import { scheme } from "#see/palette.js";

const [LINE, WIDTH] = [20, 220];
/** More edges than this are drawn on a canvas. */
const NODES = 1000;

/** The colour of a head; neighbours differ. */
export function colourOf(head) {
  return `hsl(${Math.round(210 + head * 137.5) % 360} 70% ${scheme() === "dark" ? 65 : 38}%)`;
}

/**
 * @param {object} data
 * @param {Array<{head: number, edges: Array<[number, number, number]>}>} data.heads
 * @param {string[]} data.queries
 * @param {string[]} data.keys
 * @param {string} data.label what a screen reader says
 * @param {{over: Function, chosen: Function}} habits as a heat map's
 */
export function lines({ heads, queries, keys, label }, { over, chosen }) {
  const height = LINE * Math.max(queries.length, keys.length);
  const count = heads.reduce((sum, { edges }) => sum + edges.length, 0);
  const draw = (count > NODES ? canvasOf : svgOf)(heads, height, label);
  const column = (texts, kind, at) =>
    h(`div.ends.${kind}`, {}, texts.map((text, i) => h("button", { "data-end": i, onpointerenter: () => over(...at(i)), onpointerleave: () => over(null, null), onclick: () => chosen(...at(i)) }, text)));
  const left = column(queries, "from", (i) => [i, null]);
  const right = column(keys, "to", (i) => [null, i]);
  const element = h("div.lines", { style: { "--line": `${LINE}px` } }, left, draw.element, right);
  const mark = (query, key) => {
    draw.mark(query, key);
    for (const [side, place] of [[left, query], [right, key]]) for (const end of side.children) end.classList.toggle("marked", Number(end.dataset.end) === place);
  };
  return { element, mark, count };
}

const middle = (i) => LINE * (i + 0.5);

/** Whether an edge is among those looked at: of the query, of the key, or of both. */
function seen([row, column], query, key) {
  return (query === null || query === row) && (key === null || key === column);
}

function svgOf(heads, height, label) {
  const drawn = heads.flatMap(({ head, edges }) =>
    edges.map((edge) => [edge, h("line", { x1: 0, y1: middle(edge[0]), x2: WIDTH, y2: middle(edge[1]), stroke: colourOf(head), "stroke-width": 2, "stroke-opacity": edge[2] })]),
  );
  const element = h("svg", { width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": label }, drawn.map(([, line]) => line));
  const mark = (query, key) => drawn.forEach(([edge, line]) => line.setAttribute("stroke-opacity", seen(edge, query, key) ? edge[2] : edge[2] * 0.1));
  return { element, mark };
}

function canvasOf(heads, height, label) {
  const element = h("canvas", { width: WIDTH, height, role: "img", "aria-label": label });
  const context = element.getContext("2d");
  const mark = (query, key) => {
    context.clearRect(0, 0, WIDTH, height);
    for (const { head, edges } of heads) {
      context.strokeStyle = colourOf(head);
      for (const edge of edges) {
        context.globalAlpha = seen(edge, query, key) ? edge[2] : edge[2] * 0.1;
        context.beginPath();
        context.moveTo(0, middle(edge[0]));
        context.lineTo(WIDTH, middle(edge[1]));
        context.stroke();
      }
    }
  };
  mark(null, null);
  return { element, mark };
}

/** Buttons that say which heads are drawn, each in its colour. */
export function headChips(count, drawn, toggle, label) {
  return h("div.chips", { role: "group", "aria-label": label }, Array.from({ length: count }, (_, head) => h("button.chip", { "aria-pressed": String(drawn.includes(head)), style: { "--colour": colourOf(head) }, onclick: () => toggle(head) }, String(head))));
}
