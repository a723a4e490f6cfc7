// The decoding tree, and the distribution of what follows any of its nodes.
import { fill, h, marked, number, visible, whole } from "#see/dom.js";
import { csv, download, exports } from "#see/export.js";
import { descending, drawn, entropy } from "#see/sampling.js";
import { drawTree, find, way } from "#see/tree.js";
import { said, t } from "#see/words.js";

const words = {
  en: {
    "view.decode": "Tree", "decode.about": "Every token costs −log p, in nats; Σ is the cost of the way to it. Choose a node for the distribution of what follows.",
    "decode.steps": "Steps", "decode.beams": "Beams", "decode.penalty": "Length penalty", "decode.samples": "Samples", "decode.seed": "Seed", "decode.grow": "Grow the tree", "decode.pruned": "Show what the beams dropped",
    "decode.kept": "followed", "decode.dropped": "dropped by the beams", "decode.ended": "the answer ends here", "decode.way": "Way", "decode.tokens": "Tokens", "decode.total": "Total −log p", "decode.text": "Text",
    "decode.root": "Behind the text", "decode.behind": "Behind {path}", "decode.inside": "See inside here", "decode.temperature": "Temperature", "decode.top_k": "Top-k", "decode.top_p": "Top-p", "decode.all": "all",
    "decode.token": "token", "decode.p": "p of the model", "decode.drawn": "p of a draw", "decode.possible": "{n} of {all} tokens can be drawn, entropy {nats} nats", "decode.check": "the page's distribution is that of the server's sampler", "decode.edited": "The tree is that of the model without the edits of this pass.",
    "decode.rest": "the other {n} tokens",
  },
  de: {
    "view.decode": "Baum", "decode.about": "Jedes Token kostet −log p, in Nats; Σ sind die Kosten des Wegs dorthin. Ein Knoten zeigt die Verteilung dessen, was ihm folgt.",
    "decode.steps": "Schritte", "decode.beams": "Strahlen", "decode.penalty": "Längenstrafe", "decode.samples": "Stichproben", "decode.seed": "Startzahl", "decode.grow": "Baum wachsen lassen", "decode.pruned": "Zeigen, was die Strahlen fallen ließen",
    "decode.kept": "verfolgt", "decode.dropped": "von den Strahlen fallen gelassen", "decode.ended": "die Antwort endet hier", "decode.way": "Weg", "decode.tokens": "Tokens", "decode.total": "Summe −log p", "decode.text": "Text",
    "decode.root": "Hinter dem Text", "decode.behind": "Hinter {path}", "decode.inside": "Hier hineinsehen", "decode.temperature": "Temperatur", "decode.top_k": "Top-k", "decode.top_p": "Top-p", "decode.all": "alle",
    "decode.token": "Token", "decode.p": "p des Modells", "decode.drawn": "p einer Ziehung", "decode.possible": "{n} von {all} Tokens können gezogen werden, Entropie {nats} Nats", "decode.check": "die Verteilung der Seite ist die des Servers", "decode.edited": "Der Baum ist der des Modells ohne die Änderungen dieses Laufs.",
    "decode.rest": "die anderen {n} Tokens",
  },
};

const USUAL = { steps: 8, beams: 3, penalty: 0.6, samples: 2, temperature: 1, seed: 1337 };
const FIELDS = [["steps", 1, 48, 1], ["beams", 1, 8, 1], ["penalty", 0, 10, 0.1], ["samples", 0, 8, 1], ["seed", 0, 2 ** 31, 1]];
const SHOWN = 24;

async function draw(element, { page, check }) {
  const view = new Decoding(page, check);
  fill(element, h("p", {}, t("decode.about")), view.form(), view.parts.note, h("div.scroll", { tabindex: "0", role: "region", "aria-label": t("view.decode") }, view.parts.tree), view.legend(), view.parts.save, h("div.side", {}, h("div.scroll", {}, view.parts.ways), view.parts.node));
  await view.grow();
  return view;
}

class Decoding {
  constructor(page, check) {
    const parts = { note: h("p.soft"), tree: h("div"), ways: h("div"), node: h("section"), save: h("div"), bars: h("div.scroll") };
    Object.assign(this, { page, check, parts, checks: [], pruned: null, turn: 0, asking: 0 });
  }

  get settings() {
    return { ...USUAL, ...this.page.focus.get("decode") };
  }

  set(changes) {
    this.page.focus.set({ decode: { ...this.page.focus.get("decode"), ...changes } });
  }

