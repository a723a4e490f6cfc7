// One turn of a conversation on the page: its words, its tokens in colours, and what can be done with it.
import { COLOURS, pieces } from "#see/chat/tokens.js";
import { fill, h } from "#see/dom.js";
import { t } from "#see/words.js";

const NAMES = { chat: ["chat.you", "chat.model"], text: ["chat.before", "chat.after"], source: ["chat.source", "chat.target"] };

/**
 * Draw a turn.
 * @param {import("#see/chat/conversation.js").Turn} one
 * @param {object} now what holds for all turns: way, colour, busy, and the habits edit, again, inside, choose, open
 * @param {Array} beside the turns that stand beside it, itself too
 */
export function article(one, now, beside) {
  const element = h("article.turn", { "data-role": one.role });
  return fill(element, h("h3", {}, t(NAMES[now.way][one.role === "user" ? 0 : 1])), words(one, now), tools(one, now, beside));
}

/** The words of a turn; tokens are chosen by a click, or by the arrows and Enter. */
export function words(one, now) {
  if (!one.tokens.length) return h("div.said", {}, one.text);
  const much = COLOURS[now.colour];
  const bits = pieces(one.tokens).map(({ text, places }, i) => {
    const share = Math.max(...places.map((place) => much(one.tokens[place])));
    return h("span.bit", { role: "button", tabindex: i ? "-1" : "0", "data-place": places[0], style: share ? { "--much": share } : {}, onclick: () => now.open(one, places[0]) }, text);
  });
  return h("div.said", { role: "group", "aria-label": t("tokens"), onkeydown: move }, bits);
}

function move(event) {
  const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  const bits = [...event.currentTarget.children];
  const at = bits.indexOf(event.target);
  if (event.key === "Enter" || event.key === " ") event.target.click();
  else if (by && bits[at + by]) bits[at + by].focus();
  else return;
  event.preventDefault();
  event.stopPropagation();
}

function tools(one, now, beside) {
  const place = beside.indexOf(one);
  const step = (by, text, name) => h("button.quiet", { disabled: now.busy || !beside[place + by], "aria-label": t(name), onclick: () => now.choose(beside[place + by]) }, text);
  const said = { length: "chat.finish.length", stopped: "chat.stopped", changed: "chat.changed" }[one.finish];
  return h(
    "div.tools",
    {},
    beside.length > 1 && [step(-1, "‹", "chat.previous"), h("span.soft", { "data-versions": "" }, t("chat.of", { n: place + 1, all: beside.length })), step(1, "›", "chat.next")],
    h("button.quiet", { disabled: now.busy, "data-do": "edit", onclick: () => now.edit(one) }, t("chat.edit")),
    (one.role === "assistant" || !one.next.length) && h("button.quiet", { disabled: now.busy, "data-do": "again", onclick: () => now.again(one) }, t("chat.again")),
    one.tokens.length > 0 && h("button.quiet", { disabled: now.busy, "data-do": "inside", onclick: () => now.inside(one) }, t("chat.inside")),
    said && h("span.soft", {}, t(said)),
  );
}

/** A turn while it is changed. */
export function editor(one, keep, cancel) {
  const text = h("textarea", { rows: Math.min(12, 1 + one.text.split("\n").length), value: one.text, "aria-label": t("chat.edit") });
  const save = (event) => (event.preventDefault(), keep(text.value));
  return h("form.turn", { onsubmit: save, onkeydown: (event) => event.key === "Escape" && cancel() }, text, h("div.tools", {}, h("button.go", {}, t("chat.keep")), h("button.quiet", { type: "button", onclick: cancel }, t("chat.cancel"))));
}
