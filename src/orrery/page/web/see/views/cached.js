// The numbers of the KV cache: what every layer holds of the text so far, place by place, head by head.
import { fill, h, visible, whole } from "#see/dom.js";
import { csv, download, exports } from "#see/export.js";
import { heatMap } from "#see/heat.js";
import { readable } from "#see/memory.js";
import { at } from "#see/safetensors.js";
import { said, t } from "#see/words.js";
import { vector } from "#see/vector.js";
import words from "#see/cached/words.js";

/** Milliseconds that a length stays while the text is played. */
const STAY = 350;

async function draw(element, { page, check }) {
  const view = new Cached(page, check);
  fill(element, h("p", {}, t("cached.about")), view.parts.controls, view.parts.said, view.parts.strip, view.parts.layers, view.parts.numbers, view.parts.save);
  await view.show();
  return view;
}

class Cached {
  constructor(page, check) {
    Object.assign(this, { page, check, turn: 0, place: null, asked: { layer: 0, head: 0 }, parts: { controls: h("div.controls"), said: h("p"), strip: h("div.strip.kept"), layers: h("div.scroll"), numbers: h("div"), save: h("div") } });
  }

  async show(change = {}) {
    const turn = ++this.turn;
    const asked = { ...this.asked, ...change };
    if (!this.page.source.has("cached", asked)) {
      this.parts.said.textContent = t("cached.unsaved");
      return false;
    }
    const { facts, tensors, checks } = await this.page.source.get("cached", asked);
    if (turn !== this.turn) return false;
    Object.assign(this, { asked, facts, tensors });
    this.check(checks);
    this.controls();
    this.told();
    this.table();
    this.numbers();
    return true;
  }

  get layer() {
    return this.facts.layers[this.facts.layer];
  }

  /** How far the text has been read; a slider that is held stays the same element. */
  controls() {
    const { facts, page } = this;
    if (!page.live) return;
    if (!this.range) {
      this.range = h("input", { type: "range", name: "cached-tokens", min: 1, max: facts.length, oninput: () => (this.stop(), this.go(Number(this.range.value))) });
      this.count = h("output.number");
      this.button = h("button.quiet", { "data-do": "play", onclick: () => (this.playing ? this.stop() : this.play()) }, t("cached.play"));
      fill(this.parts.controls, h("label", {}, t("cached.read"), this.range, this.count), facts.length > 1 && this.button);
    }
    this.range.value = facts.tokens;
    this.count.textContent = t("cached.of", { tokens: facts.tokens, length: facts.length });
  }

  /** Ask for another length; while one is computed only the last wish waits. */
  go(tokens) {
    this.wish = tokens;
    return (this.asking ??= this.follow().finally(() => (this.asking = null)));
  }

  async follow() {
    for (let now = null; this.wish !== now; ) {
      now = this.wish;
      await this.show({ tokens: now });
    }
  }

  async play() {
    const mine = (this.playing = {});
    this.button.textContent = t("cached.stop");
    const from = this.facts.tokens >= this.facts.length ? 1 : this.facts.tokens + 1;
    for (let tokens = from; this.playing === mine && tokens <= this.facts.length; tokens++) {
      await this.go(tokens);
      await new Promise((done) => setTimeout(done, STAY));
    }
    if (this.playing === mine) this.stop();
  }

  stop() {
    this.playing = null;
    if (this.button) this.button.textContent = t("cached.play");
  }

  /** The texts of the places: tokens, or those of the source that cross-attention reads. */
  get texts() {
    return this.page.pass[this.layer.kind === "source" ? "source" : "tokens"].map(({ text }) => visible(text));
  }

  told() {
    const { facts, layer, texts } = this;
    const { kind, window, heads, held } = layer;
    const notes = [t("cached.stepped", { stepped: facts.stepped, prompt: facts.tokens - facts.stepped })];
    if (kind === "keys") notes.push(t(heads === held ? "cached.own" : held === 1 ? "cached.mqa" : "cached.gqa", { heads, held, served: facts.served.join(", ") }));
    if (kind !== "keys") notes.push(t(`cached.kind.${kind}`));
    if (window) notes.push(t("cached.window", { window, gone: facts.tokens - layer.places }));
    if (facts.edited) notes.push(t("cached.edited"));
    fill(this.parts.said, notes.join(" "));
    const slots = new Map(facts.positions.map((place, i) => [place, facts.slots[i]]));
    const upto = kind === "source" ? texts.length : facts.tokens;
    const token = (i) => (slots.has(i) ? h("button.token", { "data-kept": i, "data-slot": slots.get(i), "aria-pressed": String(i === this.chosen), title: t("cached.slot", { slot: slots.get(i) }), onclick: () => this.choose(i) }, texts[i]) : h("span.token.let", { "data-gone": i, title: t("cached.gone") }, texts[i]));
    fill(this.parts.strip, kind === "state" ? null : texts.slice(0, upto).map((_, i) => token(i)));
    this.parts.strip.hidden = kind === "state";
  }