  form() {
    const now = this.settings;
    const field = ([name, min, max, step]) => h("label", {}, t(`decode.${name}`), h("input", { type: "number", name, min, max, step, value: now[name], required: true, disabled: !this.page.live }));
    const submit = (event) => {
      event.preventDefault();
      const given = Object.fromEntries(FIELDS.map(([name]) => [name, Number(event.target.elements[name].value)]));
      this.set({ ...given, ...this.draws });
      this.page.focus.set({ node: "" });
      this.grow();
    };
    return h("form.controls.narrow", { onsubmit: submit }, FIELDS.map(field), this.page.live && h("button.go", {}, t("decode.grow")));
  }

  legend() {
    const names = { kept: "decode.kept", pruned: "decode.dropped", ended: "decode.ended" };
    const marks = { kept: "●", pruned: "✕", ended: "■" };
    this.box = h("input", { type: "checkbox", onchange: (event) => ((this.pruned = event.target.checked), this.picture()) });
    return h("p.controls", {}, Object.entries(names).map(([fate, name]) => h("span.soft", {}, `${marks[fate]} ${t(name)}`)), h("label", {}, this.box, t("decode.pruned")));
  }

  async grow() {
    const turn = ++this.turn;
    const { facts, checks } = await this.page.source.get("decode", this.settings);
    if (turn !== this.turn) return;
    const { temperature, top_k = null, top_p = null } = this.settings;
    Object.assign(this, { facts, checks, draws: { temperature, top_k, top_p } });
    this.parts.note.textContent = facts.edited ? t("decode.edited") : "";
    this.pruned ??= facts.nodes.length <= 60;
    this.box.checked = this.pruned;
    this.check(checks);
    this.ways();
    this.picture();
    await this.node();
  }

  picture() {
    const { nodes } = this.facts;
    const shown = ({ fate }) => this.pruned || fate !== "pruned";
    const names = { kept: t("decode.kept"), pruned: t("decode.dropped"), ended: t("decode.ended") };
    this.tree = drawTree(this.parts.tree, nodes, { label: t("view.decode"), shown, names, chosen: (node) => this.page.focus.set({ node: this.path(node) }), over: (node) => this.tree?.mark(node ?? this.at, this.at) });
    this.tree.mark(this.at, this.at);
    const rows = nodes.map(({ parent, step, token, text, cost, total, fate, ways }, i) => [i, parent, step, token, text, cost, total, fate, ways.join(" ")]);
    fill(this.parts.save, exports({ svg: () => download("tree.svg", new XMLSerializer().serializeToString(this.tree.svg), "image/svg+xml"), csv: () => download("tree.csv", csv([["node", "parent", "step", "token", "text", "cost", "total", "fate", "ways"], ...rows]), "text/csv") }));
  }

  path(node) {
    return way(this.facts.nodes, node).map((one) => this.facts.nodes[one].token).join(",");
  }

  get at() {
    const path = this.page.focus.get("node", "");
    return find(this.facts.nodes, path ? path.split(",").map(Number) : []) ?? -1;
  }

  ways() {
    const { nodes, ways } = this.facts;
    const last = (name) => nodes.findLastIndex((node) => node.ways.includes(name));
    const row = ({ name, tokens, total, text }) => h("tr", { onpointerenter: () => this.tree.mark(last(name), this.at), onpointerleave: () => this.tree.mark(this.at, this.at) }, h("td", {}, h("button.quiet", { "data-way": name, onclick: () => this.page.focus.set({ node: this.path(last(name)) }) }, said(name))), h("td.right", {}, String(tokens)), h("td.right", {}, number(total, 5)), h("td", {}, h("code", {}, visible(text))));
    fill(this.parts.ways, h("table", {}, h("thead", {}, h("tr", {}, ["way", "tokens", "total", "text"].map((name) => h("th", { scope: "col" }, t(`decode.${name}`))))), h("tbody", {}, ways.map(row))));
  }

