// One attention of the model: what is made of its input, head by head, with the shapes of a pass; and its mask.
import { h } from "#see/dom.js";
import { arrow, box, label, named, picture, sides, whole } from "#see/architecture/shapes.js";
import { t } from "#see/words.js";

const MOST = 4;

/** Every part with heads, as the figure has them. */
export const withHeads = ({ nodes }) => nodes.filter((node) => node.slot === "branch" && node.settings.heads);

export function attention(facts, part) {
  const { heads, head_width: channels } = part.settings;
  const kv = part.settings.kv_heads ?? heads;
  const path = part.key.replace(/\.added$/, "");
  const shape = (name) => sides(facts.inner[`${path}.${name}`]);
  const length = (name) => facts.inner[`${path}.${name}`]?.[1] ?? "L";
  const [x, top] = [[130, 330, 530], 40];
  const stack = (middle, y, title, below, kind, count) => {
    const drawn = Math.min(MOST, Number(count));
    return Array.from({ length: drawn }, (_, i) => drawn - 1 - i).map((i) => box({ x: middle + 5 * i, y: y - 5 * i, width: 150, height: 44, kind, title: i ? "" : title, below: i ? "" : below }));
  };
  const [project, score, mask, soft, mix, join, out] = [520, 440, 368, 310, 240, 160, 90].map((y) => y + top);
  const width = facts.width ? `${facts.width}` : "D";
  const parts = [
    ["Q", x[0], heads, "q"],
    ["K", x[1], kv, "k"],
    ["V", x[2], kv, "v"],
  ];
  return h(
    "div.side",
    {},
    picture(
      680,
      640 + top,
      t("architecture.attention"),
      parts.map(([, at, , key]) => [label(`${length(key)} × ${width}`, at, project + 84), arrow([[at, project + 70], [at, project + 24]])]),
      parts.map(([name, at, count, key]) => stack(at, project, `W${name}`, shape(key), "attention", count)),
      arrow([[x[0], project - 40], [x[0], score], [x[0] + 45, score]]),
      arrow([[x[1], project - 40], [x[1], score + 22]]),
      stack((x[0] + x[1]) / 2 + 25, score, part.settings.heads && channels ? `Q Kᵀ / √${channels}` : "Q Kᵀ", shape("scores"), "norm", heads),
      arrow([[255, score - 40], [255, mask + 17]]),
      box({ x: 255, y: mask, width: 150, kind: "norm", title: t("architecture.mask", { name: part.settings.mask }) }),
      arrow([[255, mask - 17], [255, soft + 17]]),
      box({ x: 255, y: soft, width: 150, kind: "norm", title: "softmax", below: shape("pattern") }),
      arrow([[255, soft - 17], [255, mix], [300, mix]]),
      arrow([[x[2], project - 40], [x[2], mix], [470, mix]]),
      stack(380, mix, "A V", shape("mixed"), "norm", heads),
      arrow([[380, mix - 40], [380, join + 17]]),
      box({ x: 380, y: join, width: 170, kind: "norm", title: t("architecture.concat"), below: channels ? `${length("q")} × ${heads * channels}` : "" }),
      arrow([[380, join - 17], [380, out + 17]]),
      box({ x: 380, y: out, width: 150, kind: "attention", title: "Wᴼ", below: sides(part.shape) }),
      arrow([[380, out - 17], [380, out - 50]]),
    ),
    h("div", {}, h("h3", {}, named(part)), h("p", {}, t("architecture.heads", { heads, width: channels ?? "?" }), kv !== heads && `; ${t("architecture.groups", { heads, kv })}`, `; ${whole(part.parameters)}`), masks(facts.tree, part.settings.mask)),
  );
}

/** The mask as a grid: a row for each token that looks. */
function masks(tree, name) {
  const found = find(tree, `masks.${name}`);
  const text = JSON.stringify(found ?? {});
  const [causal, span] = [/Causal/.test(text), Number(/size=(\d+)|length=(\d+)|span=(\d+)/.exec(text)?.slice(1).find(Boolean)) || null];
  const [count, cell] = [8, 18];
  const wide = span && span < count ? span : span ? 4 : count;
  const seen = (row, column) => (causal ? column <= row && row - column < wide : Math.abs(row - column) < wide);
  const cells = Array.from({ length: count * count }, (_, i) => [Math.floor(i / count), i % count]);
  return h("figure", {}, h("figcaption.soft", {}, found ? found.what : name), h("svg.diagram", { viewBox: `0 0 ${count * cell} ${count * cell}`, width: count * cell, height: count * cell, role: "img", "aria-label": t("architecture.mask", { name }) }, cells.map(([row, column]) => h("rect", { class: seen(row, column) ? "seen" : "hidden", x: column * cell, y: row * cell, width: cell - 2, height: cell - 2 }))));
}

function find(node, name) {
  return node.name === name ? node : node.children.map((child) => find(child, name)).find(Boolean);
}