  /** The place whose numbers are shown: the chosen one, else the last that is held. */
  get chosen() {
    const { positions } = this.facts;
    return positions.includes(this.place) ? this.place : positions.at(-1) ?? null;
  }

  choose(place) {
    this.place = place;
    this.told();
    this.numbers();
  }

  table() {
    const { facts } = this;
    const all = facts.layers.reduce((sum, { bytes }) => sum + bytes, 0);
    const row = (layer, i) => h("tr", { "data-layer": i, "aria-current": i === facts.layer ? "true" : null }, h("th", { scope: "row" }, h("button.quiet", { onclick: () => this.show({ layer: i, head: 0 }) }, layer.path)), h("td", {}, t(`cached.${layer.kind}`)), h("td", {}, said(layer.store)), h("td.right", {}, layer.kind === "state" ? "–" : whole(layer.places)), h("td.right", {}, layer.heads === null ? "–" : layer.heads === layer.held ? whole(layer.held) : t("cached.shared", layer)), h("td", {}, Object.entries(layer.shapes).map(([name, shape]) => `${called(name)} ${shape.join("×")}`).join(", ")), h("td.right", { "data-bytes": layer.bytes }, readable(layer.bytes)));
    const head = ["layer", "what", "store", "places", "heads", "shape", "bytes"].map((name, i) => h([3, 4, 6].includes(i) ? "th.right" : "th", { scope: "col" }, t(`cached.head.${name}`)));
    fill(this.parts.layers, h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, facts.layers.map(row))));
    this.sum = t("cached.sum", { held: readable(all), allocated: readable(facts.allocated) });
  }

  numbers() {
    const { facts, tensors, layer, texts, chosen } = this;
    const one = layer.kind === "state" ? Object.keys(layer.shapes).map(called) : Array.from({ length: layer.held }, (_, i) => String(i));
    const choose = one.length > 1 && h("div.controls", {}, h("label", {}, t(layer.kind === "state" ? "cached.part" : "cached.held"), h("select", { "data-choice": "held", onchange: (event) => this.show({ head: Number(event.target.value) }) }, one.map((name, i) => h("option", { value: i, selected: i === facts.head }, name)))));
    const row = facts.positions.indexOf(chosen);
    const names = Object.keys(tensors);
    const map = (name) => {
      const { shape: [rows, columns], data } = tensors[name];
      const drawn = heatMap({ values: data, rows, columns, colours: "signed", label: t("cached.map", { name: called(name), rows, columns }) }, layer.kind === "state" ? {} : { chosen: (place) => this.choose(facts.positions[place]) });
      if (row >= 0) drawn.mark(row, null);
      Object.assign(drawn.element.style, { width: `min(${Math.max(6, Math.min(22, columns * 0.6))}rem, 84vw)`, height: `${Math.max(2, Math.min(16, rows * 1.1))}rem` });
      return h("figure", { "data-rows": name }, h("figcaption.soft", {}, t("cached.map", { name: called(name), rows, columns })), drawn.element);
    };
    const line = (name) => vector(at(tensors[name], row).data, { label: called(name), key: this.key(name) });
    const title = layer.kind === "state" ? layer.path : t("cached.place", { path: layer.path, head: facts.head, place: chosen, text: texts[chosen] });
    fill(this.parts.numbers, h("p.soft", {}, this.sum), h("h3", {}, title), choose, row >= 0 && names.map(line), h("div.side", {}, names.map(map)));
    fill(this.parts.save, exports({ csv: () => download(`cache-${facts.layer}-${facts.head}.csv`, csv(names.flatMap((name) => Array.from({ length: tensors[name].shape[0] }, (_, i) => [name, facts.positions[i] ?? i, ...at(tensors[name], i).data]))), "text/csv") }));
  }

  /** Where a number can be explained: the tensors of the pass have the same rows. */
  key(name) {
    const { facts, layer, chosen } = this;
    const path = `${layer.path}.${name}`;
    const found = (name === "k" || name === "v") && path in this.page.pass.shapes && this.page.pass.shapes[path][1] === layer.held && !facts.edited && !this.page.comparing;
    return found ? (channel) => [path, [facts.head, chosen, channel]] : undefined;
  }

  focus(changed) {
    if (changed.has("theme") && this.facts) this.numbers();
  }

  destroy() {
    this.turn = -1;
    this.stop();
  }
}

/** What a tensor is called; the parts of a state have numbers. */
function called(name) {
  const [kind, number] = name.split(" ");
  return number === undefined ? t(`cached.name.${name}`) : `${t(`cached.${kind}`)} ${number}`;
}

export default { words, draw };
