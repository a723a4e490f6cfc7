// Every number of the model: by kind, by layer, by head, and each matrix itself; and what conventions count.
import { counts, FILE, LECTURE, pieces, total } from "#see/counting.js";
import { fill, h, marked, whole } from "#see/dom.js";
import { csv, download, exports } from "#see/export.js";
import { drawMatrix } from "#see/matrix.js";
import { treemap } from "#see/treemap.js";
import { t } from "#see/words.js";

const words = {
  en: {
    "view.parameters": "Parameters", "parameters.of": "Count", "parameters.own": "this model", "parameters.gpt3": "GPT-3 (175B)", "parameters.tied": "a tied head adds nothing", "parameters.vectors": "biases and norms", "parameters.positions": "tables of positions", "parameters.output_per_head": "output matrix per head",
    "parameters.file": "As a file holds it", "parameters.lecture": "As lectures count it", "parameters.total": "{numbers} numbers in {matrices} matrices", "parameters.all": "All kinds", "parameters.layer": "Block {n}", "parameters.head": "Head {n}", "parameters.whole": "The whole matrix",
    "parameters.name": "Part", "parameters.shape": "Shape", "parameters.copies": "How many", "parameters.numbers": "Numbers", "parameters.share": "Share", "parameters.number": "Number {n} of {all}",
    "parameters.cell": "row {row}, column {column}: {value}", "parameters.extreme": "from row {row}, column {column}: {value} has the greatest size", "parameters.coarse": "Each cell stands for {rows} × {columns} numbers and shows the one of the greatest size. Click for the numbers themselves.", "parameters.mean": "mean", "parameters.deviation": "standard deviation", "parameters.norm": "length", "parameters.broken": "{n} numbers that are not finite", "parameters.histogram": "How often each size stands in the matrix, from minus {most} to {most}", "parameters.back": "The whole matrix again", "parameters.offline": "The numbers of a matrix are not saved with a page.",
  },
  de: {
    "view.parameters": "Parameter", "parameters.of": "Gezählt wird", "parameters.own": "dieses Modell", "parameters.gpt3": "GPT-3 (175B)", "parameters.tied": "ein geteilter Kopf zählt nicht", "parameters.vectors": "Bias und Normen", "parameters.positions": "Tabellen der Positionen", "parameters.output_per_head": "Ausgabematrix je Kopf",
    "parameters.file": "Wie eine Datei sie hält", "parameters.lecture": "Wie Vorlesungen zählen", "parameters.total": "{numbers} Zahlen in {matrices} Matrizen", "parameters.all": "Alle Arten", "parameters.layer": "Block {n}", "parameters.head": "Kopf {n}", "parameters.whole": "Die ganze Matrix",
    "parameters.name": "Teil", "parameters.shape": "Form", "parameters.copies": "Wie viele", "parameters.numbers": "Zahlen", "parameters.share": "Anteil", "parameters.number": "Nummer {n} von {all}",
    "parameters.cell": "Zeile {row}, Spalte {column}: {value}", "parameters.extreme": "ab Zeile {row}, Spalte {column}: {value} ist am größten", "parameters.coarse": "Jede Zelle steht für {rows} × {columns} Zahlen und zeigt die größte. Ein Klick zeigt die Zahlen selbst.", "parameters.mean": "Mittel", "parameters.deviation": "Standardabweichung", "parameters.norm": "Länge", "parameters.broken": "{n} Zahlen, die nicht endlich sind", "parameters.histogram": "Wie oft jede Größe in der Matrix steht, von minus {most} bis {most}", "parameters.back": "Wieder die ganze Matrix", "parameters.offline": "Die Zahlen einer Matrix werden mit einer Seite nicht gespeichert.",
  },
};


async function draw(element, { page, check }) {
  const payload = await page.model.get("parameters");
  check(payload.checks);
  const view = new Counting(page, payload, check);
  fill(element, view.form(), view.parts.total, view.parts.way, view.parts.map, h("div.side", {}, h("div.scroll", {}, view.parts.table), view.parts.matrix), view.parts.save);
  await view.show();
  return view;
}

