// A treemap: areas in proportion to numbers, in rectangles as near to squares as can be (Bruls et al. 2000).
import { h } from "#see/dom.js";

/**
 * Cut a rectangle by sizes.
 * @param {number[]} sizes the greatest first, none negative
 * @returns {Array<{x: number, y: number, width: number, height: number}>}
 */
export function squarified(sizes, width, height) {
  const scale = (width * height) / (sizes.reduce((sum, one) => sum + one, 0) || 1);
  const areas = sizes.map((size) => size * scale);
  const found = [];
  let [x, y, wide, high] = [0, 0, width, height];
  for (let from = 0; from < areas.length; ) {
    const side = Math.min(wide, high);
    let to = from + 1;
    while (to < areas.length && worst(areas.slice(from, to + 1), side) <= worst(areas.slice(from, to), side)) to++;
    const row = areas.slice(from, to);
    const thick = row.reduce((sum, one) => sum + one, 0) / side || 0;
    let along = 0;
    for (const area of row) {
      const long = thick ? area / thick : 0;
      found.push(wide >= high ? { x, y: y + along, width: thick, height: long } : { x: x + along, y, width: long, height: thick });
      along += long;
    }
    if (wide >= high) [x, wide] = [x + thick, wide - thick];
    else [y, high] = [y + thick, high - thick];
    from = to;
  }
  return found;
}

function worst(row, side) {
  const sum = row.reduce((all, one) => all + one, 0);
  const least = Math.min(...row);
  return least > 0 ? Math.max((side ** 2 * Math.max(...row)) / sum ** 2, sum ** 2 / (side ** 2 * least)) : Infinity;
}

/**
 * @param {Array<{name: string, size: number, group: string, about: string}>} items the greatest first
 * @param {string} label
 * @param {(item: object) => void} chosen
 * @param {{width?: number, height?: number}} [size] in pixels
 */
export function treemap(items, label, chosen, { width = 960, height = 420 } = {}) {
  const places = squarified(items.map(({ size }) => size), width, height);
  const cells = items.map((item, i) => {
    const { x, y, width: wide, height: high } = places[i];
    const letters = Math.floor((wide - 10) / 7);
    const said = item.name.length <= letters ? item.name : `${item.name.slice(0, Math.max(0, letters - 1))}…`;
    const key = (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), chosen(item));
    return h(
      "g",
      { class: `cell ${item.group}`, role: "button", tabindex: "0", "aria-label": `${item.name}, ${item.about}`, "data-name": item.name, onclick: () => chosen(item), onkeydown: key },
      h("title", {}, `${item.name}\n${item.about}`),
      h("rect", { x: x + 1, y: y + 1, width: Math.max(0.5, wide - 2), height: Math.max(0.5, high - 2), rx: 2 }),
      high > 18 && letters > 2 && h("text", { x: x + 6, y: y + 16 }, said),
      high > 36 && item.about.length * 6.4 < wide - 10 && h("text", { x: x + 6, y: y + 32, class: "cost" }, item.about),
    );
  });
  return h("svg.treemap", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label }, cells);
}
