// One head at one token, step by step, with the real operands.
import { fill, h, number, visible } from "#see/dom.js";
import { explained, inline } from "#see/explain.js";
import { at } from "#see/safetensors.js";
import { vector } from "#see/vector.js";
import { t } from "#see/words.js";
import words from "#see/qkv/words.js";

const SHOWN = 12;

async function draw(element, { page, check }) {
  const parts = { controls: h("div.controls"), steps: h("div") };
  fill(element, h("p", {}, t("qkv.about")), parts.controls, parts.steps);
  const view = new Steps(page, parts, check);
  await view.show();
  return view;
}

class Steps {
  constructor(page, parts, check) {
    Object.assign(this, { page, parts, check, turn: 0, channel: 0, whole: false });
  }

  get site() {
    const { sites } = this.page.pass;
    const number = Math.min(this.page.focus.get("site", 0), sites.length - 1);
    return { number, ...sites[number] };
  }

  get asked() {
    const { focus } = this.page;
    const { number, layers, heads, queries } = this.site;
    const layer = focus.get("layer");
    const query = focus.get("query");
    const last = this.page.pass[queries].length - 1;
    return { site: number, layer: layers.includes(layer) ? layer : layers[0], head: Math.min(focus.get("head", 0), heads - 1), query: query === null || query > last ? last : query };
  }

  choices() {
    const { asked, site } = this;
    const choose = (name, values, label) => h("label", {}, t(label), h("select", { "data-choice": name, onchange: (event) => this.page.focus.set({ [name]: Number(event.target.value) }) }, values.map(([value, text]) => h("option", { value, selected: value === asked[name] }, text))));
    const count = (n) => Array.from({ length: n }, (_, i) => [i, String(i)]);
    fill(
      this.parts.controls,
      this.page.pass.sites.length > 1 && choose("site", this.page.pass.sites.map(({ path }, i) => [i, path]), "attention.site"),
      choose("layer", site.layers.map((layer) => [layer, String(layer)]), "layer"),
      choose("head", count(site.heads), "head"),
      choose("query", this.page.pass[site.queries].map(({ text }, i) => [i, `${i} ${visible(text)}`]), "query"),
    );
  }

  async show() {
    const turn = ++this.turn;
    const { asked, page } = this;
    this.choices();
    if (!page.source.has("qkv", asked)) {
      this.check([]);
      return fill(this.parts.steps, h("p", {}, t("qkv.unsaved")));
    }
    const { facts, tensors, checks } = await page.source.get("qkv", asked);
    if (turn !== this.turn) return;
    this.check(checks);
    Object.assign(this, { facts, tensors, keys: page.pass[this.site.keys].map(({ text }) => visible(text)) });
    this.draw();
  }

  /** The key that is looked at: the chosen one, else the one with most weight. */
  get key() {
    const key = this.page.focus.get("key");
    if (key !== null && key < this.keys.length) return key;
    const weight = this.tensors.pattern.data;
    return weight.indexOf(Math.max(...weight));
  }

  draw() {
    const steps = this.facts.notes.includes("recurrent") ? [this.mixed] : [this.query, this.keysStep, this.scores, this.pattern, this.mixed, this.out];
    fill(this.parts.steps, this.facts.notes.map((note) => h("p.note", { "data-note": note }, t(`qkv.note.${note}`))), h("ol.steps", {}, steps.map((step) => h("li", { "data-step": step.name }, step.call(this)))));
  }

  choose(channel) {
    this.channel = channel;
    this.draw();
  }

  name(part) {
    return `${this.facts.path}.${part}`;
  }

  query() {
    const { facts, tensors } = this;
    const { head, query, width, rotates } = facts;
    const channel = Math.min(this.channel, width - 1);
    const from = (i) => [facts.q_from, [query, head * width + i]];
    const turned = rotates !== null;
    return [
      h("h3", {}, t("qkv.query")), h("p.math", {}, t(turned ? "qkv.query.turned" : "qkv.query.formula")),
      vector(tensors.input.data, { label: t("qkv.x"), key: (i) => [facts.input, [query, i]] }),
      turned && vector(tensors.unturned.data, { label: "x · W_q", key: from, chosen: (i) => this.choose(i), now: channel }),
      vector(tensors.q.data, { label: "q", key: (i) => [this.name("q"), [head, query, i]], chosen: (i) => this.choose(i), now: channel }),
      inline(...from(channel), 4), turned && inline(this.name("q"), [head, query, channel], 4),
    ];
  }

  keysStep() {
    const { facts, tensors, key } = this;
    const shared = Math.floor((facts.head * this.page.pass.shapes[this.name("k")][1]) / this.site.heads);
    return [
      h("h3", {}, t("qkv.keys", { key: this.keys[key] })), h("p.math", {}, t(facts.rotates !== null ? "qkv.keys.turned" : "qkv.keys.formula")),
      vector(at(tensors.k, key).data, { label: "k", key: (i) => [this.name("k"), [shared, key, i]], chosen: (i) => this.choose(i), now: this.channel }),
      inline(this.name("k"), [shared, key, Math.min(this.channel, tensors.k.shape[1] - 1)], 4),
    ];
  }

