// Embeddings: the row of a token, its nearest tokens, a map, and analogies.
import { fill, h, number, visible } from "#see/dom.js";
import { scatter } from "#see/embedding/scatter.js";
import { vector } from "#see/vector.js";
import { t } from "#see/words.js";

const words = {
  en: {
    "view.embedding": "Embedding", "embedding.about": "A token is a row of the table, the same wherever it stands. What its neighbours change comes later.", "embedding.row": "The row of {text}, id {id}", "embedding.length": "Its length is {length}; the mean of all rows is {mean}.",
    "embedding.near": "Nearest rows", "embedding.cosine": "cosine", "embedding.token": "token", "embedding.map": "Map", "embedding.map.text": "tokens of the text", "embedding.map.vocabulary": "all of the vocabulary", "embedding.shares": "The two axes hold {share} of the spread of these rows (principal components).",
    "embedding.analogy": "Analogy: a − b + c", "embedding.go": "What is nearest?", "embedding.example": "king,man,woman", "embedding.analogy.about": "Three words of one token each, every row brought to length one; the three themselves are left out.",
  },
  de: {
    "view.embedding": "Einbettung", "embedding.about": "Ein Token ist eine Zeile der Tabelle, gleich, wo es steht. Was seine Nachbarn ändern, kommt später.", "embedding.row": "Die Zeile von {text}, Nummer {id}", "embedding.length": "Ihre Länge ist {length}; das Mittel aller Zeilen ist {mean}.",
    "embedding.near": "Nächste Zeilen", "embedding.cosine": "Kosinus", "embedding.token": "Token", "embedding.map": "Karte", "embedding.map.text": "Tokens des Textes", "embedding.map.vocabulary": "das ganze Vokabular", "embedding.shares": "Die zwei Achsen halten {share} der Streuung dieser Zeilen (Hauptkomponenten).",
    "embedding.analogy": "Analogie: a − b + c", "embedding.go": "Was ist am nächsten?", "embedding.example": "König,Mann,Frau", "embedding.analogy.about": "Drei Wörter aus je einem Token, jede Zeile auf Länge eins gebracht; die drei selbst bleiben weg.",
  },
};

async function draw(element, { page, check }) {
  const parts = { row: h("div"), map: h("div"), analogy: h("div") };
  fill(element, h("p", {}, t("embedding.about")), h("div.side", {}, parts.row, parts.map), parts.analogy);
  const view = new Embedding(page, parts, check);
  await Promise.all([view.row(), view.map()]);
  view.analogy();
  return view;
}

class Embedding {
  constructor(page, parts, check) {
    Object.assign(this, { page, parts, check, id: null, drawn: null });
  }

  /** The place of the looking token in the text, else the last. */
  get place() {
    const query = this.page.focus.get("query");
    const last = this.page.pass.tokens.length - 1;
    return query === null || query > last ? last : query;
  }

  get token() {
    return this.id ?? this.page.pass.tokens[this.place].id;
  }

  async row() {
    const { token, page } = this;
    if (!page.source.has("embedding", { token })) return fill(this.parts.row);
    const { facts, tensors, checks } = await page.source.get("embedding", { token });
    if (token !== this.token) return;
    this.check(checks);
    const here = page.pass.tokens.findIndex(({ id }) => id === token);
    const most = Math.max(1e-9, ...facts.near.map(({ cosine }) => cosine));
    fill(
      this.parts.row,
      h("h3", {}, t("embedding.row", { text: visible(facts.text), id: facts.id })),
      vector(tensors.row.data, { label: "", key: here < 0 ? null : (i) => ["word", [here, i]] }),
      h("p.soft", {}, t("embedding.length", { length: number(facts.length), mean: number(facts.mean_length) })),
      h("h3", {}, t("embedding.near")), this.list(facts.near, most),
    );
    this.drawn?.choose(this.ids.indexOf(token) < 0 ? null : this.ids.indexOf(token));
  }

