// The whole model from tokens to head, as papers draw it: two columns where one reads and the other writes.
import { h } from "#see/dom.js";
import { arrow, box, label, named, picture, sides, tint, told, whole } from "#see/architecture/shapes.js";
import { t } from "#see/words.js";

const [STEP, WIDE, COLUMN, FOOT] = [50, 200, 330, 64];

/** How far each part is from its input, along the flow. */
export function ranks({ nodes, edges }) {
  const found = new Map();
  for (const node of nodes) {
    const before = edges.filter((edge) => edge.second === node.id && edge.kind === "flow").map((edge) => found.get(edge.first) ?? 0);
    found.set(node.id, before.length ? Math.max(...before) + 1 : 0);
  }
  return found;
}

/** @param {(part: object) => void} chosen */
export function figure(facts, chosen) {
  const { nodes, edges, groups } = facts;
  const rank = ranks(facts);
  const columns = ["reader", "main"].filter((name) => nodes.some((node) => node.column === name));
  const linked = new Set(edges.flatMap(({ first, second }) => [first, second]));
  const drawn = nodes.filter((node) => linked.has(node.id));
  const beside = nodes.filter((node) => !linked.has(node.id));
  const lanes = Math.max(1, ...drawn.map((node) => node.lane[1]));
  const each = COLUMN + (lanes - 1) * (WIDE - 30);
  const height = STEP * (Math.max(...rank.values()) + 1) + FOOT + 40;
  const width = each * columns.length + 40;
  const at = (node) => {
    const middle = 40 + each * (columns.indexOf(node.column) + 0.5);
    const [lane, count] = node.lane;
    return { x: middle + (lane - (count - 1) / 2) * (WIDE + 6), y: height - FOOT - STEP * rank.get(node.id) };
  };
  const by = new Map(nodes.map((node) => [node.id, node]));
  const half = (node) => ({ input: 8, add: 10 })[node.slot] ?? 17;
  const link = ({ first, second, kind }) => {
    const [from, to] = [by.get(first), by.get(second)];
    const [a, b] = [at(from), at(to)];
    if (kind === "memory") {
      const turn = 40 + each - 12;
      return arrow([[a.x, a.y - half(from)], [a.x, a.y - half(from) - 12], [turn, a.y - half(from) - 12], [turn, b.y], [b.x - WIDE / 2, b.y]], kind);
    }
    if (kind === "skip") {
      const side = at(to).x + ((lanes - 1) * (WIDE + 6)) / 2 + WIDE / 2 + 16;
      const low = (a.y - half(from) + b.y) / 2 > a.y ? a.y : a.y - half(from) - 6;
      return arrow([[a.x, low], [side, low], [side, b.y], [b.x + 10, b.y]], kind);
    }
    return arrow(a.x === b.x ? [[a.x, a.y - half(from)], [b.x, b.y + half(to)]] : [[a.x, a.y - half(from)], [a.x, (a.y + b.y) / 2], [b.x, (a.y + b.y) / 2], [b.x, b.y + half(to)]], kind);
  };
  const part = (node) => {
    const { x, y } = at(node);
    if (node.slot === "input") return label(t(input(node, columns, drawn)), x, y + 16);
    if (node.slot === "add") return h("g", { class: "part add" }, h("title", {}, told(node)), h("circle", { cx: x, cy: y, r: 10 }), label("+", x, y + 5));
    return box({ x, y, width: WIDE, kind: tint(node), title: named(node), below: [node.parameters ? whole(node.parameters) : "", sides(node.shape)].filter(Boolean).join(" · "), about: told(node), chosen: () => chosen(node) });
  };
  const frame = (group, number) => {
    const own = drawn.filter((node) => node.group === number).map(at);
    if (!own.length) return null;
    const [top, bottom] = [Math.min(...own.map(({ y }) => y)) - 25, Math.max(...own.map(({ y }) => y)) + 29];
    const middle = 40 + each * (columns.indexOf(group.column) + 0.5);
    const wide = WIDE + (lanes - 1) * (WIDE + 6) + 50;
    return h("g", { class: "group" }, h("title", {}, t("architecture.copies", { count: group.copies, depth: group.depth })), h("rect", { x: middle - wide / 2, y: top, width: wide, height: bottom - top, rx: 10 }), group.copies > 1 && label(`${group.copies} ×`, middle - wide / 2 - 18, top + 14, { class: "copies" }));
  };
  // What acts inside the attention stands at the foot of its column.
  const notes = beside.filter((node) => node.slot === "position").map((node, i) => label(`${node.role}: ${node.what}`, 40 + each * (columns.indexOf(node.column) + 0.5), height - 4 - 13 * (i % 2), { class: "cost" }));
  const heads = drawn.filter((node) => node.slot === "head" && node.key === "logits").map((node) => label(t("architecture.softmax"), at(node).x, at(node).y - 26));
  return picture(width, height, t("architecture.figure"), groups.map(frame), edges.map(link), drawn.map(part), heads, notes);
}

function input(node, columns, drawn) {
  if (drawn.some((one) => one.column === node.column && /Patch/.test(one.kind))) return "architecture.image";
  return columns.length < 2 ? "architecture.inputs" : node.column === "reader" ? "architecture.source" : "architecture.target";
}
