// A decoding tree as SVG: from left to right the steps; shape, line and colour say what became of a token.
import { fill, h, number, visible } from "#see/dom.js";

const ROW = 36;
const LETTER = 7.4;
const SMALL = 6.2;
const LONGEST = 16;

/** What follows each node, by its number; -1 is the root. */
export function children(nodes) {
  const found = new Map([[-1, []]]);
  nodes.forEach(({ parent }, i) => (found.set(i, []), found.get(parent).push(i)));
  return found;
}

/** The numbers of the nodes from the first step to this one. */
export function way(nodes, node) {
  const found = [];
  for (let now = node; now >= 0; now = nodes[now].parent) found.unshift(now);
  return found;
}

/** The number of the node that a path of tokens leads to; -1 for the root, null where there is none. */
export function find(nodes, path) {
  let now = -1;
  for (const token of path) {
    now = nodes.findIndex((node) => node.parent === now && node.token === token);
    if (now < 0) return null;
  }
  return now;
}

const label = (text) => ([...visible(text)].length > LONGEST ? [...visible(text)].slice(0, LONGEST - 1).join("") + "…" : visible(text));

/** How wide the words beside a node are, in pixels. */
const reach = ({ text, cost, total }) => Math.max(LETTER * [...label(text)].length, SMALL * costs(cost, total).length);
const costs = (cost, total) => `${number(cost, 3)}  Σ ${number(total, 4)}`;

/**
 * Where each node stands.
 * @param {Array} nodes `{parent, step, text, fate}`
 * @param {(node: object) => boolean} shown
 * @returns {{places: Map<number, {x: number, y: number}>, width: number, height: number}}
 */
export function layout(nodes, shown) {
  const below = children(nodes);
  const wide = [];
  for (const node of nodes.filter(shown)) wide[node.step] = Math.max(wide[node.step] ?? 0, reach(node));
  const columns = [64];
  for (const pixels of wide) columns.push(columns.at(-1) + 70 + pixels);
  const places = new Map();
  let row = 0;
  const put = (node) => {
    const following = below.get(node).filter((child) => shown(nodes[child]));
    const heights = following.map(put);
    const y = heights.length ? (heights[0] + heights.at(-1)) / 2 : ROW * (row++ + 0.6);
    places.set(node, { x: node < 0 ? 14 : columns[nodes[node].step], y });
    return y;
  };
  put(-1);
  return { places, width: columns.at(-1) + 10, height: ROW * (row + 0.3) };
}

const MARKS = {
  kept: () => h("circle", { r: 5 }),
  pruned: () => h("path", { d: "M-4-4L4 4M4-4L-4 4" }),
  ended: () => h("rect", { x: -5, y: -5, width: 10, height: 10 }),
};

/**
 * @param {Element} element
 * @param {Array} nodes
 * @param {{label: string, shown: (node: object) => boolean, chosen: (node: number) => void, over: (node: number|null) => void, names: Object<string, string>}} habits
 */
export function drawTree(element, nodes, { label: title, shown, chosen, over, names }) {
  const { places, width, height } = layout(nodes, shown);
  const marks = new Map();
  const edges = new Map();
  for (const [node, { x, y }] of places) {
    const { parent, text = "", cost, total, fate = "kept" } = nodes[node] ?? {};
    const from = places.get(parent);
    if (from) {
      const begin = from.x + 10 + (parent < 0 ? 0 : reach(nodes[parent]));
      edges.set(node, h("path", { class: `edge ${fate}`, d: `M${begin} ${from.y}C${(begin + x) / 2} ${from.y} ${(begin + x) / 2} ${y} ${x - 8} ${y}` }));
    }
    marks.set(
      node,
      h(
        "g",
        { class: `node ${fate}`, transform: `translate(${x} ${y})`, role: "button", tabindex: node < 0 ? "0" : "-1", "data-node": node, "aria-label": node < 0 ? title : `${visible(text)}, ${names[fate]}, ${number(cost, 3)}, Σ ${number(total, 4)}`, onclick: () => chosen(node), onpointerenter: () => over(node), onpointerleave: () => over(null), onfocus: () => over(node) },
        h("rect.hit", { x: -12, y: -16, width: node < 0 ? 24 : 24 + reach(nodes[node]), height: 32 }),
        MARKS[fate](),
        node >= 0 && [h("text", { x: 11, y: -1, class: "word" }, label(text)), h("text", { x: 11, y: 12, class: "cost" }, costs(cost, total))],
      ),
    );
  }
  const svg = h("svg.tree", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-label": title, role: "group" }, [...edges.values()], [...marks.values()]);
  svg.addEventListener("keydown", (event) => walk(event, nodes, marks, places, chosen));
  fill(element, svg);
  return {
    svg,
    /** Mark the way to one node, and the chosen node. */
    mark(reached, now) {
      const on = new Set(reached === null ? [] : way(nodes, reached));
      for (const [node, edge] of edges) edge.classList.toggle("on", on.has(node));
      for (const [node, mark] of marks) {
        mark.classList.toggle("on", on.has(node));
        mark.setAttribute("aria-pressed", node === now);
      }
    },
  };
}

/** The arrows go to the node before and behind, and to those of the same step. */
function walk(event, nodes, marks, places, chosen) {
  const now = Number(event.target.dataset?.node);
  if (Number.isNaN(now)) return;
  const step = (node) => nodes[node]?.step ?? -1;
  const near = [...places.keys()].filter((node) => step(node) === step(now)).sort((a, b) => places.get(a).y - places.get(b).y);
  const next = {
    ArrowLeft: () => nodes[now]?.parent,
    ArrowRight: () => children(nodes).get(now).find((node) => places.has(node)),
    ArrowUp: () => near[near.indexOf(now) - 1],
    ArrowDown: () => near[near.indexOf(now) + 1],
  }[event.key];
  if (event.key === "Enter" || event.key === " ") chosen(now);
  else if (next) marks.get(next())?.focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}
