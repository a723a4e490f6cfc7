// Small pictures with a slider: each formula is the one of the page, computed again for every setting.
// A picture has a kind, the numbers that Python gave it, and a slider; `compute` returns its rows.

const softmax = (row) => {
  const most = Math.max(...row);
  const powers = row.map((score) => Math.exp(score - most));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
};

const dot = (a, b) => a.reduce((sum, value, place) => sum + value * b[place], 0);

const scores = (data, factor) => data.queries.map((query) => data.keys.map((key) => factor * dot(query, key)));

const masked = (rows, allows) =>
  rows.map((row, i) => softmax(row.map((score, j) => (allows(i, j) ? score : -Infinity))));

const compute = {
  temperature: (data, value) => [softmax(data.logits.map((logit) => logit / value))],
  scale: (data, value) => scores(data, value).map(softmax),
  mask: (data, value) => masked(scores(data, data.scale), (i, j) => j <= i + value),
  window: (data, value) => masked(scores(data, data.scale), (i, j) => j <= i && i - j < value),
  base: (data, value) =>
    Array.from({ length: data.places }, (_, place) =>
      Array.from({ length: data.width }, (_, channel) => {
        const angle = place * (10 ** value) ** (-(channel - (channel % 2)) / data.width);
        return channel % 2 ? Math.cos(angle) : Math.sin(angle);
      }),
    ),
};

const CELL = 22;

// Rows of cells: blue is above zero, orange below it, and the darker, the larger.
function drawn(rows, labels) {
  const left = 70;
  const parts = rows.flatMap((row, i) => [
    `<text x="${left - 6}" y="${i * CELL + 15}" text-anchor="end">${labels.rows[i] ?? ""}</text>`,
    ...row.map((value, j) => {
      const colour = value < 0 ? "#d9730d" : "#0b62a4";
      const place = `x="${left + j * CELL}" y="${i * CELL}" width="${CELL - 1}" height="${CELL - 1}"`;
      const title = `<title>${value.toPrecision(4)}</title>`;
      return `<rect ${place} fill="${colour}" fill-opacity="${Math.abs(value).toFixed(3)}" stroke="currentColor" stroke-opacity=".15">${title}</rect>`;
    }),
  ]);
  const wide = left + rows[0].length * CELL + 2;
  const high = rows.length * CELL + 2;
  const style = "font:12px sans-serif;fill:currentColor";
  return `<svg viewBox="0 0 ${wide} ${high}" width="${wide}" height="${high}" style="max-width:100%;height:auto;color:inherit"><g style="${style}">${parts.join("")}</g></svg>`;
}

// One row becomes bars with their numbers.
function bars(row, labels) {
  const left = 70;
  const parts = row.map((value, i) => {
    const y = i * CELL;
    return `<text x="${left - 6}" y="${y + 15}" text-anchor="end" fill="currentColor">${labels.columns[i]}</text><rect x="${left}" y="${y + 3}" width="${(240 * value).toFixed(2)}" height="${CELL - 7}" fill="#0b62a4"/><text x="${left + 246}" y="${y + 15}" fill="currentColor">${value.toFixed(4)}</text>`;
  });
  const high = row.length * CELL + 2;
  return `<svg viewBox="0 0 380 ${high}" width="380" height="${high}" style="max-width:100%;height:auto;font:12px sans-serif">${parts.join("")}</svg>`;
}

function start(figure) {
  const { kind, data, labels, shown } = JSON.parse(figure.querySelector("script").textContent);
  const slider = figure.querySelector("input");
  const picture = figure.querySelector(".picture");
  const output = figure.querySelector("output");
  const draw = () => {
    const value = Number(slider.value);
    const rows = compute[kind](data, value);
    picture.innerHTML = rows.length === 1 ? bars(rows[0], labels) : drawn(rows, labels);
    output.textContent = shown === "power" ? Math.round(10 ** value).toLocaleString("en") : String(value);
  };
  slider.addEventListener("input", draw);
  draw();
}

// What moves sideways is reached by the keyboard too.
const reachable = (box) => box.scrollWidth > box.clientWidth && box.setAttribute("tabindex", "0");

// A page of a model in a frame is as light or dark as the site, whose button turns the body's theme.
function follow(frame) {
  const tell = () => frame.contentWindow.postMessage({ theme: document.body.dataset.theme }, "*");
  frame.addEventListener("load", tell);
  new MutationObserver(tell).observe(document.body, { attributeFilter: ["data-theme"] });
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("iframe.live").forEach(follow);
  document.querySelectorAll("figure.interactive").forEach(start);
  document.querySelectorAll(".table-wrapper, figure.wide, div.math").forEach(reachable);
});
globalThis.orreryInteractive = { compute };
