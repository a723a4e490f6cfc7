// Positions: sinusoids and rotations as heat map, clocks and curves; tables and biases as they are.
import { chart, legend } from "#see/chart.js";
import { fill, h, visible } from "#see/dom.js";
import { labelled } from "#see/labelled.js";
import { clocks } from "#see/position/clocks.js";
import words from "#see/position/words.js";
import { at } from "#see/safetensors.js";
import { t } from "#see/words.js";

async function draw(element, { page, check }) {
  const parts = { controls: h("div.controls"), picture: h("div") };
  fill(element, parts.controls, parts.picture);
  const view = new Positions(page, parts, check);
  await view.show();
  return view;
}

class Positions {
  constructor(page, parts, check) {
    Object.assign(this, { page, parts, check, turn: 0, place: 0 });
  }

  /** The looking token and the one looked at; the last and the first where nothing is chosen. */
  get places() {
    const { focus, pass } = this.page;
    const last = pass.tokens.length - 1;
    const within = (place, otherwise) => (place === null || place > last ? otherwise : place);
    return { query: within(focus.get("overQuery") ?? focus.get("query"), last), key: within(focus.get("overKey") ?? focus.get("key"), 0) };
  }

  get asked() {
    const scheme = this.page.focus.get("scheme") ?? 0;
    const whole = { scheme, layer: this.page.focus.get("layer") ?? 0, head: this.page.focus.get("head") ?? 0, ...this.places };
    if (this.page.live && this.rotary) return whole;
    return { scheme, layer: 0, head: 0, query: 0, key: 0 };
  }

  async show() {
    const turn = ++this.turn;
    const { facts, tensors, checks } = await this.page.source.get("position", this.asked);
    if (turn !== this.turn) return;
    if (facts.kind === "rotary" && this.page.live && !this.rotary) {
      this.rotary = true;
      return this.show();
    }
    this.rotary = facts.kind === "rotary";
    this.check(checks);
    Object.assign(this, { facts, tensors });
    const chooser = facts.schemes.length > 1 && h("label", {}, t("position.scheme"), h("select", { "data-choice": "scheme", onchange: (event) => ((this.rotary = false), this.page.focus.set({ scheme: Number(event.target.value) })) }, facts.schemes.map(({ name }, i) => h("option", { value: i, selected: i === facts.number }, name))));
    fill(this.parts.controls, chooser);
    this.draw();
  }

  draw() {
    const { facts } = this;
    const about = h("p", {}, t(`position.kind.${facts.kind}`));
    const drawn = facts.kind === "bias" ? this.bias() : facts.kind === "rotary" ? this.rotation() : this.vectors();
    fill(this.parts.picture, about, drawn);
  }

  /** A table of vectors, with its clocks where it has rates, and the products of its rows. */
  vectors() {
    const { facts, tensors } = this;
    const [places, channels] = tensors.table.shape;
    const texts = Array.from({ length: places }, (_, i) => String(facts.first + i));
    const place = Math.min(this.place, places - 1);
    const map = labelled({ values: tensors.table.data, rows: places, columns: channels, colours: "signed", label: t("position.table") }, { rows: texts, columns: Array.from({ length: channels }, (_, i) => String(i)) }, { over: (row, column) => map.mark(row ?? place, column), chosen: (row) => this.go(row) }, { cell: 8, widest: 560 });
    map.mark(place, null);
    const slider = h("label", {}, t("position.place"), h("input", { type: "range", min: 0, max: places - 1, value: place, "data-choice": "place", oninput: (event) => this.go(Number(event.target.value)) }), h("output", {}, String(facts.first + place)));
    this.lower = h("div");
    this.map = map;
    this.output = slider.querySelector("output");
    this.below();
    return h("div.side", {}, h("div", {}, h("h3", {}, t(facts.kind === "distances" ? "position.distances" : "position.table")), map.element, h("div.controls", {}, slider)), this.lower);
  }

  below() {
    const { facts, tensors, place } = this;
    const sines = "rates" in tensors;
    const row = at(tensors.products, place).data;
    fill(
      this.lower,
      sines && [h("h3", {}, t("position.clocks")), clocks(tensors.rates.data, [{ place, colour: "var(--look)", name: String(place) }]), h("p", {}, t("position.shift"))],
      facts.kind !== "onehot" && [h("h3", {}, t("position.products", { place: facts.first + place })), chart({ series: [series("", row, facts.first)], label: t("position.products", { place: facts.first + place }), x: t("position.across.k") }, { at: facts.first + place })],
    );
  }

  go(place) {
    this.place = place;
    this.output.textContent = String(this.facts.first + place);
    this.map.mark(place, null);
    const slider = this.parts.picture.querySelector("[data-choice=place]");
    slider.value = place;
    this.below();
  }

  rotation() {
    const { facts, tensors, places } = this;
    const text = (place) => `${place} ${visible(this.page.token("tokens", place))}`;
    const hands = [{ place: places.query, colour: "var(--look)", name: text(places.query) }, { place: places.key, colour: "var(--seen)", name: text(places.key) }];
    const between = places.query - places.key;
    const names = { query: text(places.query), key: text(places.key) };
    return [
      h("h3", {}, t("position.clocks")), h("p.soft", {}, t("position.hands", names)), clocks(tensors.rates.data, hands),
      tensors.curve && [h("h3", {}, t("position.score", names)), h("p.soft", {}, `${facts.key}, ${t("position.head", { head: facts.head })}`), chart({ series: [series("", tensors.curve.data, 0)], label: t("position.score", names), x: t("position.across.distance") }, { at: between >= 0 && between < facts.places ? between : null })],
    ];
  }

  bias() {
    const { facts, tensors } = this;
    const lines = Array.from({ length: facts.heads }, (_, head) => series(t("position.head", { head }), at(tensors.bias, head).data, facts.first));
    return [h("h3", {}, t("position.bias")), facts.by_key && h("p.note", {}, t("position.bykey")), chart({ series: lines, label: t("position.bias"), x: t("position.across.offset") }, { at: 0 }), legend(lines.map(({ name }) => name))];
  }

  focus(changed) {
    const moved = ["layer", "head", "query", "key"].some((name) => changed.has(name));
    if (changed.has("scheme") || (this.rotary && this.page.live && moved)) return this.show();
    if (changed.has("theme")) this.draw();
    else if (this.rotary && (changed.has("overQuery") || changed.has("overKey"))) this.draw();
  }

  destroy() {
    this.turn = -1;
  }
}

/** A row of numbers as a line of a chart. */
function series(name, values, first) {
  return { name, points: Array.from(values, (value, i) => [first + i, value]) };
}

export default { words, draw };