  /** The distribution behind the chosen node; the reader's changes of it are computed here, and checked there. */
  async node() {
    const { nodes } = this.facts;
    const node = this.at;
    this.tree.mark(node, node);
    if (node >= 0 && !this.page.live) return fill(this.parts.node);
    const path = this.path(node);
    const turn = ++this.asking;
    const { facts, tensors } = await this.page.source.get("decode", { ...this.settings, path });
    if (turn !== this.asking) return;
    const told = way(nodes, node).map((one) => visible(nodes[one].text)).join(" ");
    Object.assign(this, { logits: tensors.logits.data, order: descending(tensors.logits.data), spelt: new Map(facts.best.map(({ id, text }) => [id, text])) });
    fill(this.parts.node, h("h3", {}, node < 0 ? t("decode.root") : t("decode.behind", { path: told })), this.page.live && h("button", { "data-do": "inside", onclick: () => this.inside(path) }, t("decode.inside")), this.sliders(), this.parts.bars);
    this.bars({ facts, tensors });
  }

  sliders() {
    const most = Math.min(200, this.logits.length);
    const ways = { temperature: [0, 3, 0.05], top_k: [1, most, 1], top_p: [0.01, 1, 0.01] };
    const said = {};
    const tell = () => Object.entries(said).forEach(([name, output]) => (output.textContent = this.draws[name] === null ? t("decode.all") : marked(String(this.draws[name]))));
    const slider = ([name, [min, max, step]]) => {
      said[name] = h("output.number");
      const input = (event) => {
        const value = Number(event.target.value);
        this.draws = { ...this.draws, [name]: (name === "top_k" && value === max) || (name === "top_p" && value === 1) ? null : value };
        tell();
        this.bars();
        clearTimeout(this.waiting);
        this.waiting = setTimeout(() => this.compare(), 250);
      };
      return h("label", {}, t(`decode.${name}`), h("input", { type: "range", name, min, max, step, value: this.draws[name] ?? max, oninput: input }), said[name]);
    };
    const bar = h("div.controls", {}, Object.entries(ways).map(slider));
    tell();
    return bar;
  }

  bars(served = null) {
    const plain = drawn(this.logits, { temperature: 1 }, this.order);
    const now = (this.now = drawn(this.logits, this.draws, this.order));
    const first = [...this.order.subarray(0, SHOWN)].filter((id) => plain[id] > 0);
    const most = Math.max(plain[first[0]], now[first[0]]);
    const bar = (value) => h("div", { style: { width: `${(100 * value) / most}%` } });
    const row = (id) => h("tr", { "data-id": id }, h("td.path", {}, h("code", {}, visible(this.spelt.get(id) ?? String(id)))), h("td.right", {}, number(plain[id])), h("td.right", {}, number(now[id])), h("td.bar.two", {}, bar(plain[id]), bar(now[id])));
    const sum = (shares) => first.reduce((rest, id) => rest - shares[id], 1);
    const count = now.reduce((n, p) => n + (p > 0), 0);
    const rest = this.logits.length - first.length;
    fill(
      this.parts.bars,
      h("p.soft", { "data-possible": count }, t("decode.possible", { n: whole(count), all: whole(now.length), nats: number(entropy(now), 3) })),
      h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("decode.token")), ["p", "drawn"].map((name) => h("th.right", { scope: "col" }, t(`decode.${name}`))), h("td"))), h("tbody", {}, first.map(row), rest > 0 && h("tr", {}, h("td.soft", {}, t("decode.rest", { n: whole(rest) })), h("td.right", {}, number(Math.max(0, sum(plain)))), h("td.right", {}, number(Math.max(0, sum(now)))), h("td")))),
    );
    if (served) this.told(served);
  }

  /** Ask the server's own sampler for the same distribution. */
  async compare() {
    if (!this.page.live) return;
    const { draws } = this;
    const turn = ++this.asking;
    const served = await this.page.source.get("decode", { ...this.settings, ...draws, path: this.path(this.at) });
    if (turn === this.asking && draws === this.draws) this.told(served);
  }

  told({ facts, tensors }) {
    const value = Math.max(...facts.best.map(({ id }, i) => Math.abs(tensors.drawn.data[i] - this.now[id])));
    this.check([...this.checks, { name: t("decode.check"), value, bound: 1e-6, passed: value <= 1e-6 }]);
  }

  async inside(path) {
    const answer = path ? path.split(",").map(Number) : [];
    const { prompt } = this.facts;
    await this.page.look(this.page.session.reads_source ? { source: prompt, target: answer } : { ids: [...prompt, ...answer] });
    this.page.focus.set({ screen: "inside", query: this.page.pass.tokens.length - 1, key: null });
  }

  focus(changed) {
    if (changed.has("node")) return this.node();
  }

  destroy() {
    this.turn = this.asking = -1;
    clearTimeout(this.waiting);
  }
}

export default { words, draw };
