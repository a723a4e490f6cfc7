// Points on a canvas: some of them named, the one under the pointer told.
import { fill, h } from "#see/dom.js";

const SIZE = 460;
const EDGE = 24;

/**
 * @param {object} data
 * @param {Float32Array} data.points two numbers each
 * @param {string[]} data.texts
 * @param {number[]} data.named places of the points whose texts are written
 * @param {number|null} data.chosen
 * @param {string} data.label
 * @param {{over: (place: number|null) => void, chosen: (place: number) => void}} habits
 */
export function scatter({ points, texts, named, label, ...data }, habits) {
  const count = texts.length;
  const spread = bounds(points);
  const place = (i) => [EDGE + spread.scale * (points[2 * i] - spread.left), SIZE - EDGE - spread.scale * (points[2 * i + 1] - spread.bottom)];
  const canvas = h("canvas", { role: "img", "aria-label": label });
  const names = h("div", { "aria-hidden": "true" });
  const told = h("span.over", { hidden: true });
  const element = h("div.scatter", { style: { width: `${SIZE}px` } }, canvas, names, told);
  let chosen = data.chosen;
  const draw = () => {
    const ratio = devicePixelRatio || 1;
    Object.assign(canvas, { width: SIZE * ratio, height: SIZE * ratio });
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const style = getComputedStyle(element);
    const dot = (i, radius, colour) => {
      context.fillStyle = colour;
      context.beginPath();
      context.arc(...place(i), radius, 0, 7);
      context.fill();
    };
    const [soft, accent, look] = ["--soft", "--accent", "--look"].map((name) => style.getPropertyValue(name));
    context.globalAlpha = count > 2000 ? 0.35 : 0.8;
    for (let i = 0; i < count; i++) dot(i, count > 2000 ? 1.3 : 3, soft);
    context.globalAlpha = 1;
    for (const i of named) dot(i, 3.5, accent);
    if (chosen !== null) dot(chosen, 6, look);
    fill(names, [...named].sort((a, b) => (b === chosen) - (a === chosen)).map((i) => at(h("span", { class: i === chosen ? "chosen" : null }, texts[i].length > 18 ? `${texts[i].slice(0, 17)}…` : texts[i]), place(i))));
    apart(names);
  };
  const nearest = (event) => {
    const { left, top, width } = canvas.getBoundingClientRect();
    const [x, y] = [((event.clientX - left) * SIZE) / width, ((event.clientY - top) * SIZE) / width];
    let [best, least] = [null, 144];
    for (let i = 0; i < count; i++) {
      const [a, b] = place(i);
      const distance = (a - x) ** 2 + (b - y) ** 2;
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  };
  canvas.addEventListener("pointermove", (event) => {
    const i = nearest(event);
    told.hidden = i === null;
    if (i !== null) at(fill(told, texts[i]), place(i));
    habits.over(i);
  });
  canvas.addEventListener("pointerleave", () => ((told.hidden = true), habits.over(null)));
  canvas.addEventListener("click", (event) => {
    const i = nearest(event);
    if (i !== null) habits.chosen(i);
  });
  requestAnimationFrame(draw);
  return { element, canvas, place, choose: (i) => ((chosen = i), draw()), draw };
}

/** Take away each name that would stand over one before it; the point tells it under the pointer. */
function apart(names) {
  const kept = [];
  for (const one of [...names.children]) {
    const box = one.getBoundingClientRect();
    if (kept.some((other) => box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom)) one.remove();
    else kept.push(box);
  }
}

function at(element, [x, y]) {
  element.style.left = `${(100 * x) / SIZE}%`;
  element.style.top = `${(100 * y) / SIZE}%`;
  element.classList.toggle("left", x > SIZE / 2);
  return element;
}

/** One scale for both axes, so that distances on the map are distances. */
function bounds(points) {
  let [left, right, bottom, top] = [Infinity, -Infinity, Infinity, -Infinity];
  for (let i = 0; i < points.length; i += 2) {
    left = Math.min(left, points[i]);
    right = Math.max(right, points[i]);
    bottom = Math.min(bottom, points[i + 1]);
    top = Math.max(top, points[i + 1]);
  }
  return { left, bottom, scale: (SIZE - 2 * EDGE) / Math.max(right - left, top - bottom, 1e-9) };
}
