// Two heads side by side, of any blocks: whom a token looks at in each, such as "it" at "animal" or at "tired".
import { h, number } from "#see/dom.js";
import { t } from "#see/words.js";

/** The head that stands beside the chosen one, `{layer, head}`, or null; the address holds it as "5.3". */
export function second(page, { layers, heads }) {
  const match = /^(\d+)\.(\d+)$/.exec(page.focus.get("beside") ?? "");
  const [layer, head] = match ? [Number(match[1]), Number(match[2])] : [];
  return layers.includes(layer) && head < heads ? { layer, head } : null;
}

/** The choice of that head. */
export function chooser(page, { layers, heads }) {
  const now = page.focus.get("beside") ?? "";
  const all = layers.flatMap((layer) => Array.from({ length: heads }, (_, head) => `${layer}.${head}`));
  const select = h("select", { "data-choice": "beside", onchange: () => page.focus.set({ beside: select.value || null }) }, ["", ...all].map((name) => h("option", { value: name, selected: name === now }, name || t("attention.alone"))));
  return h("label", {}, t("attention.beside"), select);
}

/** Whom a token looks at most, a line for each head. */
export function most(heads, query, keys, count = 4) {
  if (query === null) return null;
  const line = ({ name, share: { values, columns } }) => {
    const row = Array.from(values.subarray(query * columns, (query + 1) * columns));
    const order = [...row.keys()].filter((key) => row[key] > 0).sort((a, b) => row[b] - row[a]).slice(0, count);
    return h("li", { "data-head": name }, h("strong", {}, name), ` ${order.map((key) => `${keys[key]} ${number(row[key], 2)}`).join(", ")}`);
  };
  return h("ul.most", {}, heads.map(line));
}
