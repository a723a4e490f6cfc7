// Attention: all heads small; one head as a heat map, as lines or as bars; one row as numbers.
import { bars } from "#see/attention/bars.js";
import { choices, controls, NAMES } from "#see/attention/controls.js";
import { grid } from "#see/attention/grid.js";
import { headChips, lines } from "#see/attention/lines.js";
import { edges, shares } from "#see/attention/measure.js";
import { chooser, most, second } from "#see/attention/pair.js";
import { tiles } from "#see/attention/tiles.js";
import words from "#see/attention/words.js";
import { fill, h, number, visible } from "#see/dom.js";
import { csv, download, exports, heatSvg, safetensors, savePng } from "#see/export.js";
import { labelled } from "#see/labelled.js";
import { at } from "#see/safetensors.js";
import { t } from "#see/words.js";

/** So many lines are drawn at most, of all heads together. */
const MOST = 4000;
/** Tokens of a text whose patterns are drawn whole, as the server has it. */
const LONG = 2048;

async function draw(element, { page, check }) {
  const parts = { about: h("p"), controls: h("div.controls"), grid: h("div.scroll"), head: h("div"), row: h("div.scroll") };
  fill(element, parts.about, parts.controls, h("div.side", {}, h("div", {}, h("h3", {}, t("attention.small")), parts.grid), parts.head, parts.row));
  const view = new Heads(page, parts, check);
  await view.all();
  return view;
}

class Heads {
  constructor(page, parts, check) {
    Object.assign(this, { page, parts, check, turn: 0, drawn: null, other: null });
  }

  get site() {
    const number = Math.min(this.page.focus.get("site", 0), this.page.pass.sites.length - 1);
    return { number, ...this.page.pass.sites[number] };
  }

  get chosen() {
    const { layers, heads } = this.site;
    const layer = this.page.focus.get("layer");
    return { layer: layers.includes(layer) ? layer : layers[0], head: Math.min(this.page.focus.get("head", 0), heads - 1) };
  }

  isLong({ queries, keys }) {
    return this.page.pass[queries].length * this.page.pass[keys].length > LONG ** 2;
  }

  texts(stream) {
    return this.page.pass[stream].map(({ text }) => visible(text));
  }

  async all() {
    const turn = ++this.turn;
    const { site } = this;
    const small = this.page.source.get("attention", { site: site.number });
    if (!this.isLong(site)) this.page.source.get("attention", { site: site.number, layer: this.chosen.layer }).catch(() => null); // on its way meanwhile
    const { tensors, checks, facts } = await small;
    if (turn !== this.turn) return;
    this.check(checks);
    const how = this.page.comparing ? { colours: "signed", highest: greatest(tensors.pictures.data) } : { highest: 255 };
    this.press = grid(this.parts.grid, tensors.pictures, facts.layers, how, {
      chosen: (layer, head) => this.page.focus.set({ layer, head }),
      twice: (layer, head) => this.page.lab.toggle({ at: `${site.path.replace("*", layer)}.mixed`, op: "zero", head }),
    });
    this.page.focus.set({ keys: site.keys });
    await this.one();
  }

  /** One block: its patterns are asked for, then drawn as the reader chose. */
  async one() {
    const turn = ++this.turn;
    const { site, chosen: { layer, head } } = this;
    this.press(layer, head);
    const [row, column] = this.page.focus.get("tile", [null, null]);
    const long = this.isLong(site);
    const { facts, tensors, checks } = await this.page.source.get("attention", long ? { site: site.number, layer, head, row, column } : { site: site.number, layer });
    if (turn !== this.turn) return;
    this.check(checks);
    if (long) return tiles(this, facts, tensors);
    const beside = second(this.page, site);
    const other = beside && (await this.page.source.get("attention", { site: site.number, layer: beside.layer })).tensors;
    if (turn !== this.turn) return;
    this.other = other && { ...beside, ...other };
    // Numbers that the page remembers are not written into: the shown head may be turned.
    Object.assign(this, { pattern: { ...tensors.pattern, data: tensors.pattern.data.slice() }, lengths: tensors.lengths, queries: this.texts(site.queries), keys: this.texts(site.keys) });
    this.picture();
    await this.numbers();
  }

