// Attention: all heads small; one head as a heat map with its tokens; one row as numbers.
import { fill, h, number, visible } from "#see/dom.js";
import { csv, download, exports, heatSvg, safetensors, savePng } from "#see/export.js";
import { heatMap, paint } from "#see/heat.js";
import { at } from "#see/safetensors.js";
import { t } from "#see/words.js";

const words = {
  en: { "view.attention": "Attention", "attention.about": "Each row is a token that looks, each column a token that is looked at. A row sums to one.", "attention.of": "Block {layer}, head {head}", "attention.small": "Every head, a row for each block", "attention.over": "{from} gives {to} {value}", "attention.site": "Which attention", "attention.score": "score", "attention.weight": "weight", "attention.value": "weight × length of the value" },
  de: { "view.attention": "Aufmerksamkeit", "attention.about": "Jede Zeile ist ein Token, das blickt, jede Spalte eines, das angesehen wird. Eine Zeile ergibt eins.", "attention.of": "Block {layer}, Kopf {head}", "attention.small": "Alle Köpfe, eine Zeile je Block", "attention.over": "{from} gibt {to} {value}", "attention.site": "Welche Aufmerksamkeit", "attention.score": "Wert vor dem Softmax", "attention.weight": "Gewicht", "attention.value": "Gewicht × Länge des Werts" },
};

async function draw(element, { page, check }) {
  const parts = { controls: h("div.controls"), grid: h("div.scroll"), head: h("div"), row: h("div.scroll") };
  fill(element, h("p", {}, t("attention.about")), parts.controls, h("div.side", {}, h("div", {}, h("h3", {}, t("attention.small")), parts.grid), parts.head, parts.row));
  const view = new Heads(page, parts, check);
  await view.all();
  return view;
}

class Heads {
  constructor(page, parts, check) {
    Object.assign(this, { page, parts, check, turn: 0, map: null });
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

  async all() {
    this.choices();
    const { tensors, checks, facts } = await this.page.source.get("attention", { site: this.site.number });
    this.check(checks);
    const { pictures } = tensors;
    const [, heads, rows, columns] = pictures.shape;
    const cells = facts.layers.flatMap((layer, i) => [
      h("span", {}, String(layer)),
      ...Array.from({ length: heads }, (_, head) => {
        const canvas = h("canvas");
        paint(canvas, { values: at(at(pictures, i), head).data, rows, columns, highest: 255, label: t("attention.of", { layer, head }) });
        return h("button", { "data-layer": layer, "data-head": head, title: `${layer}.${head}`, onclick: () => this.page.focus.set({ layer, head }) }, canvas);
      }),
    ]);
    fill(this.parts.grid, h("div.grid", { style: { "grid-template-columns": `2rem repeat(${heads}, minmax(1.5rem, 4.5rem))` } }, h("span"), Array.from({ length: heads }, (_, head) => h("span", {}, String(head))), cells));
    this.page.focus.set({ keys: this.site.keys });
    await this.one();
  }

  choices() {
    const { sites } = this.page.pass;
    const chooser = sites.length > 1 && h("label", {}, t("attention.site"), h("select", { onchange: (event) => this.page.focus.set({ site: Number(event.target.value) }) }, sites.map((site, i) => h("option", { value: String(i), selected: i === this.site.number }, site.path))));
    fill(this.parts.controls, chooser);
  }

  async one() {
    const turn = ++this.turn;
    const { site, chosen: { layer, head } } = this;
    for (const button of this.parts.grid.querySelectorAll("button")) button.setAttribute("aria-pressed", Number(button.dataset.layer) === layer && Number(button.dataset.head) === head);
    const { tensors, checks } = await this.page.source.get("attention", { site: site.number, layer });
    if (turn !== this.turn) return;
    this.check(checks);
    const pattern = at(tensors.pattern, head);
    const [rows, columns] = pattern.shape;
    const title = t("attention.of", { layer, head });
    const [queries, keys] = [this.page.pass[site.queries], this.page.pass[site.keys]].map((tokens) => tokens.map(({ text }) => visible(text)));
    const said = h("p.number", { "data-over": "" });
    this.map = heatMap(
      { values: pattern.data, rows, columns, highest: 1, label: title },
      { over: (query, key) => this.page.focus.set({ overQuery: query, overKey: key }), chosen: (query, key) => this.page.focus.set({ query, key }) },
    );
    this.map.element.style.width = `min(36rem, 88vw)`;
    this.map.element.style.aspectRatio = `${columns} / ${rows}`;
    Object.assign(this, { said, queries, keys });
    const name = `attention-${layer}-${head}`;
    const ways = {
      png: () => savePng(`${name}.png`, this.map.canvas),
      svg: () => download(`${name}.svg`, heatSvg(this.map.canvas, queries, keys, title), "image/svg+xml"),
      csv: () => download(`${name}.csv`, csv([["", ...keys], ...queries.map((text, i) => [text, ...pattern.data.subarray(i * columns, (i + 1) * columns)])]), "text/csv"),
      safetensors: () => download(`${name}.safetensors`, safetensors({ pattern }), "application/octet-stream"),
    };
    fill(this.parts.head, h("h3", {}, title), this.map.element, said, exports(ways));
    this.mark();
    await this.numbers();
  }

  mark() {
    const { focus } = this.page;
    const query = focus.get("overQuery") ?? focus.get("query");
    const key = focus.get("overKey") ?? focus.get("key");
    this.map?.mark(query, key);
    const both = this.map && query !== null && key !== null && query < this.queries.length && key < this.keys.length;
    if (this.said) this.said.textContent = both ? t("attention.over", { from: this.queries[query], to: this.keys[key], value: number(this.map.value(query, key), 3) }) : " ";
  }

  /** The numbers behind the locked row. */
  async numbers() {
    const query = this.page.focus.get("query");
    if (query === null || !this.page.live) return fill(this.parts.row);
    const { layer, head } = this.chosen;
    const { tensors: { score, weight, value } } = await this.page.source.get("attention", { site: this.site.number, layer, head, query });
    const order = [...weight.data.keys()].sort((a, b) => weight.data[b] - weight.data[a]).slice(0, 40);
    const row = (key) => h("tr", { onpointerenter: () => this.page.focus.set({ overKey: key }) }, h("td", {}, this.keys[key]), [score, weight, value].map(({ data }) => h("td.right", {}, number(data[key]))));
    const heads = ["key", "attention.score", "attention.weight", "attention.value"].map((name, i) => h(i ? "th.right" : "th", { scope: "col" }, t(name)));
    fill(this.parts.row, h("h3", {}, this.queries[query] ?? ""), h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, order.map(row))));
  }

  async focus(changed) {
    if (changed.has("site")) return this.all();
    if (changed.has("layer") || changed.has("head")) return this.one();
    if (changed.has("theme")) this.map?.update();
    this.mark();
    if (changed.has("query")) await this.numbers();
  }

  destroy() {
    this.turn = -1;
    this.page.focus.set({ overQuery: null, overKey: null });
  }
}

export default { words, draw };
