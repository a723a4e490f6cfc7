// What is shown, as files: pictures, tables, and the exact numbers.
import { h } from "#see/dom.js";
import { t } from "#see/words.js";

/** Give the reader a file. */
export function download(name, parts, kind) {
  const url = URL.createObjectURL(new Blob([parts].flat(), { type: kind }));
  h("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/** Rows of values as CSV; a text with a comma, a quote or a line end stands in quotes. */
export function csv(rows) {
  const cell = (value) => (/[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
  return rows.map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** A safetensors file of tensors `{name: {shape, data}}`, every number as float32. */
export function safetensors(tensors) {
  const header = { __metadata__: { format: "pt" } };
  const parts = [];
  let end = 0;
  for (const [name, { shape, data }] of Object.entries(tensors)) {
    const bytes = new Uint8Array(Float32Array.from(data).buffer);
    header[name] = { dtype: "F32", shape, data_offsets: [end, (end += bytes.length)] };
    parts.push(bytes);
  }
  let text = JSON.stringify(header);
  text = text.padEnd(8 * Math.ceil(text.length / 8));
  const length = new DataView(new ArrayBuffer(8));
  length.setBigUint64(0, BigInt(text.length), true);
  return [length.buffer, text, ...parts];
}

/** Save a canvas as a picture in which a cell has `scale` pixels a side. */
export function savePng(name, canvas, scale = 8) {
  const large = h("canvas", { width: canvas.width * scale, height: canvas.height * scale });
  const context = large.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, 0, 0, large.width, large.height);
  large.toBlob((blob) => download(name, blob, "image/png"));
}

/** A heat map with its tokens as SVG: the texts can be selected, the cells are an image. */
export function heatSvg(canvas, rows, columns, title, cell = 14) {
  const letters = Math.max(4, ...rows.map((text) => [...text].length), ...columns.map((text) => [...text].length));
  const margin = 12 + 7 * letters;
  const [width, height] = [margin + cell * columns.length + 12, margin + cell * rows.length + 12];
  const label = (text, attributes) => h("text", { "font-size": 11, "font-family": "monospace", ...attributes }, text);
  const svg = h(
    "svg",
    { xmlns: "http://www.w3.org/2000/svg", viewBox: `0 0 ${width} ${height}`, width, height },
    h("title", {}, title),
    h("image", { href: canvas.toDataURL(), x: margin, y: margin, width: cell * columns.length, height: cell * rows.length, preserveAspectRatio: "none", style: { "image-rendering": "pixelated" } }),
    rows.map((text, i) => label(text, { x: margin - 4, y: margin + cell * (i + 0.75), "text-anchor": "end" })),
    columns.map((text, i) => label(text, { transform: `translate(${margin + cell * (i + 0.7)} ${margin - 4}) rotate(-90)` })),
  );
  return new XMLSerializer().serializeToString(svg);
}

/**
 * The row of buttons below a view.
 * @param {Object<string, () => void>} ways png, svg, csv, safetensors, and what each does
 */
export function exports(ways) {
  return h("div.exports", {}, Object.entries(ways).map(([way, save]) => h("button.quiet", { onclick: save, "data-export": way }, t(`export.${way}`))));
}