  list(near, most) {
    const row = ({ id, text, cosine }) => h("tr", {}, h("th", { scope: "row" }, h("button.token", { onclick: () => this.choose(id), "data-id": id }, visible(text) || String(id))), h("td.right", {}, number(cosine, 3)), h("td", {}, h("span.weight", { style: { width: `${Math.max(0, (6 * cosine) / most)}rem` } })));
    return h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("embedding.token")), h("th.right", { scope: "col" }, t("embedding.cosine")), h("td"))), h("tbody", {}, near.map(row)));
  }

  choose(id) {
    const place = this.page.pass.tokens.findIndex((token) => token.id === id);
    this.id = id;
    if (place >= 0) this.page.focus.set({ query: place });
    this.row();
  }

  async map() {
    const { page } = this;
    const kinds = ["text", "vocabulary"].filter((map) => page.source.has("embedding", { map }));
    const kind = kinds.includes(page.focus.get("map")) ? page.focus.get("map") : "text";
    const { facts, tensors } = await page.source.get("embedding", { map: kind });
    this.ids = facts.ids;
    const texts = facts.texts.map((text, i) => visible(text) || String(facts.ids[i]));
    const text = new Set(page.pass.tokens.map(({ id }) => id));
    const named = facts.ids.flatMap((id, i) => (text.has(id) ? [i] : [])).slice(0, 60);
    const chosen = facts.ids.indexOf(this.token);
    const habits = { over: (i) => page.focus.set({ overQuery: i === null ? null : placeOf(page, facts.ids[i]) }), chosen: (i) => this.choose(facts.ids[i]) };
    this.drawn = scatter({ points: tensors.points.data, texts, named, chosen: chosen < 0 ? null : chosen, label: t("embedding.map") }, habits);
    const chooser = kinds.length > 1 && h("div.controls", {}, h("select", { "data-choice": "map", "aria-label": t("embedding.map"), onchange: (event) => page.focus.set({ map: event.target.value }) }, kinds.map((name) => h("option", { value: name, selected: name === kind }, t(`embedding.map.${name}`)))));
    const share = facts.shares.reduce((a, b) => a + b, 0);
    fill(this.parts.map, h("h3", {}, t("embedding.map")), chooser, this.drawn.element, h("p.soft", {}, t("embedding.shares", { share: `${number(100 * share, 3)} %` })));
  }

  analogy() {
    if (!this.page.live) return;
    const input = h("input", { name: "analogy", placeholder: t("embedding.example"), autocomplete: "off" });
    const panel = h("div", { "aria-live": "polite" });
    const ask = async (event) => {
      event.preventDefault();
      try {
        const { facts } = await this.page.source.get("embedding", { analogy: input.value });
        const [a, b, c] = facts.given.map(({ text }) => visible(text));
        fill(panel, h("p", {}, `${a} − ${b} + ${c} ≈`), this.list(facts.near, facts.near[0]?.cosine ?? 1));
      } catch (error) {
        fill(panel, h("p.failure", { role: "alert" }, error.message));
      }
    };
    fill(this.parts.analogy, h("h3", {}, t("embedding.analogy")), h("p.soft", {}, t("embedding.analogy.about")), h("form.controls", { onsubmit: ask }, h("label", {}, "a, b, c", input), h("button.go", { type: "submit" }, t("embedding.go"))), panel);
  }

  focus(changed) {
    if (changed.has("map")) this.map();
    if (changed.has("theme")) this.drawn?.draw();
    if (!changed.has("query")) return;
    if (this.page.focus.get("query") !== null && this.page.pass.tokens[this.place].id !== this.id) this.id = null;
    this.row();
  }

  destroy() {
    this.page.focus.set({ overQuery: null });
  }
}

function placeOf(page, id) {
  const place = page.pass.tokens.findIndex((token) => token.id === id);
  return place < 0 ? null : place;
}

export default { words, draw };
