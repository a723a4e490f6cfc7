// What a batch costs: operations, memory and time, each with its formula.
import { fill, h, number, whole as exact } from "#see/dom.js";
import { csv, download, exports } from "#see/export.js";
import { bytes, readable } from "#see/memory.js";
import { t } from "#see/words.js";

const words = {
  en: {
    "view.planner": "Costs", "planner.about": "N weights multiply each token, two operations a weight; attention adds four for each pair of tokens and channel, of which a causal mask hides half, a window those beyond it. A backward pass costs twice as much.",
    "planner.rows": "Rows", "planner.length": "Tokens a row", "planner.rate": "Speed, operations a second", "planner.measure": "Measure this machine", "planner.measuring": "Measuring …",
    "planner.what": "What", "planner.formula": "Formula", "planner.amount": "Amount", "planner.operations": "Operations", "planner.memory": "Memory", "planner.time": "Time",
    "planner.token": "forward, a token", "planner.pass": "forward, the batch", "planner.training": "a training step", "planner.weights": "weights", "planner.gradients": "gradients", "planner.optimizer": "AdamW's two averages in float32", "planner.cache": "keys and values while decoding", "planner.logits": "logits in float32", "planner.serving": "serving: weights and cache", "planner.learning": "training: weights, gradients, optimizer, logits; activations on top",
    "planner.days": "days", "planner.years": "years", "planner.seconds": "forward, at this speed", "planner.step": "a training step, at this speed", "planner.speed": "tokens a second in training", "planner.measured": "forward, measured here", "planner.times": "{n} times the prediction", "planner.no.rate": "give a speed, or measure it",
  },
  de: {
    "view.planner": "Kosten", "planner.about": "N Gewichte multiplizieren jedes Token, zwei Operationen je Gewicht; Aufmerksamkeit bringt vier je Tokenpaar und Kanal, von denen eine kausale Maske die Hälfte verdeckt, ein Fenster die jenseits davon. Rückwärts kostet es das Doppelte.",
    "planner.rows": "Zeilen", "planner.length": "Tokens je Zeile", "planner.rate": "Tempo, Operationen je Sekunde", "planner.measure": "Diese Maschine messen", "planner.measuring": "Wird gemessen …",
    "planner.what": "Was", "planner.formula": "Formel", "planner.amount": "Menge", "planner.operations": "Operationen", "planner.memory": "Speicher", "planner.time": "Zeit",
    "planner.token": "vorwärts, ein Token", "planner.pass": "vorwärts, der Stapel", "planner.training": "ein Trainingsschritt", "planner.weights": "Gewichte", "planner.gradients": "Gradienten", "planner.optimizer": "AdamWs zwei Mittel in float32", "planner.cache": "Schlüssel und Werte beim Dekodieren", "planner.logits": "Logits in float32", "planner.serving": "Betrieb: Gewichte und Speicher der Schlüssel", "planner.learning": "Training: Gewichte, Gradienten, Optimierer, Logits; Aktivierungen kommen dazu",
    "planner.days": "Tage", "planner.years": "Jahre", "planner.seconds": "vorwärts, mit diesem Tempo", "planner.step": "ein Trainingsschritt, mit diesem Tempo", "planner.speed": "Tokens je Sekunde im Training", "planner.measured": "vorwärts, hier gemessen", "planner.times": "{n}-mal die Vorhersage", "planner.no.rate": "ein Tempo angeben oder messen",
  },
};

const whole = (count) => exact(Math.round(count));

/** Seconds as people read them. */
export function duration(seconds) {
  const units = [["µs", 1e-6], ["ms", 1e-3], ["s", 1], ["min", 60], ["h", 3600], [t("planner.days"), 86400], [t("planner.years"), 31557600]];
  const [name, size] = units.findLast(([, least]) => seconds >= least) ?? units[0];
  return `${number(seconds / size, 3)} ${name}`;
}

/** The keys that a query sees on average through a window, or of all where there is none. */
export function seen(keys, length, causal) {
  const most = Math.min(length, keys ?? length);
  return causal ? most - most ** 2 / (2 * length) : most;
}

