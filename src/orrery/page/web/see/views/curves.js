// The curves of a run, which grow while it learns: loss, rate, gradient norm, speed, and what else was measured.
import { chart, legend, room } from "#see/chart.js";
import { nearest, tellCheckpoints } from "#see/checkpoints.js";
import { fill, h, marked, number } from "#see/dom.js";
import { events } from "#see/events.js";
import { csv, download, exports } from "#see/export.js";
import { t } from "#see/words.js";

const words = {
  en: {
    "view.curves": "Curves", "curves.loss": "Loss, nats a token", "curves.lr": "Learning rate", "curves.grad_norm": "Gradient norm, before clipping", "curves.tokens_per_second": "Tokens a second", "curves.more": "What else was measured", "curves.samples": "What it wrote meanwhile", "curves.step": "step",
    "curves.progress": "{name}: step {step} of {planned}", "curves.steps": "{name}: step {step}", "curves.live": "followed live", "curves.ended": "not followed any more; it is tried again", "curves.log": "loss on a logarithmic scale", "curves.at": "step {step}: {values}", "curves.none": "Nothing was measured so far.", "curves.left": "about {time} left",
  },
  de: {
    "view.curves": "Kurven", "curves.loss": "Verlust, Nats je Token", "curves.lr": "Lernrate", "curves.grad_norm": "Norm des Gradienten vor dem Kappen", "curves.tokens_per_second": "Tokens je Sekunde", "curves.more": "Was sonst gemessen wurde", "curves.samples": "Was es unterdessen schrieb", "curves.step": "Schritt",
    "curves.progress": "{name}: Schritt {step} von {planned}", "curves.steps": "{name}: Schritt {step}", "curves.live": "wird live verfolgt", "curves.ended": "wird nicht mehr verfolgt; es wird wieder versucht", "curves.log": "Verlust auf logarithmischer Skala", "curves.at": "Schritt {step}: {values}", "curves.none": "Bisher wurde nichts gemessen.", "curves.left": "noch etwa {time}",
  },
};

/** Points of one curve in this page; beyond twice as many they are thinned. */
const MOST = 2000;
const TEXTS = 20;
const MAIN = [["loss", ["train/loss", "val/loss"]], ["lr", ["lr"]], ["grad_norm", ["grad_norm"]], ["tokens_per_second", ["tokens_per_second"]]];
const [LEFT, RIGHT] = [64, 12];

/** At most `most` points: both ends, and of equal parts between them the least and the greatest. */
export function thinned(points, most = MOST) {
  if (points.length <= most) return points;
  const inner = points.slice(1, -1);
  const parts = (most - 2) >> 1;
  const kept = [points[0]];
  for (let i = 0; i < parts; i++) {
    const part = inner.slice(Math.floor((i * inner.length) / parts), Math.floor(((i + 1) * inner.length) / parts));
    const [low, high] = [Math.min, Math.max].map((pick) => part.findIndex(([, value]) => value === pick(...part.map((one) => one[1]))));
    for (const place of new Set([low, high].sort((a, b) => a - b))) kept.push(part[place]);
  }
  return [...kept, points.at(-1)];
}

async function draw(element, { page, check }) {
  const { facts, checks } = await page.model.get("curves");
  check(checks);
  const view = new Curves(page, element, facts);
  view.show();
  if (page.live) view.follow();
  return view;
}

class Curves {
  constructor(page, element, { name, planned, ...history }) {
    this.parts = { told: h("p", { "data-progress": "" }), bar: h("progress", { max: planned ?? 1, "aria-label": t("view.curves") }), live: h("span.soft", { "data-live": "" }), charts: h("div.curves"), more: h("div.curves"), samples: h("div"), save: h("div") };
    Object.assign(this, { page, name, planned, log: false, ended: new AbortController() });
    const log = h("input", { type: "checkbox", name: "log", onchange: () => ((this.log = log.checked), this.show()) });
    const { told, bar, live, charts, more, samples, save } = this.parts;
    fill(element, told, h("div.controls", {}, planned && bar, live, h("label", {}, log, t("curves.log"))), charts, h("details", {}, h("summary", {}, t("curves.more")), more), samples, save);
    this.history(history);
  }

  history({ curves, samples, checkpoints }) {
    Object.assign(this, { curves, samples, checkpoints });
  }

  get step() {
    return Math.max(0, ...Object.values(this.curves).map((points) => points.at(-1)?.[0] ?? 0));
  }

  /** Read what the server tells of the run; a connection that breaks is opened again. */
  async follow() {
    const { signal } = this.ended;
    while (!signal.aborted) {
      try {
        const answer = await this.page.call("/inspect/train/events", null, { signal });
        this.parts.live.textContent = t("curves.live");
        for await (const event of events(answer)) this.take(event);
      } catch (error) {
        if (signal.aborted) return;
      }
      if (signal.aborted) return;
      this.parts.live.textContent = t("curves.ended");
      await new Promise((done) => setTimeout(done, 3000));
    }
  }