  /** A table of keys, those with most weight first. */
  table(columns, values) {
    const weight = this.tensors.pattern.data;
    const order = [...weight.keys()].sort((a, b) => weight[b] - weight[a]);
    const rows = this.whole ? order : order.slice(0, SHOWN);
    if (!rows.includes(this.key)) rows.push(this.key);
    const row = (key) => h("tr", { "data-key": key, class: key === this.key ? "chosen" : null, onclick: () => this.page.focus.set({ key }), onpointerenter: () => this.page.focus.set({ overKey: key }), onpointerleave: () => this.page.focus.set({ overKey: null }) }, h("th", { scope: "row" }, this.keys[key]), values(key).map((value) => h("td.right", {}, value)));
    const head = h("tr", {}, [t("key"), ...columns].map((text, i) => h(i ? "th.right" : "th", { scope: "col" }, text)));
    const more = order.length > SHOWN && h("button.quiet.fold", { onclick: () => ((this.whole = !this.whole), this.draw()) }, t(this.whole ? "vector.few" : "vector.all", { count: order.length }));
    return [h("div.scroll", {}, h("table.keys", {}, h("thead", {}, head), h("tbody", {}, rows.map(row)))), more];
  }

  scores() {
    const { facts, tensors, key } = this;
    const { head, query, scale, cap, bias } = facts;
    const columns = ["q · k", `× ${number(scale, 4)}`, ...(cap ? [`${number(cap)} tanh`] : []), ...(bias ? [t("qkv.bias")] : []), t("qkv.score")];
    const index = (one) => [head, query, one];
    const cells = (one) => {
      const product = tensors.products.data[one];
      const scaled = scale * product;
      const hidden = tensors.scores.data[one] === -Infinity;
      return [explained(product, this.name("products"), index(one)), number(scaled), ...(cap ? [number(cap * Math.tanh(scaled / cap))] : []), ...(bias ? [number(tensors.bias.data[one])] : []), hidden ? h("span", { title: t("qkv.masked") }, "−∞") : explained(tensors.scores.data[one], this.name("scores"), index(one))];
    };
    return [h("h3", {}, t("qkv.scores")), h("p.math", {}, t(bias ? "qkv.scores.bias" : "qkv.scores.formula")), this.table(columns, cells), inline(this.name("products"), index(key), 4), inline(this.name("scores"), index(key), 4)];
  }

  pattern() {
    const { facts: { head, query }, tensors, key } = this;
    const weight = tensors.pattern.data;
    const most = Math.max(...weight);
    const bar = (one) => h("span.weight", { style: { width: `${(6 * weight[one]) / most}rem` } });
    const sum = weight.reduce((a, b) => a + b, 0);
    return [
      h("h3", {}, t("qkv.pattern")), h("p.math", {}, "softmax(s)_j = exp(s_j) / Σ_k exp(s_k)"),
      this.table([t("qkv.score"), t("qkv.weight"), ""], (one) => [number(tensors.scores.data[one]), explained(weight[one], this.name("pattern"), [head, query, one]), bar(one)]),
      h("p.soft", {}, t("qkv.sum", { sum: number(sum, 6) })), inline(this.name("pattern"), [head, query, key], 4),
    ];
  }

  mixed() {
    const { facts: { head, query, shared }, tensors, key } = this;
    const value = at(tensors.v, key).data;
    const weight = tensors.pattern.data[key];
    const channel = Math.min(this.channel, value.length - 1);
    const choose = { chosen: (i) => this.choose(i), now: channel };
    return [
      h("h3", {}, t("qkv.mixed")), h("p.math", {}, "z = Σ_j a_j · v_j"),
      vector(value, { label: t("qkv.v", { key: this.keys[key] }), key: (i) => [this.name("v"), [shared, key, i]], ...choose }),
      vector(value.map((one) => one * weight), { label: t("qkv.av", { weight: number(weight, 3), key: this.keys[key] }) }),
      vector(tensors.mixed.data, { label: t("qkv.z"), key: (i) => [this.name("mixed"), [head, query, i]], ...choose }),
      inline(this.name("mixed"), [head, query, channel], 4),
    ];
  }

  out() {
    const { facts: { query }, tensors } = this;
    if (!tensors.out) return [h("h3", {}, t("qkv.out")), h("p", {}, t("qkv.out.unknown"))];
    const channel = Math.min(this.channel, tensors.out.data.length - 1);
    return [
      h("h3", {}, t("qkv.out")), h("p.math", {}, t("qkv.out.formula")),
      vector(tensors.head_out.data, { label: t("qkv.out.head") }),
      vector(tensors.out.data, { label: t("qkv.out.all"), key: (i) => [this.name("out"), [query, i]], chosen: (i) => this.choose(i), now: channel }),
      inline(this.name("out"), [query, channel], 4),
    ];
  }

  async focus(changed) {
    if (["site", "layer", "head", "query"].some((name) => changed.has(name))) return this.show();
    if (this.tensors && (changed.has("key") || changed.has("theme"))) this.draw();
  }

  destroy() {
    this.turn = -1;
    this.page.focus.set({ overKey: null });
  }
}

export default { words, draw };
