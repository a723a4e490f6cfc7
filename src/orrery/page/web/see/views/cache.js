// The KV cache while it grows: what this model keeps of each token, and what another design would keep.
import { chart, legend } from "#see/chart.js";
import { fill, h, whole } from "#see/dom.js";
import { csv, download, exports } from "#see/export.js";
import { paint } from "#see/heat.js";
import { bytes, changed, readable } from "#see/memory.js";
import { t } from "#see/words.js";

const words = {
  en: {
    "view.cache": "KV cache", "cache.about": "Each token leaves a key and a value in every layer: bytes = 2 · layers · tokens · key-value heads · channels · bytes a number. A window keeps no more tokens than its length; latent attention keeps one latent for all heads.",
    "cache.tokens": "Tokens", "cache.kv_heads": "Key-value heads", "cache.window": "Window", "cache.latent": "Latent", "cache.size": "Bytes a number", "cache.as": "as it is", "cache.none": "0: none",
    "cache.own": "this model", "cache.other": "with these changes", "cache.mha": "multi-head: every head its own", "cache.mqa": "multi-query: one for all heads", "cache.next": "One more token adds {bytes}.", "cache.picture": "What each layer holds of {n} tokens: coloured is kept", "cache.design": "Design", "cache.formula": "Formula", "cache.sum": "Bytes",
  },
  de: {
    "view.cache": "KV-Speicher", "cache.about": "Jedes Token hinterlässt in jeder Schicht einen Schlüssel und einen Wert: Bytes = 2 · Schichten · Tokens · Schlüssel-Wert-Köpfe · Kanäle · Bytes je Zahl. Ein Fenster behält nicht mehr Tokens als seine Länge; latente Aufmerksamkeit behält ein Latent für alle Köpfe.",
    "cache.tokens": "Tokens", "cache.kv_heads": "Schlüssel-Wert-Köpfe", "cache.window": "Fenster", "cache.latent": "Latent", "cache.size": "Bytes je Zahl", "cache.as": "wie es ist", "cache.none": "0: keines",
    "cache.own": "dieses Modell", "cache.other": "mit diesen Änderungen", "cache.mha": "Multi-Head: jeder Kopf eigene", "cache.mqa": "Multi-Query: eines für alle Köpfe", "cache.next": "Ein weiteres Token bringt {bytes}.", "cache.picture": "Was jede Schicht von {n} Tokens hält: Farbe heißt behalten", "cache.design": "Bauart", "cache.formula": "Formel", "cache.sum": "Bytes",
  },
};

async function draw(element, { page, check }) {
  const { facts, checks } = await page.model.get("cache");
  check(checks);
  const view = new Growth(page, facts);
  fill(element, h("p", {}, t("cache.about")), view.form(), h("div.side", {}, h("div.grow", {}, view.parts.chart), h("div", {}, view.parts.picture)), view.parts.table, view.parts.save);
  view.show();
  return view;
}

class Growth {
  constructor(page, facts) {
    const canvas = h("canvas");
    Object.assign(this, { page, facts, canvas, change: {}, size: facts.size, parts: { chart: h("div"), picture: h("div"), table: h("div.scroll"), save: h("div"), tokens: h("output.number") } });
    this.tokens = Math.min(facts.context, page.pass?.tokens.length || Math.min(64, facts.context));
    fill(this.parts.picture, (this.said = h("p.soft")), h("div.heat.held", {}, canvas));
  }

  form() {
    const { facts } = this;
    const heads = facts.layers.find((layer) => layer.heads && layer.head_width)?.heads;
    const field = (name, max) => h("label", {}, t(`cache.${name}`), h("input", { type: "number", name, min: name === "kv_heads" ? 1 : 0, max, placeholder: t("cache.as"), title: name === "kv_heads" ? "" : t("cache.none"), oninput: (event) => this.set({ [name]: event.target.value === "" ? null : Number(event.target.value) }) }));
    const slider = h("input", { type: "range", name: "tokens", min: 1, max: facts.context, value: this.tokens, oninput: (event) => ((this.tokens = Number(event.target.value)), this.show()) });
    const sizes = h("select", { name: "size", onchange: (event) => ((this.size = Number(event.target.value)), this.show()) }, [8, 4, 2, 1].map((size) => h("option", { value: size, selected: size === this.size }, String(size))));
    return h("div.controls.narrow", {}, h("label", {}, t("cache.tokens"), slider, this.parts.tokens), heads && field("kv_heads", heads), field("window", facts.context), field("latent", 1 << 16), h("label", {}, t("cache.size"), sizes));
  }