  take({ history, record, sample, checkpoints, error }) {
    if (error) throw new Error(error.message);
    if (history) this.history(history);
    if (record) {
      for (const [name, value] of Object.entries(record)) if (name !== "step" && typeof value === "number") this.add(name, [record.step, value]);
    }
    if (sample) this.samples = [...this.samples, sample].slice(-TEXTS);
    if (checkpoints) this.checkpoints = checkpoints;
    if (history || checkpoints) tellCheckpoints(this.checkpoints);
    this.waiting ??= requestAnimationFrame(() => ((this.waiting = null), this.show()));
  }

  add(name, point) {
    const points = (this.curves[name] ??= []);
    points.push(point);
    if (points.length > 2 * MOST) this.curves[name] = thinned(points);
  }

  show() {
    const { step, planned, name } = this;
    const { told, bar, charts, more } = this.parts;
    told.textContent = [t(planned ? "curves.progress" : "curves.steps", { name, step: number(step), planned: number(planned) }), this.left()].filter(Boolean).join(", ");
    bar.value = planned ? Math.min(1, step / planned) * planned : 1;
    const known = new Set(MAIN.flatMap(([, names]) => names));
    const others = Object.keys(this.curves).filter((one) => !known.has(one)).sort();
    const drawn = MAIN.map(([title, names]) => this.chart(t(`curves.${title}`), names, title === "loss" && this.log)).filter(Boolean);
    fill(charts, drawn.length ? drawn : h("p.soft", {}, t("curves.none")));
    fill(more, others.map((one) => this.chart(one, [one], false)));
    this.texts();
    const rows = Object.entries(this.curves).flatMap(([one, points]) => points.map(([at, value]) => [one, at, value]));
    fill(this.parts.save, exports({ csv: () => download("curves.csv", csv([["name", "step", "value"], ...rows]), "text/csv") }));
  }

  /** How long the run still takes at its speed of now. */
  left() {
    const last = (name) => this.curves[name]?.at(-1)?.[1];
    const [tokens, speed] = [last("tokens"), last("tokens_per_second")];
    if (!this.planned || !(this.step < this.planned) || !(tokens > 0) || !(speed > 0)) return null;
    const seconds = Math.round(((tokens / this.step) * (this.planned - this.step)) / speed);
    return t("curves.left", { time: seconds < 90 ? `${seconds} s` : seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${marked((seconds / 3600).toFixed(1))} h` });
  }

  chart(title, names, log) {
    const series = names.filter((name) => this.curves[name]?.length).map((name) => ({ name, points: this.curves[name] }));
    if (!series.length) return null;
    const said = h("p.number", { "data-over": "" }, " ");
    const at = this.page.focus.get("checkpoint");
    const wide = room();
    const picture = chart({ series, label: title, x: t("curves.step"), log }, { width: wide, height: 200, at: this.inside(series, at), zero: names[0] === "lr" });
    const steps = series[0].points.map(([step]) => step);
    const step = (event) => {
      const { left, width } = picture.getBoundingClientRect();
      const share = (((event.clientX - left) / width) * wide - LEFT) / (wide - LEFT - RIGHT);
      const [first, last] = [Math.min(...series.map(({ points }) => points[0][0])), Math.max(...series.map(({ points }) => points.at(-1)[0]))];
      return first + share * (last - first);
    };
    const closest = (points, wanted) => points.reduce((best, one) => (Math.abs(one[0] - wanted) < Math.abs(best[0] - wanted) ? one : best));
    picture.addEventListener("pointermove", (event) => {
      const place = closest(series[0].points, step(event))[0];
      said.textContent = t("curves.at", { step: number(place), values: series.map(({ name, points }) => `${name} ${number(closest(points, place)[1])}`).join(", ") });
    });
    picture.addEventListener("pointerleave", () => (said.textContent = " "));
    picture.addEventListener("click", (event) => nearest(step(event)));
    return h("figure", { "data-chart": names[0], "data-points": steps.length }, h("figcaption", {}, h("strong", {}, title)), picture, names.length > 1 && legend(series.map(({ name }) => name)), said);
  }

  /** The step that is marked, where the curve reaches it. */
  inside(series, at) {
    const [first, last] = [series[0].points[0][0], series[0].points.at(-1)[0]];
    return at !== null && at >= first && at <= last ? at : null;
  }

  texts() {
    const one = ({ step, text }) => h("tr", {}, h("th", { scope: "row" }, `${t("curves.step")} ${number(step)}`), h("td.said", {}, text));
    fill(this.parts.samples, this.samples.length > 0 && [h("h2", {}, t("curves.samples")), h("div.scroll.samples", { tabindex: 0, "aria-label": t("curves.samples"), role: "region" }, h("table", {}, h("tbody", {}, [...this.samples].reverse().map(one))))]);
  }

  focus(changed) {
    if (changed.has("checkpoint") || changed.has("theme")) this.show();
  }

  destroy() {
    this.ended.abort();
  }
}

export default { words, draw };