  /** Of the shown head what it is with another scale or base, before the whole pass has run; the last wish alone is asked. */
  async turned() {
    const asked = this.page.focus.get("overTurned");
    const quick = this.page.pass.quick.includes(this.site.path.replace("*", this.chosen.layer));
    if (!asked || !quick || !this.pattern || this.page.comparing || this.isLong(this.site)) return;
    this.wish = asked;
    if (this.asking) return;
    this.asking = true;
    try {
      for (let one = asked; one; one = this.wish === one ? null : this.wish) {
        const { turn, site: { number: site }, chosen: { layer, head } } = this;
        const { tensors: { pattern } } = await this.page.source.get("attention", { site, layer, head, ...one });
        if (turn !== this.turn || this.page.focus.get("overTurned") === null) return;
        at(this.pattern, head).data.set(pattern.data);
        this.again();
      }
    } catch {
      // The pass is not held any more: the whole pass shows it.
    } finally {
      this.asking = false;
    }
  }

  /** Other numbers in the same drawing; a heat map stays the same element. */
  again() {
    const now = choices(this.page, this.site);
    if (now.drawing !== "map") return this.picture();
    this.measure(now);
    this.drawn.update({ values: this.share.values });
    this.mark();
  }

  /** Take the shares that are drawn; returns whether they are the mean of the heads. */
  measure(now) {
    const mean = now.mean && now.drawing !== "lines" && this.site.heads > 1;
    this.share = shares(this.pattern, this.lengths, { head: mean ? null : this.chosen.head, ...now });
    return mean;
  }

  picture() {
    const { site, chosen: { layer, head } } = this;
    const now = choices(this.page, site);
    fill(this.parts.controls, controls(this.page, site));
    this.parts.about.textContent = this.page.comparing ? t("attention.difference") : t(site.queries === site.keys ? "attention.about" : "attention.align");
    const mean = this.measure(now);
    this.how = { colours: now.colours, highest: this.page.comparing ? greatest(this.share.values) : 1 };
    this.title = t(mean ? "attention.mean" : "attention.of", { layer, head });
    const said = (this.said = h("p.number", { "data-over": "" }));
    const note = now.withoutFirst && h("p", { "data-note": "first" }, t("attention.hidden"));
    fill(this.parts.head, h("h3", {}, this.title), note, this[now.drawing](now), said, exports(this.ways(layer, mean ? "mean" : head)));
    this.mark();
  }

  get habits() {
    const { focus } = this.page;
    return { over: (query, key) => focus.set({ overQuery: query, overKey: key }), chosen: (query, key) => focus.set({ ...(query !== null && { query }), ...(key !== null && { key }) }), twice: (query, key) => this.mask(query, key) };
  }

  /** Hide one key from one query of the shown head, or show it again. */
  mask(query, key) {
    const { site, page, chosen: { layer, head } } = this;
    const scores = `${site.path.replace("*", layer)}.scores`;
    if (scores in page.pass.shapes) return page.lab.toggle({ at: scores, op: "mask", position: query, head, key });
  }

  map() {
    this.drawn = labelled({ ...this.share, ...this.how, label: this.title }, { rows: this.queries, columns: this.keys }, this.habits);
    return this.drawn.element;
  }

  lines(now) {
    const { site, chosen: { layer, head } } = this;
    const also = this.page.focus.get("also", []);
    const heads = [head, ...also.filter((one) => one !== head && one < site.heads)];
    const each = Math.floor(MOST / heads.length);
    const drawn = heads.map((one) => ({ head: one, name: `${layer}.${one}`, share: one === head ? this.share : shares(this.pattern, this.lengths, { ...now, head: one }) }));
    const beside = this.other && { head: this.other.head, name: `${this.other.layer}.${this.other.head}`, share: shares(this.other.pattern, this.other.lengths, { ...now, head: this.other.head }) };
    const panel = (ones, label) => lines({ heads: ones.map((one) => ((one.edges = edges(one.share, now.mass, each)), one)), queries: this.queries, keys: this.keys, label }, this.habits);
    const panels = [panel(drawn, this.title), ...(beside ? [panel([beside], t("attention.of", this.other))] : [])];
    const where = h("div");
    const mark = (query, key) => {
      for (const one of panels) one.mark(query, key);
      fill(where, query !== null && [h("p.soft", {}, t("attention.where", { from: this.queries[query] })), most([...drawn, ...(beside ? [beside] : [])], query, this.keys)]);
    };
    this.drawn = { element: panels[0].element, mark, count: panels[0].count };
    const toggle = (one) => {
      const left = heads.includes(one) ? heads.filter((other) => other !== one) : [...heads, one];
      this.page.focus.set({ also: left, ...(one === head && left.length && { head: left[0] }) });
    };
    const capped = drawn.some((one) => one.edges.length === each);
    const slider = h("input", { type: "range", min: 0.05, max: 1, step: 0.05, value: now.mass, "data-choice": "mass", onchange: (event) => this.page.focus.set({ mass: Number(event.target.value) }) });
    return [
      h("div.controls", {}, h("label", {}, t("attention.mass", { mass: number(now.mass, 2) }), slider), h("span.soft", {}, t(capped ? "attention.capped" : "attention.count", { count: number(this.drawn.count) }))),
      h("div.controls", {}, site.heads > 1 && headChips(site.heads, heads, toggle, t("attention.heads")), chooser(this.page, site)),
      h("div.scroll.side", {}, h("figure", {}, beside && h("figcaption.soft", {}, this.title), panels[0].element), beside && h("figure", { "data-beside": beside.name }, h("figcaption.soft", {}, t("attention.of", this.other)), panels[1].element)),
      where,
    ];
  }

