// What a conversation does: it grows, branches, stops, and is looked into.
import { asked, mode, prompt, write } from "#see/chat/ask.js";
import { add, before, empty, path, turn } from "#see/chat/conversation.js";
import { forAnswer, usual } from "#see/chat/panel.js";
import { pieces } from "#see/chat/tokens.js";

/** The conversation of a page; it lives as long as the page does, and nowhere else. */
export class Talk {
  constructor(page) {
    Object.assign(this, { page, way: mode(page.session), conversation: empty(), settings: usual(page.session.context), colour: "none", stopping: null, error: null });
    this.changed = () => null;
  }

  get busy() {
    return this.stopping !== null;
  }

  /** Say something, and be answered. */
  say(text) {
    const last = path(this.conversation).at(-1) ?? this.conversation.first;
    return this.answer(add(last, turn("user", text)));
  }

  /** Put other words in the place of a turn's, beside it; those of the reader are answered. */
  edit(one, text) {
    const parent = before(this.conversation, one);
    const changed = add(parent, turn(one.role, text, { finish: one.role === "assistant" ? "changed" : null }));
    return one.role === "user" ? this.answer(changed) : this.changed();
  }

  /** Another answer to the same words. */
  again(one) {
    return this.answer(one.role === "user" ? one : before(this.conversation, one));
  }

  /** Another answer that is the same up to a token, has another one there, and goes on from it. */
  fork(one, place, token) {
    const begun = [...one.tokens.slice(0, place), { ...token, top: one.tokens[place].top }];
    return this.answer(before(this.conversation, one), begun);
  }

  async answer(parent, begun = []) {
    const one = turn("assistant", joined(begun), { tokens: [...begun] });
    const what = asked(this.way, this.conversation, parent, forAnswer(this.settings, parent.next.length), begun.map(({ id }) => id));
    add(parent, one);
    this.stopping = new AbortController();
    this.error = null;
    this.changed();
    try {
      await write(this.page.call, what, this.stopping.signal, (news) => this.take(one, begun, news));
    } catch (error) {
      if (error.name === "AbortError") one.finish = "stopped";
      else this.error = error.message;
    }
    if (!one.text && !one.tokens.length) drop(parent, one);
    this.stopping = null;
    this.changed();
  }

  take(one, begun, { text, tokens, response, finish }) {
    one.tokens.push(...tokens);
    // Behind words that the server did not write, characters may be joined of tokens of both.
    one.text = begun.length ? joined(one.tokens) : one.text + text;
    one.response = response;
    one.finish = finish ?? one.finish;
    this.changed(one);
  }

  stop() {
    this.stopping?.abort();
  }

  /** Show another of the turns that stand beside each other. */
  choose(one) {
    for (const parent of [this.conversation.first, ...path(this.conversation)]) if (parent.next.includes(one)) parent.chosen = parent.next.indexOf(one);
    this.changed();
  }

  /** Open the pass over an answer and what stands before it; what was said does not enter the address. */
  async inside(one) {
    const { page } = this;
    try {
      await page.look({ response: one.response }, []);
    } catch (error) {
      if (error.status !== 400 && error.status !== 404) throw error;
      const ids = await prompt(page.call, this.way, this.conversation, before(this.conversation, one));
      const own = one.tokens.map(({ id }) => id);
      await page.look(this.way === "source" ? { source: ids, target: own } : { ids: [...ids, ...own] }, [], { told: false });
    }
    page.focus.set({ screen: "inside", query: null, key: null });
  }
}

const joined = (tokens) => pieces(tokens).map(({ text }) => text).join("");

function drop(parent, one) {
  parent.next = parent.next.filter((other) => other !== one);
  parent.chosen = Math.max(0, parent.next.length - 1);
}
