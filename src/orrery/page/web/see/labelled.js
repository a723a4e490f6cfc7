// A heat map with a text at each row and column: all where there is room, else every n-th and the marked one.
import { fill, h, number } from "#see/dom.js";
import { heatMap, paint } from "#see/heat.js";

const LINE = 13;

/**
 * @param {object} data as `heat.js` takes it
 * @param {{rows: string[], columns: string[]}} texts of the axes
 * @param {object} habits as `heat.js` takes them
 * @param {{cell?: number, widest?: number}} [size] pixels of a cell and of the whole map, at most
 */
export function labelled(data, texts, habits, { cell = 36, widest = 576 } = {}) {
  const map = heatMap(data, habits);
  const room = Math.max(120, Math.min(widest, document.documentElement.clientWidth - 130));
  const scale = Math.min(cell, room / Math.max(data.columns, data.rows));
  const [width, height] = [Math.max(40, scale * data.columns), Math.max(40, scale * data.rows)];
  Object.assign(map.element.style, { width: `${width}px`, height: `${height}px` });
  const rows = axis("rows", texts.rows, height);
  const columns = axis("columns", texts.columns, width);
  columns.element.style.width = `${width}px`; // the legend below may be wider
  const colours = legend();
  colours.show(map.canvas.dataset);
  const element = h("div.labelled", {}, h("span"), columns.element, rows.element, map.element, colours.element);
  const mark = (row, column) => {
    map.mark(row, column);
    rows.mark(row);
    columns.mark(column);
  };
  const update = (changes) => {
    map.update(changes);
    colours.show(map.canvas.dataset);
  };
  return { ...map, element, mark, update };
}

/** Which colour is which number: the palette between its ends. */
function legend() {
  const canvas = h("canvas");
  const element = h("div.scale");
  const show = ({ colours, lowest, highest }) => {
    paint(canvas, { values: Float32Array.from({ length: 256 }, (_, i) => i), rows: 1, columns: 256, colours, lowest: 0, highest: 255 });
    canvas.setAttribute("aria-hidden", "true");
    fill(element, number(Number(lowest), 3), canvas, number(Number(highest), 3));
  };
  return { element, show };
}

function axis(kind, texts, length) {
  const step = Math.max(1, Math.ceil((LINE * texts.length) / length));
  const place = (i) => ({ "--at": (i + 0.5) / texts.length });
  const over = h("span.over", { hidden: true });
  const letters = Math.min(14, Math.max(1, ...texts.map((text) => [...text].length)));
  const element = h(`div.axis-${kind}`, { "aria-hidden": "true", style: { "--letters": letters } });
  fill(element, texts.map((text, i) => (i % step ? null : h("span", { style: place(i), title: text }, text))), over);
  return {
    element,
    mark(i) {
      over.hidden = i === null || i === undefined || !(i in texts);
      if (over.hidden) return;
      over.textContent = texts[i];
      over.style.setProperty("--at", (i + 0.5) / texts.length);
    },
  };
}
