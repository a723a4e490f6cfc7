// From characters to ids: bytes, words, and how a word is cut, one step after another.
import { fill, h, number, visible } from "#see/dom.js";
import { t } from "#see/words.js";

/** Characters whose bytes are shown. */
const SHOWN = 300;

const words = {
  en: {
    "view.text": "Text", "text.about": "A text is bytes; the tokenizer parts it into words, cuts each word into pieces of its vocabulary, and the model reads their numbers.",
    "text.characters": "{characters} characters, {bytes} bytes", "text.more": "and {count} more", "text.normal": "as the tokenizer reads it", "text.words": "Words, none of which a piece crosses", "text.cut": "How “{word}” is cut",
    "text.step": "Step {step} of {all}", "text.play": "Play", "text.before": "Step back", "text.after": "Step on", "text.start": "each character alone", "text.merge": "{left} and {right} become one: the pair learnt as number {rank}",
    "text.match": "the longest piece that fits: {piece}", "text.refused": "not in the vocabulary: {pieces}", "text.viterbi": "the best cut up to here: log probability {score}", "text.best": "The most probable cuts", "text.score": "log probability",
    "text.whole": "This word is looked up as it is.", "text.ids": "Pieces and their ids", "text.steps": "cut, one step after another", "text.nosteps": "No steps: {why}",
  },
  de: {
    "view.text": "Text", "text.about": "Ein Text besteht aus Bytes; der Tokenizer teilt ihn in Wörter, zerlegt jedes Wort in Stücke seines Vokabulars, und das Modell liest deren Nummern.",
    "text.characters": "{characters} Zeichen, {bytes} Bytes", "text.more": "und {count} weitere", "text.normal": "wie der Tokenizer ihn liest", "text.words": "Wörter, über deren Grenzen kein Stück reicht", "text.cut": "Wie „{word}“ zerlegt wird",
    "text.step": "Schritt {step} von {all}", "text.play": "Abspielen", "text.before": "Zurück", "text.after": "Weiter", "text.start": "jedes Zeichen für sich", "text.merge": "{left} und {right} werden eins: das als Nummer {rank} gelernte Paar",
    "text.match": "das längste Stück, das passt: {piece}", "text.refused": "nicht im Vokabular: {pieces}", "text.viterbi": "die beste Zerlegung bis hier: Log-Wahrscheinlichkeit {score}", "text.best": "Die wahrscheinlichsten Zerlegungen", "text.score": "Log-Wahrscheinlichkeit",
    "text.whole": "Dieses Wort wird als Ganzes nachgeschlagen.", "text.ids": "Stücke und ihre Nummern", "text.steps": "zerlegt, Schritt für Schritt", "text.nosteps": "Keine Schritte: {why}",
  },
};

async function draw(element, { page, check }) {
  const { facts, checks } = await page.source.get("text");
  check(checks);
  const streams = facts.streams.map((stream) => new Stream(page, stream, facts.kind));
  fill(element, h("p", {}, t("text.about")), streams.map((stream) => stream.element));
  return { focus: (changed) => changed.has("query") && streams.forEach((stream) => stream.follow()), destroy: () => streams.forEach((stream) => stream.stop()) };
}

/** One text on its way to ids. */
class Stream {
  constructor(page, { stream, ...facts }, kind) {
    Object.assign(this, { page, stream, facts, kind, at: 0, word: null, timer: null });
    this.chips = h("div.strip", { role: "group", "aria-label": t("text.words") });
    this.shown = h("div");
    this.element = h("section", { "data-stream": stream }, facts.text !== page.pass.given?.text && h("h2", {}, t(stream)), bytes(facts.text), facts.normal !== facts.text && h("p", {}, h("span.soft", {}, `${t("text.normal")}: `), h("code", {}, visible(facts.normal))), facts.why ? h("p.note", {}, t("text.nosteps", { why: facts.why })) : [h("h3", {}, t("text.words")), this.chips, this.shown], pieces(facts.pieces));
    this.places();
    const long = facts.words.find(({ word }) => facts.steps[word]?.rows.length > 2) ?? facts.words[0];
    if (long) this.choose(facts.words.indexOf(long));
    this.follow();
  }

  /** Where the tokens of each word stand in what the model read. */
  places() {
    const ids = this.page.pass[this.stream].map(({ id }) => id);
    const made = this.facts.words.flatMap(({ ids }) => ids);
    let start = 0;
    while (start < ids.length && !made.every((id, i) => ids[start + i] === id)) start++;
    this.starts = this.facts.words.map(({ ids }) => ((start += ids.length), start - ids.length));
  }

  /** Show the word of the looking token. */
  follow() {
    const query = this.page.focus.get("query");
    if (query === null || this.stream !== "tokens") return;
    const word = this.facts.words.findIndex(({ ids }, i) => query >= this.starts[i] && query < this.starts[i] + ids.length);
    if (word >= 0 && word !== this.word) this.choose(word);
  }

