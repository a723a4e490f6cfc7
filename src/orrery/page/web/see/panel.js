// A heat map over the tokens with its title, the number under the pointer and ways to save it.
import { h, number, visible } from "#see/dom.js";
import { download, exports, safetensors, savePng } from "#see/export.js";
import { labelled } from "#see/labelled.js";

export function panel(page, { name, title, tensor, rows, how }) {
  const { shape, data } = tensor, tokens = page.pass.tokens.map(({ text }) => visible(text));
  const said = h("p.number", {}, " ");
  const over = (row, column) => {
    page.focus.set({ overQuery: column });
    said.textContent = row === null ? " " : `${rows[row]} · ${tokens[column]}: ${number(data[row * shape[1] + column], 4)}`;
    map.mark(row, column);
  };
  const map = labelled({ ...how, values: data, rows: shape[0], columns: shape[1], label: title }, { rows, columns: tokens }, { over, chosen: (_, query) => page.focus.set({ query }) }, { widest: 320 });
  const ways = { png: () => savePng(`${name}.png`, map.canvas), safetensors: () => download(`${name}.safetensors`, safetensors({ [name]: tensor }), "application/octet-stream") };
  return { map, element: h("section", { "data-panel": name }, h("h3", {}, title), h("div.scroll", {}, map.element), said, exports(ways)) };
}

// What a view of several such maps does when something else changes.
export const following = (page, drawn) => ({
  focus(changed) {
    if (changed.has("query")) drawn.forEach(({ map }) => map.mark(null, page.focus.get("query")));
  },
  destroy: () => page.focus.set({ overQuery: null }),
});