class Counting {
  constructor(page, { facts, checks }, check) {
    const parts = { total: h("p", { "data-total": "" }), way: h("nav.controls", { "aria-label": t("parameters.name") }), map: h("div"), table: h("div"), matrix: h("section"), save: h("div") };
    Object.assign(this, { page, facts, checks, check, parts, turn: 0, convention: { ...FILE }, example: false });
  }

  get matrices() {
    const { matrices, example } = this.facts;
    if (!this.example) return matrices;
    // Its blocks are equal: they are told apart here, so that the server sends one.
    return example.flatMap((one) => (one.copies === 1 ? one : Array.from({ length: one.copies }, (_, layer) => ({ ...one, layer, copies: 1 }))));
  }

  get part() {
    return this.page.focus.get("part", {});
  }

  go(part) {
    this.page.focus.set({ part });
  }

  form() {
    const source = h("select", { name: "of", onchange: (event) => ((this.example = event.target.value === "gpt3"), this.go({}), this.show()) }, ["own", "gpt3"].map((name) => h("option", { value: name }, t(`parameters.${name}`))));
    this.boxes = Object.keys(FILE).map((name) => h("input", { type: "checkbox", name, checked: this.convention[name], onchange: (event) => this.count({ [name]: event.target.checked }) }));
    const preset = (name, convention) => h("button.quiet", { "data-convention": name, onclick: () => this.count(convention) }, t(`parameters.${name}`));
    return h("div.controls", {}, h("label", {}, t("parameters.of"), source), this.boxes.map((box) => h("label", {}, box, t(`parameters.${box.name}`))), preset("file", FILE), preset("lecture", LECTURE));
  }

  count(changes) {
    Object.assign(this.convention, changes);
    for (const box of this.boxes) box.checked = this.convention[box.name];
    this.show();
  }

  /** What stands at the level that is looked at, the greatest first. */
  items() {
    const { kind, layer, path } = this.part;
    const kept = this.matrices.filter((one) => counts(one, this.convention) && (!kind || one.kind === kind) && (layer === undefined || one.layer === layer) && (!path || one.path === path));
    const group = (list, key, name, next) => {
      const groups = new Map();
      for (const one of list) groups.set(key(one), [...(groups.get(key(one)) ?? []), one]);
      return [...groups].map(([value, own]) => ({ name: name(value), own, size: own.reduce((sum, one) => sum + one.numel * one.copies, 0), part: next(value, own), group: own[0].kind.replace("encoder.", "").split(".")[0] }));
    };
    const leaf = (own) => (own.length === 1 ? { kind: own[0].kind, layer: own[0].layer ?? undefined, path: own[0].path } : null);
    if (!kind) return group(kept, (one) => one.kind, (value) => value, (value, own) => leaf(own) ?? { kind: value });
    if (kept.length > 1) return group(kept, (one) => one.layer, (value) => t("parameters.layer", { n: value }), (value, own) => leaf(own) ?? { kind, layer: value });
    const [one] = kept;
    if (!one || one.heads === 1) return [];
    return Array.from({ length: one.heads }, (_, head) => ({ name: t("parameters.head", { n: head }), own: [one], size: one.numel / one.heads, part: { ...this.part, path: one.path, head }, group: one.kind.replace("encoder.", "").split(".")[0] }));
  }