  choose(word) {
    this.stop();
    this.word = word;
    fill(this.chips, this.facts.words.map(({ word: text }, i) => h("button.token", { "aria-pressed": String(i === word), onclick: () => this.choose(i) }, visible(text))));
    const { rows } = this.steps;
    this.at = rows.length - 1;
    this.frame();
  }

  get steps() {
    return this.facts.steps[this.facts.words[this.word].word] ?? { pieces: [], rows: [] };
  }

  /** The frame around the steps: a slider, which the arrow keys move, and a button that plays them. */
  frame() {
    const { word, ids } = this.facts.words[this.word];
    const { rows, best } = this.steps;
    const last = rows.length - 1;
    this.line = h("div.step", { "aria-live": "polite" });
    this.slider = h("input", { type: "range", min: 0, max: Math.max(0, last), value: this.at, "aria-label": t("text.steps"), oninput: () => (this.stop(), this.go(Number(this.slider.value))) });
    const stepper = h(
      "div.controls",
      {},
      h("button.quiet", { "data-step": "-1", "aria-label": t("text.before"), onclick: () => (this.stop(), this.go(this.at - 1)) }, "◀"),
      this.slider,
      h("button.quiet", { "data-step": "1", "aria-label": t("text.after"), onclick: () => (this.stop(), this.go(this.at + 1)) }, "▶"),
      h("button.quiet", { "data-play": "", onclick: () => this.play() }, t("text.play")),
    );
    const more = best?.length > 1 && h("table", {}, h("caption.soft", {}, t("text.best")), h("thead", {}, h("tr", {}, h("th.right", { scope: "col" }, t("text.score")), h("th", { scope: "col" }, t("text.ids")))), h("tbody", {}, best.map(({ cut, score }) => h("tr", {}, h("td.right", {}, number(score, 5)), h("td", {}, symbols(cut))))));
    fill(this.shown, h("h3", {}, t("text.cut", { word: visible(word) })), last > 0 && stepper, this.line, ids.length > 0 && h("p.soft", {}, this.steps.pieces.map(visible).join(" · "), " → ", ids.join(", ")), more);
    this.go(this.at);
  }

  go(step) {
    const { rows } = this.steps;
    if (!rows.length) return fill(this.line, h("p.soft", {}, t("text.whole")));
    this.at = Math.max(0, Math.min(rows.length - 1, step));
    this.slider.value = this.at;
    const row = rows[this.at];
    fill(this.line, symbols(row.symbols, row.pair?.join("") ?? row.piece), h("p.soft", {}, t("text.step", { step: this.at, all: rows.length - 1 }), ": ", told(row)), row.refused?.length > 0 && h("p.soft", {}, t("text.refused", { pieces: row.refused.map(visible).join(", ") + (row.more ? ", …" : "") })));
  }

  play() {
    this.stop();
    this.go(0);
    this.timer = setInterval(() => (this.at + 1 < this.steps.rows.length ? this.go(this.at + 1) : this.stop()), matchMedia("(prefers-reduced-motion: reduce)").matches ? 1500 : 700);
  }

  stop() {
    clearInterval(this.timer);
  }
}

function told(row) {
  if (row.pair) return t("text.merge", { left: visible(row.pair[0]), right: visible(row.pair[1]), rank: row.rank });
  if (row.piece) return t("text.match", { piece: visible(row.piece) });
  if ("score" in row) return t("text.viterbi", { score: number(row.score, 5) });
  return t("text.start");
}

function symbols(list, made = null) {
  return h("span.symbols", {}, list.map((one) => h("span.symbol", { class: one === made ? "symbol made" : "symbol" }, visible(one))));
}

/** The characters with their bytes. */
function bytes(text) {
  const characters = [...text];
  const encoder = new TextEncoder();
  const hex = (character) => Array.from(encoder.encode(character), (byte) => byte.toString(16).padStart(2, "0")).join(" ");
  const cell = (character) => h("span.byte", { title: `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}` }, h("span", {}, visible(character)), h("small", {}, hex(character)));
  const rest = characters.length - SHOWN;
  return [h("h3", {}, t("text.characters", { characters: number(characters.length), bytes: number(encoder.encode(text).length) })), h("div.bytes", { tabindex: "0", role: "group", "aria-label": t("text.characters", { characters: characters.length, bytes: encoder.encode(text).length }) }, characters.slice(0, SHOWN).map(cell), rest > 0 && h("span.soft", {}, t("text.more", { count: rest })))];
}

function pieces(list) {
  return [h("h3", {}, t("text.ids")), h("div.bytes", { tabindex: "0", role: "group", "aria-label": t("text.ids") }, list.slice(0, SHOWN).map(({ id, piece }) => h("span.byte", {}, h("span", {}, visible(piece)), h("small", {}, String(id)))), list.length > SHOWN && h("span.soft", {}, t("text.more", { count: list.length - SHOWN })))];
}

export default { words, draw };
