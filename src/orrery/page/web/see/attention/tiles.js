// One head of a long text: an overview of all of it, and a tile of its weights at the place that was clicked.
import { fill, h, number } from "#see/dom.js";
import { labelled } from "#see/labelled.js";
import { t } from "#see/words.js";

/** Draw both; `view` is the view of attention. */
export function tiles(view, { row, column, queries, keys, layer, head }, { tile, overview }) {
  const { page, site, parts } = view;
  const [high, wide] = overview.shape;
  const texts = (stream, from, count) => page.pass[stream].slice(from, from + count).map(({ text }) => text);
  const said = h("p.number", { "data-over": "" }, " ");
  const most = (data) => data.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
  const how = (data) => ({ colours: page.comparing ? "signed" : "weight", highest: most(data) });
  const place = (i, n, count) => Math.floor((i * n) / count);
  const small = labelled({ values: overview.data, rows: high, columns: wide, ...how(overview.data), label: t("attention.overview") }, { rows: [], columns: [] }, {
    over: (i, j) => ((said.textContent = i === null ? " " : `${place(i, queries, high)}, ${place(j, keys, wide)}: ${number(overview.data[i * wide + j], 3)}`), small.mark(i, j)),
    chosen: (i, j) => page.focus.set({ tile: [place(i, queries, high), place(j, keys, wide)] }),
  }, { cell: 2, widest: 512 });
  const [rows, columns] = tile.shape;
  const told = h("p.number", { "data-tile": "" }, " ");
  const [from, to] = [texts(site.queries, row, rows), texts(site.keys, column, columns)];
  const large = labelled({ values: tile.data, rows, columns, ...how(tile.data), label: t("attention.of", { layer, head }) }, { rows: from, columns: to }, {
    over: (i, j) => {
      large.mark(i, j);
      told.textContent = i === null ? " " : t("attention.over", { from: from[i], to: to[j], value: number(tile.data[i * columns + j], 3) });
      page.focus.set({ overQuery: i === null ? null : row + i, overKey: j === null ? null : column + j });
    },
    chosen: (i, j) => page.focus.set({ query: row + i, key: column + j }),
  }, { cell: 3, widest: 640 });
  const range = (start, count) => `${start}–${start + count - 1}`;
  fill(parts.controls);
  fill(parts.row);
  Object.assign(view, { pattern: null, drawn: null });
  fill(parts.head, h("h3", {}, t("attention.of", { layer, head })), h("p", {}, t("attention.long", { queries: range(row, rows), keys: range(column, columns) })), h("div", { "data-overview": "" }, small.element), said, h("div", { "data-tiles": "" }, large.element), told);
}