  async show() {
    const { numbers, matrices } = total(this.matrices, this.convention);
    this.parts.total.textContent = t("parameters.total", { numbers: whole(numbers), matrices: whole(matrices) });
    const items = this.items().sort((a, b) => b.size - a.size);
    const share = (size) => `${marked(((100 * size) / numbers).toFixed(size / numbers < 0.1 ? 2 : 1))} %`;
    const shown = items.map((item) => ({ ...item, about: `${whole(item.size)} · ${share(item.size)}` }));
    this.breadcrumbs();
    fill(this.parts.map, items.length > 1 && treemap(shown, t("view.parameters"), ({ part }) => this.go(part), { width: Math.min(1200, this.parts.map.clientWidth || 960), height: items[0].part.head === undefined ? 420 : 72 }));
    const cut = ({ own: [one] }) => one.shape.map((size, axis) => (axis === one.axis ? size / one.heads : size));
    const alike = (item) => (item.part.head === undefined ? same(item) : cut(item).join(" × "));
    const same = ({ own }) => (own.every((one) => one.shape.join() === own[0].shape.join()) ? own[0].shape.join(" × ") : "");
    const many = ({ own }) => own.reduce((sum, one) => sum + one.copies, 0);
    const row = (item) => h("tr", {}, h("td", {}, h("button.quiet", { "data-part": item.name, "aria-pressed": this.part.head !== undefined && this.part.head === item.part.head, onclick: () => this.go(item.part) }, item.name)), h("td", {}, alike(item)), h("td.right", {}, whole(many(item))), h("td.right", {}, whole(item.size)), h("td.right", {}, share(item.size)));
    const columns = ["name", "shape", "copies", "numbers", "share"].map((name, i) => h(i > 1 ? "th.right" : "th", { scope: "col" }, t(`parameters.${name}`)));
    fill(this.parts.table, items.length > 0 && h("table", {}, h("thead", {}, h("tr", {}, columns)), h("tbody", {}, items.map(row))));
    const rows = this.matrices.map((one) => [one.path, one.kind, one.sort, one.layer ?? "", one.shape.join("x"), one.heads, one.copies, one.tied, one.numel * one.copies, pieces(one, this.convention), counts(one, this.convention)]);
    fill(this.parts.save, exports({ csv: () => download("parameters.csv", csv([["path", "kind", "sort", "block", "shape", "heads", "copies", "tied", "numbers", "matrices", "counted"], ...rows]), "text/csv") }));
    await this.matrix();
  }

  breadcrumbs() {
    const { kind, layer, path, head } = this.part;
    const steps = [[t("parameters.all"), {}], kind && [kind, { kind }], layer !== undefined && [t("parameters.layer", { n: layer }), { kind, layer }], head !== undefined && [t("parameters.head", { n: head }), { kind, layer, path, head }]].filter(Boolean);
    fill(this.parts.way, steps.map(([name, part], i) => [i > 0 && h("span.soft", { "aria-hidden": "true" }, "›"), h("button.quiet", { disabled: i === steps.length - 1, onclick: () => this.go(part) }, name)]));
  }

  /** The numbers of the tensor that is chosen. */
  async matrix() {
    const { path, head = null, row = null, column = null, of = 0 } = this.part;
    const turn = ++this.turn;
    const about = path && !this.example && this.matrices.find((one) => one.path === path);
    if (!about) return fill(this.parts.matrix);
    if (!this.page.live) return fill(this.parts.matrix, h("p.soft", {}, t("parameters.offline")));
    const payload = await this.page.model.get("parameters", { matrix: path.replace("*", of), head, row, column });
    if (turn !== this.turn) return;
    this.check([...this.checks, ...payload.checks]);
    const picture = h("div");
    const many = path.includes("*") && h("label", {}, t("parameters.number", { n: "", all: about.copies }), h("input", { type: "number", min: 0, max: about.copies - 1, value: of, onchange: (event) => this.go({ ...this.part, of: Number(event.target.value) }) }));
    fill(this.parts.matrix, h("div.controls.narrow", {}, many, row !== null && h("button.quiet", { onclick: () => this.go({ ...this.part, row: null, column: null }) }, t("parameters.back"))), picture);
    const title = head === null ? payload.facts.matrix : `${payload.facts.matrix}, ${t("parameters.head", { n: head })}`;
    this.map = drawMatrix(picture, payload, title, (r, c) => this.go({ ...this.part, row: r, column: c }));
  }

  focus(changed) {
    if (changed.has("part")) return this.show();
  }

  destroy() {
    this.turn = -1;
  }
}

export default { words, draw };