  set(change) {
    this.change = { ...this.change, ...change };
    this.show();
  }

  get designs() {
    const { layers, size } = this.facts;
    const heads = layers.every((layer) => layer.head_width && layer.heads);
    const other = Object.values(this.change).some((one) => one !== null) || this.size !== size;
    return [
      { name: "own", layers, size },
      other && { name: "other", layers: layers.map((layer) => changed(layer, this.change)), size: this.size },
      heads && { name: "mha", layers: layers.map((layer) => changed(layer, { kv_heads: layer.heads })), size },
      heads && { name: "mqa", layers: layers.map((layer) => changed(layer, { kv_heads: 1 })), size },
    ].filter(Boolean);
  }

  show() {
    const { designs, tokens, facts } = this;
    this.parts.tokens.textContent = whole(tokens);
    const places = Array.from({ length: 65 }, (_, i) => Math.round((i * facts.context) / 64));
    const series = designs.map(({ name, layers, size }) => ({ name: t(`cache.${name}`), points: places.map((place) => [place, bytes(layers, size, place)]) }));
    fill(this.parts.chart, chart({ series, label: t("cache.about"), show: readable, binary: true, x: t("cache.tokens") }, { at: tokens, zero: true }), legend(series.map(({ name }) => name)));
    this.picture(designs.find(({ name }) => name === "other") ?? designs[0]);
    const row = ({ name, layers, size }) => h("tr", { "data-design": name }, h("td", {}, t(`cache.${name}`)), h("td", {}, formula(layers, size, tokens)), h("td.right", {}, whole(bytes(layers, size, tokens))), h("td.right", {}, readable(bytes(layers, size, tokens))));
    const more = bytes(facts.layers, facts.size, tokens + 1) - bytes(facts.layers, facts.size, tokens);
    fill(this.parts.table, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("cache.design")), h("th", { scope: "col" }, t("cache.formula")), h("th.right", { scope: "col", colspan: 2 }, t("cache.sum")))), h("tbody", {}, designs.map(row))), h("p.soft", {}, t("cache.next", { bytes: readable(more) })));
    fill(this.parts.save, exports({ csv: () => download("cache.csv", csv([["tokens", ...designs.map(({ name }) => name)], ...places.map((place) => [place, ...designs.map(({ layers, size }) => bytes(layers, size, place))])]), "text/csv") }));
  }

  /** A row for each layer, a column for each token: what is held, by how much of it there is. */
  picture({ layers }) {
    const { tokens } = this;
    const most = Math.max(...layers.map(({ cached }) => cached));
    const values = layers.flatMap(({ cached, window }) => Array.from({ length: tokens }, (_, place) => (place >= tokens - (window ?? tokens) ? cached / most : 0)));
    this.said.textContent = t("cache.picture", { n: whole(tokens) });
    paint(this.canvas, { values, rows: layers.length, columns: tokens, highest: 1, label: this.said.textContent });
  }

  focus(changed) {
    if (changed.has("theme")) this.show();
  }
}

/** The formula with its numbers; layers that keep the same stand together. */
function formula(layers, size, tokens) {
  const alike = new Map();
  for (const { cached, window } of layers) {
    const key = `${cached} · ${whole(Math.min(tokens, window ?? tokens))}`;
    alike.set(key, (alike.get(key) ?? 0) + 1);
  }
  return [...alike].map(([key, count]) => `${count} · ${key} · ${size}`).join(" + ");
}

export default { words, draw };