/** The lines of the plan. */
export function plan(facts, { rows, length, rate, causal }) {
  const { numbers, multiplied, attention, size, vocabulary, layers } = facts;
  const token = attention.reduce((sum, { channels, keys }) => sum + 4 * channels * seen(keys, length, causal), 2 * multiplied);
  const batch = token * rows * length;
  const [R, L] = [whole(rows), whole(length)];
  const pairs = attention.map(({ channels, keys }) => ((keys ?? length) < length ? `4 · ${whole(channels)} · ${number(seen(keys, length, causal), 4)}` : `${causal ? 2 : 4} · ${whole(channels)} · ${L}`));
  const each = [`2 · ${whole(multiplied)}`, ...pairs].join(" + ");
  const cache = rows * bytes(layers, size, length);
  const logits = 4 * rows * length * vocabulary;
  const optimizer = 8 * numbers;
  const gradients = numbers * size;
  const operations = [
    ["token", each, token],
    ["pass", `${R} · ${L} · (${each})`, batch],
    ["training", `3 · ${whole(batch)}`, 3 * batch],
  ];
  const memory = [
    ["weights", `${whole(numbers)} · ${size}`, facts.bytes],
    ["gradients", `${whole(numbers)} · ${size}`, gradients],
    ["optimizer", `${whole(numbers)} · 2 · 4`, optimizer],
    layers.length && ["cache", `${R} · ${whole(cache / rows)}`, cache],
    ["logits", `${R} · ${L} · ${whole(vocabulary)} · 4`, logits],
    ["serving", "", facts.bytes + cache],
    ["learning", "", facts.bytes + gradients + optimizer + logits],
  ].filter(Boolean);
  const time = rate ? [["seconds", `${whole(batch)} / ${number(rate, 3)}`, batch / rate], ["step", `${whole(3 * batch)} / ${number(rate, 3)}`, (3 * batch) / rate], ["speed", "", (rows * length * rate) / (3 * batch)]] : [];
  return { operations, memory, time };
}

async function draw(element, { page, check }) {
  const { facts, checks } = await page.model.get("planner");
  check(checks);
  const now = { rows: 1, length: Math.min(facts.context, 512), rate: null, causal: page.session.writes };
  const table = h("div.scroll");
  const save = h("div");
  const told = h("span.soft");
  let measured;
  const show = () => {
    const { operations, memory, time } = plan(facts, now);
    const line = ([name, formula, value], said) => h("tr", { "data-line": name, "data-value": value }, h("td", {}, t(`planner.${name}`)), h("td.soft", {}, formula), h("td.right", {}, said(value)));
    const group = (name) => h("tr", {}, h("th", { scope: "rowgroup", colspan: 3 }, t(`planner.${name}`)));
    const part = (name, lines, said) => lines.length > 0 && h("tbody", {}, group(name), lines.map((one) => line(one, said)));
    const seconds = time.map(([name, formula, value]) => line([name, formula, value], name === "speed" ? whole : duration));
    const same = measured?.rows === now.rows && measured.length === now.length;
    const ratio = same && h("tr", { "data-line": "measured" }, h("td", {}, t("planner.measured")), h("td.soft", {}, t("planner.times", { n: number(measured.seconds / time[0][2], 3) })), h("td.right", {}, duration(measured.seconds)));
    const heads = ["what", "formula", "amount"].map((name, i) => h(i > 1 ? "th.right" : "th", { scope: "col" }, t(`planner.${name}`)));
    fill(table, h("table", {}, h("thead", {}, h("tr", {}, heads)), part("operations", operations, whole), part("memory", memory, readable), h("tbody", {}, group("time"), seconds.length ? [seconds, ratio] : h("tr", {}, h("td.soft", { colspan: 3 }, t("planner.no.rate"))))));
    fill(save, exports({ csv: () => download("costs.csv", csv([["what", "formula", "amount"], ...operations, ...memory, ...time]), "text/csv") }));
  };
  const field = (name, max) => h("label", {}, t(`planner.${name}`), h("input", { type: "number", name, min: 1, max, value: now[name] ?? "", oninput: (event) => Number(event.target.value) > 0 && ((now[name] = Number(event.target.value)), show()) }));
  const rate = field("rate", 1e21);
  const measure = async (event) => {
    const button = event.currentTarget;
    button.disabled = true;
    told.textContent = t("planner.measuring");
    try {
      ({ facts: measured } = await page.model.get("planner", { rows: now.rows, length: now.length }));
      now.rate = measured.rate;
      rate.querySelector("input").value = Math.round(measured.rate);
      told.textContent = "";
      show();
    } catch (error) {
      told.textContent = error.message;
    }
    button.disabled = false;
  };
  fill(element, h("p", {}, t("planner.about")), h("div.controls.narrow.wide", {}, field("rows", 1e6), field("length", facts.context), rate, page.live && h("button", { "data-do": "measure", onclick: measure }, t("planner.measure")), told), table, save);
  show();
  return {};
}

export default { words, draw };
