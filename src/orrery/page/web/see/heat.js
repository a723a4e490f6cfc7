// A heat map on a canvas: one pixel a cell, enlarged by the browser, so that each colour is that of its number.
import { h } from "#see/dom.js";
import { palette, place, scheme } from "#see/palette.js";

/**
 * @param {object} data
 * @param {ArrayLike<number>} data.values row by row
 * @param {number} data.rows
 * @param {number} data.columns
 * @param {string} [data.colours] weight, grey or signed
 * @param {number} [data.lowest] the number of the first colour; 0, or minus `highest` where numbers have signs
 * @param {number} [data.highest] the number of the last colour; the greatest size by default
 * @param {(row: number, column: number) => boolean} [data.empty] cells that hold nothing
 * @param {string} data.label what a screen reader says
 */
export function paint(canvas, data) {
  const { values, rows, columns, colours = "weight", empty } = data;
  const highest = data.highest ?? greatest(values);
  const lowest = data.lowest ?? (colours === "signed" ? -highest : 0);
  const table = palette(colours, scheme());
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  for (let cell = 0; cell < rows * columns; cell++) {
    if (Number.isNaN(values[cell]) || empty?.(Math.floor(cell / columns), cell % columns)) continue;
    const from = 3 * place(values[cell], lowest, highest);
    image.data.set([table[from], table[from + 1], table[from + 2], 255], 4 * cell);
  }
  context.putImageData(image, 0, 0);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", data.label ?? "");
  canvas.dataset.lowest = lowest;
  canvas.dataset.highest = highest;
  canvas.dataset.colours = colours;
  canvas.repaint = () => paint(canvas, data); // where the page turns dark or light
  return { lowest, highest };
}

function greatest(values) {
  let most = 0;
  for (let i = 0; i < values.length; i++) if (Math.abs(values[i]) > most && Number.isFinite(values[i])) most = Math.abs(values[i]);
  return most || 1;
}

/**
 * A heat map with marks over it that follow the pointer.
 * @param {object} data as `paint` takes it
 * @param {{over?: (row: number|null, column: number|null) => void, chosen?: (row: number, column: number) => void, twice?: (row: number, column: number) => void, width?: number}} [habits]
 */
export function heatMap(data, habits = {}) {
  const canvas = h("canvas", { tabindex: habits.chosen ? "0" : null });
  const row = h("div.mark.row", { hidden: true });
  const column = h("div.mark.column", { hidden: true });
  const box = h("div.heat", { style: { "--columns": data.columns, "--rows": data.rows } }, canvas, row, column);
  let now = data;
  paint(canvas, now);
  const cell = (event) => {
    const { left, top, width, height } = canvas.getBoundingClientRect();
    const at = [Math.floor(((event.clientY - top) / height) * now.rows), Math.floor(((event.clientX - left) / width) * now.columns)];
    return at[0] >= 0 && at[0] < now.rows && at[1] >= 0 && at[1] < now.columns ? at : null;
  };
  canvas.addEventListener("pointermove", (event) => habits.over?.(...(cell(event) ?? [null, null])));
  canvas.addEventListener("pointerleave", () => habits.over?.(null, null));
  canvas.addEventListener("dblclick", (event) => cell(event) && habits.twice?.(...cell(event)));
  canvas.addEventListener("click", (event) => cell(event) && habits.chosen?.(...cell(event)));
  return {
    element: box,
    canvas,
    /** Draw other numbers, or the same in other colours. */
    update(changes = {}) {
      now = { ...now, ...changes };
      box.style.setProperty("--columns", now.columns);
      box.style.setProperty("--rows", now.rows);
      return paint(canvas, now);
    },
    /** Mark a row and a column; null marks nothing. */
    mark(at, across) {
      move(row, at, now.rows, "--at");
      move(column, across, now.columns, "--at");
    },
    value: (at, across) => now.values[at * now.columns + across],
  };
}

function move(mark, index, count, name) {
  mark.hidden = index === null || index === undefined || index < 0 || index >= count;
  mark.style.setProperty(name, index ?? 0);
}
