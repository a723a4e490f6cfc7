// Talking with the model: answers that grow, branch and show how sure each token was.
import { alternatives } from "#see/chat/alternatives.js";
import { before, empty, opened, path, saved } from "#see/chat/conversation.js";
import { panel } from "#see/chat/panel.js";
import { Talk } from "#see/chat/talk.js";
import { COLOURS, check } from "#see/chat/tokens.js";
import { article, editor } from "#see/chat/turns.js";
import texts from "#see/chat/words.js";
import { badge } from "#see/checks.js";
import { fill, h, number } from "#see/dom.js";
import { download } from "#see/export.js";
import { addWords, t } from "#see/words.js";

/** Draw the screen; returns what ends it. */
export function draw(element, page) {
  addWords(texts);
  const screen = new Screen(element, (page.talk ??= new Talk(page)));
  return { destroy: () => screen.end() };
}

class Screen {
  constructor(element, talk) {
    Object.assign(this, { talk, editing: null, looked: null, parts: { turns: h("div.turns", { "aria-live": "off" }), told: h("p.failure", { role: "alert", hidden: true }), lamp: h("div"), ask: h("div"), legend: h("p.soft"), side: h("aside.fields", { "aria-label": t("chat.drawing") }) } });
    const { turns, told, lamp, ask } = this.parts;
    fill(element, h("div.chat", {}, h("section", { "aria-label": t("screen.chat") }, turns, told, ask, lamp), this.parts.side));
    fill(this.parts.side, this.side());
    this.now = { edit: (one) => this.edit(one), again: (one) => talk.again(one), inside: (one) => this.inside(one), choose: (one) => talk.choose(one), open: (one, place) => this.look(one, place) };
    this.listen = (event) => event.key === "Escape" && talk.busy && (talk.stop(), event.stopPropagation());
    document.addEventListener("keydown", this.listen, true);
    talk.changed = (one) => (one ? this.grow(one) : this.all());
    this.all();
  }

  side() {
    const { talk } = this;
    const system = h("textarea", { name: "system", rows: 3, value: talk.conversation.system, oninput: (event) => (talk.conversation.system = event.target.value) });
    const colour = h("select", { name: "colour", onchange: (event) => ((talk.colour = event.target.value), this.all()) }, Object.keys(COLOURS).map((name) => h("option", { value: name, selected: name === talk.colour }, t(`chat.colour.${name}`))));
    const file = h("input", { type: "file", accept: "application/json", hidden: true, onchange: (event) => this.open(event.target.files[0]) });
    const about = () => ({ model: talk.page.session.model, settings: talk.settings });
    return [
      h("label", {}, t("chat.colour"), colour),
      this.parts.legend,
      talk.way === "chat" && h("label", {}, t("chat.system"), system),
      h("h3", {}, t("chat.drawing")),
      panel(talk.settings),
      h("div.tools", {}, h("button.quiet", { "data-do": "new", onclick: () => this.begin(empty()) }, t("chat.new")), h("button.quiet", { "data-do": "save", onclick: () => download("conversation.json", saved(talk.conversation, about()), "application/json") }, t("chat.save")), h("button.quiet", { onclick: () => file.click() }, t("chat.open")), file),
    ];
  }

  begin(conversation) {
    Object.assign(this.talk, { conversation, error: null });
    Object.assign(this, { editing: null, looked: null });
    fill(this.parts.side, this.side());
    this.all();
  }

  async open(file) {
    try {
      this.begin(opened(await file.text()));
    } catch (error) {
      this.tell(error.message);
    }
  }

  all() {
    const { talk, parts } = this;
    Object.assign(this.now, { way: talk.way, colour: talk.colour, busy: talk.busy });
    const shown = path(talk.conversation);
    fill(parts.turns, shown.length ? shown.map((one) => this.turn(one)) : h("p.soft", {}, t("chat.empty")));
    parts.legend.textContent = talk.colour === "none" ? "" : t(`chat.legend.${talk.colour}`, { most: number(Math.log(21), 3) });
    this.tell(talk.error);
    fill(parts.ask, this.composer());
    if (this.was && !talk.busy) parts.ask.querySelector("textarea").focus({ preventScroll: true });
    this.was = talk.busy;
    const answers = shown.filter(({ tokens }) => tokens.length);
    badge(parts.lamp, answers.length && !talk.busy ? [check(t("chat.check"), answers)] : []);
  }

  turn(one) {
    if (one === this.editing) return editor(one, (text) => ((this.editing = null), this.talk.edit(one, text)), () => ((this.editing = null), this.all()));
    const found = article(one, this.now, before(this.talk.conversation, one).next);
    if (this.looked?.one === one) found.append(this.alternatives(one));
    return found;
  }

  alternatives(one) {
    const { talk } = this;
    const { place } = this.looked;
    const go = (token) => {
      this.looked = null;
      talk.fork(one, place, token);
    };
    return alternatives(one.tokens, place, { go: talk.way === "source" || talk.busy ? null : go, step: (other) => this.look(one, other), close: () => this.look(null) });
  }

  look(one, place) {
    const left = this.looked;
    this.looked = one && { one, place };
    this.all();
    const again = one ? ".alternatives button:not(:disabled)" : `[data-place="${left.place}"]`;
    this.parts.turns.querySelector(again)?.focus({ preventScroll: true });
  }

  /** The answer under way has more tokens: it alone is drawn again, once a frame. */
  grow(one) {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      const near = innerHeight + scrollY > document.documentElement.scrollHeight - 160;
      this.parts.turns.lastElementChild?.replaceWith(this.turn(one));
      if (near) scrollTo(0, document.documentElement.scrollHeight);
    });
  }

  edit(one) {
    this.editing = one;
    this.all();
    this.parts.turns.querySelector("form textarea")?.focus();
  }

  async inside(one) {
    try {
      await this.talk.inside(one);
    } catch (error) {
      this.tell(error.message);
    }
  }

  tell(text) {
    this.parts.told.hidden = !text;
    this.parts.told.textContent = text ?? "";
  }

  composer() {
    const { talk } = this;
    if (talk.busy) return h("div.tools", {}, h("button.go", { "data-do": "stop", onclick: () => talk.stop() }, t("chat.stop")));
    const text = h("textarea", { name: "say", rows: 2, "aria-label": t({ chat: "chat.say", text: "chat.write", source: "chat.translate" }[talk.way]), placeholder: t({ chat: "chat.say", text: "chat.write", source: "chat.translate" }[talk.way]) });
    const send = (event) => {
      event.preventDefault();
      if (text.value.trim()) talk.say(text.value);
    };
    const key = (event) => event.key === "Enter" && !event.shiftKey && !event.isComposing && send(event);
    text.addEventListener("keydown", key);
    return h("form.ask", { onsubmit: send }, h("label", {}, text), h("button.go", { "data-do": "send" }, t("chat.send")));
  }

  end() {
    this.talk.changed = () => null;
    document.removeEventListener("keydown", this.listen, true);
  }
}
