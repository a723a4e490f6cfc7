// One row of an attention as bars, a token each, in the order of the text.
import { h, number } from "#see/dom.js";

/**
 * @param {{shares: ArrayLike<number>, keys: string[], label: string, head: string}} data one row, and what it is called
 * @param {{over: (key: number|null) => void, chosen: (key: number) => void}} habits
 */
export function bars({ shares, keys, label, head }, { over, chosen }) {
  const most = Math.max(1e-9, ...Array.from(shares, Math.abs).filter((share) => share > 0));
  const signed = Array.from(shares).some((share) => share < 0);
  const row = (key) => {
    const share = shares[key];
    const width = (100 * Math.abs(share || 0)) / most;
    return h(
      "tr",
      { "data-key": key, onpointerenter: () => over(key), onpointerleave: () => over(null), onclick: () => chosen(key) },
      h("th", { scope: "row" }, keys[key]),
      h("td.bar", {}, h("span", { style: { width: `${width}%`, background: signed && share > 0 ? "var(--look)" : null } })),
      h("td.right", {}, number(share, 3)),
    );
  };
  const rows = keys.map((_, key) => row(key));
  const element = h("table.bars", {}, h("caption", {}, label), h("thead.unseen", {}, h("tr", {}, head.split("|").map((text) => h("th", { scope: "col" }, text)))), h("tbody", {}, rows));
  const mark = (_, key) => rows.forEach((one, i) => one.classList.toggle("marked", i === key));
  return { element, mark };
}
