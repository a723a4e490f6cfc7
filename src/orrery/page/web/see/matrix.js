// One matrix as a heat map, with its histogram.
import { fill, h, number } from "#see/dom.js";
import { csv, download, exports, safetensors, savePng } from "#see/export.js";
import { heatMap } from "#see/heat.js";
import { t } from "#see/words.js";

/**
 * @param {HTMLElement} element
 * @param {{facts: object, tensors: object}} payload of the view `parameters` for one matrix
 * @param {string} title
 * @param {(row: number, column: number) => void} look the reader wants the cells themselves, from here on
 */
export function drawMatrix(element, { facts, tensors: { cells, bins } }, title, look) {
  const [rows, columns] = cells.shape;
  const coarse = facts.step[0] > 1 || facts.step[1] > 1;
  const said = h("p.number", { "data-over": "" }, " ");
  const place = (row, column) => [facts.row + row * facts.step[0], facts.column + column * facts.step[1]];
  const over = (row, column) => {
    said.textContent = row === null ? " " : t(coarse ? "parameters.extreme" : "parameters.cell", { row: place(row, column)[0], column: place(row, column)[1], value: number(map.value(row, column), 5) });
    map.mark(row, column);
  };
  const map = heatMap({ values: cells.data, rows, columns, colours: "signed", highest: facts.most || 1, label: title }, { over, chosen: coarse ? (row, column) => look(...place(row, column)) : undefined });
  const side = Math.min(30, Math.max(8, Math.max(rows, columns) * 0.7));
  map.element.style.width = `min(${rows > columns ? (side * columns) / rows : side}rem, 86vw)`;
  map.element.style.aspectRatio = `${columns} / ${rows}`;
  map.element.style.minHeight = rows === 1 ? "1.5rem" : null;
  const name = `${facts.matrix}`;
  const ways = {
    png: () => savePng(`${name}.png`, map.canvas, 4),
    csv: () => download(`${name}.csv`, csv(Array.from({ length: rows }, (_, row) => [...cells.data.subarray(row * columns, (row + 1) * columns)])), "text/csv"),
    safetensors: () => download(`${name}.safetensors`, safetensors({ [name]: cells }), "application/octet-stream"),
  };
  const told = ["mean", "deviation", "norm"].map((one) => `${t(`parameters.${one}`)} ${number(facts[one], 4)}`).join(", ");
  fill(element, h("h3", {}, title), h("p.soft", {}, `${facts.shape.join(" × ")}; ${told}`, facts.broken > 0 && `; ${t("parameters.broken", { n: facts.broken })}`), coarse && h("p.soft", {}, t("parameters.coarse", { rows: facts.step[0], columns: facts.step[1] })), map.element, said, histogram(bins.data, facts.most), exports(ways));
  return map;
}

/** The bars of a histogram between minus the greatest size and the greatest size. */
export function histogram(bars, most) {
  const highest = Math.max(...bars) || 1;
  const [width, height] = [360, 90];
  const wide = width / bars.length;
  const label = t("parameters.histogram", { most: number(most, 3) });
  const ends = [["−" + number(most, 3), 0, "start"], ["0", width / 2, "middle"], [number(most, 3), width, "end"]];
  return h(
    "svg.chart.histogram",
    { viewBox: `0 0 ${width} ${height + 18}`, role: "img", "aria-label": label, style: { "max-width": `${width}px` } },
    h("title", {}, label),
    [...bars].map((count, i) => h("rect", { x: i * wide, y: height * (1 - count / highest), width: Math.max(0.5, wide - 1), height: (height * count) / highest, "data-count": count })),
    ends.map(([text, x, anchor]) => h("text.axis", { x, y: height + 14, "text-anchor": anchor }, text)),
  );
}