  bars() {
    const query = this.query ?? this.share.rows - 1;
    const { columns, values } = this.share;
    this.drawn = bars(
      { shares: values.subarray(query * columns, (query + 1) * columns), keys: this.keys, label: t("attention.row", { from: this.queries[query] }), head: [t("key"), t("attention.bar"), t("attention.share")].join("|") },
      { over: (key) => this.page.focus.set({ overKey: key }), chosen: (key) => this.page.focus.set({ key }) },
    );
    return h("div.scroll", {}, this.drawn.element);
  }

  /** The looking token: the one under the pointer, else the locked one. */
  get query() {
    const { focus } = this.page;
    const query = focus.get("overQuery") ?? focus.get("query");
    return query !== null && query < this.queries.length ? query : null;
  }

  mark() {
    const { focus } = this.page;
    const key = focus.get("overKey") ?? focus.get("key");
    this.drawn?.mark(this.query, key);
    const both = this.drawn && this.query !== null && key !== null && key < this.keys.length;
    this.said.textContent = both ? t("attention.over", { from: this.queries[this.query], to: this.keys[key], value: number(this.share.values[this.query * this.share.columns + key], 3) }) : " ";
  }

  ways(layer, head) {
    const name = `attention-${layer}-${head}`;
    const { queries, keys, title, share: { values, rows, columns } } = this;
    const canvas = () => labelled({ values, rows, columns, ...this.how, label: title }, { rows: queries, columns: keys }, {}).canvas;
    return {
      png: () => savePng(`${name}.png`, canvas()),
      svg: () => download(`${name}.svg`, heatSvg(canvas(), queries, keys, title), "image/svg+xml"),
      csv: () => download(`${name}.csv`, csv([["", ...keys], ...queries.map((text, i) => [text, ...values.subarray(i * columns, (i + 1) * columns)])]), "text/csv"),
      safetensors: () => download(`${name}.safetensors`, safetensors({ pattern: { shape: [rows, columns], data: values } }), "application/octet-stream"),
    };
  }

  /** The numbers behind the locked row. */
  async numbers() {
    const query = this.page.focus.get("query");
    const causal = choices(this.page, this.site).measure === "causal";
    if (query === null || query >= this.queries.length || !this.page.live) return fill(this.parts.row);
    const { turn, site: { number: site }, chosen: { layer, head } } = this;
    const { tensors } = await this.page.source.get("attention", { site, layer, head, query, causal: causal || null });
    if (turn !== this.turn || query !== this.page.focus.get("query")) return;
    const shown = ["score", "weight", "value", "effect"].filter((name) => name in tensors);
    const size = (key) => Math.abs((tensors.effect ?? tensors.weight).data[key]) || 0;
    const order = [...tensors.weight.data.keys()].sort((a, b) => size(b) - size(a)).slice(0, 40);
    const row = (key) => h("tr", { onpointerenter: () => this.page.focus.set({ overKey: key }) }, h("td", {}, this.keys[key]), shown.map((name) => h("td.right", {}, number(tensors[name].data[key]))));
    const heads = ["key", ...shown.map((name) => `attention.${name}`)].map((name, i) => h(i ? "th.right" : "th", { scope: "col" }, t(name)));
    fill(this.parts.row, h("h3", {}, this.queries[query]), h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, order.map(row))));
  }

  async focus(changed) {
    if (changed.has("site")) return this.all();
    if (changed.has("layer") || changed.has("head") || changed.has("beside") || changed.has("tile")) return this.one();
    if (!this.pattern) return;
    if (changed.has("overTurned")) return this.turned();
    const bars = choices(this.page, this.site).drawing === "bars" && (changed.has("query") || changed.has("overQuery"));
    if (bars || changed.has("mass") || [...changed].some((name) => NAMES.has(name))) this.picture();
    else this.mark();
    if (changed.has("query") || changed.has("measure")) await this.numbers();
  }

  destroy() {
    this.turn = -1;
    this.page.focus.set({ overQuery: null, overKey: null });
  }
}

const greatest = (values) => values.reduce((most, value) => (Math.abs(value) > most ? Math.abs(value) : most), 0) || 1;

export default { words, draw };
