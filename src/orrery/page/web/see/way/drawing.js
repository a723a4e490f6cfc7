// The drawing of a token's way: the stream runs down, parts add to it from the side; what is near shows its numbers.
import { number, visible } from "#see/dom.js";
import { palette, place, scheme } from "#see/palette.js";
import { readable } from "#see/vector.js";

export const [WIDTH, STEP, TOP] = [720, 120, 90];
/** The middle of the stream, and where a row of numbers begins. */
const [MIDDLE, LEFT, ROW] = [90, 150, 34];
/** From this size on a cell shows its number, and a head its tokens. */
const [NUMBERS, HEADS] = [2.2, 0.6];

/** Where a station stands. */
export const heightOf = (n) => TOP + STEP * n;

/**
 * Draw what the camera sees.
 * @param {HTMLCanvasElement} canvas
 * @param {{x: number, y: number, scale: number}} camera
 * @param {object} way stations with `values`, and `answer`
 * @param {number} at how far the token has come, in stations
 */
export function paintWay(canvas, camera, way, at) {
  const ratio = globalThis.devicePixelRatio || 1;
  const [across, down] = [canvas.clientWidth, canvas.clientHeight];
  if (canvas.width !== Math.round(across * ratio)) canvas.width = Math.round(across * ratio);
  if (canvas.height !== Math.round(down * ratio)) canvas.height = Math.round(down * ratio);
  const context = canvas.getContext("2d");
  const style = getComputedStyle(canvas);
  const colour = (name) => style.getPropertyValue(`--${name}`);
  const ink = { ink: colour("ink"), soft: colour("soft"), line: colour("line"), panel: colour("panel"), accent: colour("accent"), look: colour("look") };
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, across, down);
  context.translate(across / 2, down / 2);
  context.scale(camera.scale, camera.scale);
  context.translate(-camera.x, -camera.y);
  const reach = down / 2 / camera.scale + STEP;
  const seen = (y) => Math.abs(y - camera.y) < reach;
  river(context, ink, way, at);
  const table = palette("signed", scheme());
  way.stations.forEach((station, n) => seen(heightOf(n)) && one(context, { ink, table, station, y: heightOf(n), near: camera.scale, reached: n <= at }));
  if (seen(heightOf(way.stations.length))) answer(context, ink, way.answer, heightOf(way.stations.length));
}

/** The stream, and the token on its way down. */
function river(context, ink, way, at) {
  const [top, end] = [heightOf(0), heightOf(way.stations.length)];
  context.fillStyle = ink.line;
  context.fillRect(MIDDLE - 5, top, 10, end - top);
  context.fillStyle = ink.accent;
  context.fillRect(MIDDLE - 5, top, 10, STEP * Math.min(at, way.stations.length));
  write(context, visible(way.token), MIDDLE - 13, top - 62, { fill: ink.look, size: 22, least: 13, most: WIDTH - MIDDLE });
  context.fillStyle = ink.look;
  context.beginPath();
  context.arc(MIDDLE, top + STEP * Math.min(at, way.stations.length), 13, 0, 2 * Math.PI);
  context.fill();
}

function one(context, { ink, table, station, y, near, reached }) {
  const adds = station.adds;
  context.globalAlpha = reached ? 1 : 0.6;
  write(context, station.title, LEFT, y - ROW / 2 - 3, { base: "bottom", fill: ink.ink, size: 15, least: 11, most: 330 });
  write(context, station.told, WIDTH - 20, y - ROW / 2 - 3, { base: "bottom", fill: ink.soft, size: 13, align: "right", least: 10, most: 200 });
  context.fillStyle = adds ? ink.look : ink.accent;
  if (adds) arrow(context, LEFT - 6, y, MIDDLE + 14);
  else context.fillRect(MIDDLE - 16, y - 3, 32, 6);
  const width = (WIDTH - LEFT - 20) / station.values.length;
  station.values.forEach((value, i) => {
    const from = 3 * place(value, -station.most, station.most);
    const [red, green, blue] = table.subarray(from, from + 3);
    context.fillStyle = `rgb(${red} ${green} ${blue})`;
    context.fillRect(LEFT + i * width, y - ROW / 2, width + 0.4, ROW);
    if (near * width < 16 * NUMBERS) return;
    write(context, number(value, 2), LEFT + (i + 0.5) * width, y + 1, { fill: readable(red, green, blue), size: width / 4, align: "center" });
  });
  context.strokeStyle = ink.soft;
  context.lineWidth = 1;
  context.strokeRect(LEFT, y - ROW / 2, WIDTH - LEFT - 20, ROW);
  if (near > HEADS) heads(context, ink, station, y + 30);
  context.globalAlpha = 1;
}

/** Whom each head looks at, as many as there is room for. */
function heads(context, ink, { heads: all }, y) {
  const columns = Math.min(all.length, 8);
  const width = (WIDTH - LEFT - 20) / Math.max(1, columns);
  all.slice(0, 16).forEach((text, n) => write(context, text, LEFT + (n % columns) * width, y + 16 * Math.floor(n / columns), { fill: ink.soft, size: Math.min(12, width / 9), most: width - 4 }));
}

/** What the model answers: the likeliest tokens or classes. */
function answer(context, ink, said, y) {
  said.forEach(({ text, p }, n) => {
    const row = y + 26 * n;
    write(context, text, LEFT, row, { fill: ink.ink, size: 15, most: 120, least: 11 });
    context.fillStyle = ink.accent;
    context.fillRect(LEFT + 130, row - 7, Math.max(1, 330 * Math.max(0, Math.min(1, p))), 14);
    write(context, number(p, 3), WIDTH - 20, row, { fill: ink.soft, size: 13, align: "right", least: 10 });
  });
}

function arrow(context, from, y, to) {
  context.fillRect(to + 8, y - 2, from - to - 8, 4);
  context.beginPath();
  context.moveTo(to, y);
  context.lineTo(to + 12, y - 8);
  context.lineTo(to + 12, y + 8);
  context.fill();
}

/** A text; `least` is how large it stays on the screen, however far the drawing is away. */
function write(context, text, x, y, { fill, size, align = "left", base = "middle", most = undefined, least = 0 }) {
  context.font = `${Math.max(size, (least * (globalThis.devicePixelRatio || 1)) / context.getTransform().a)}px system-ui, sans-serif`;
  context.textAlign = align;
  context.textBaseline = base;
  context.fillStyle = fill;
  context.fillText(text, x, y, most);
}
