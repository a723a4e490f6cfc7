// What could have stood in a token's place, with its probability, and the way on from it.
import { entropy, probability, rank } from "#see/chat/tokens.js";
import { h, number, visible } from "#see/dom.js";
import { t } from "#see/words.js";

/**
 * @param {Array<import("#see/chat/conversation.js").Token>} tokens of an answer
 * @param {number} place which of them
 * @param {{go: ((token: object) => void)|null, step: (place: number) => void, close: () => void}} habits
 */
export function alternatives(tokens, place, { go, step, close }) {
  const own = tokens[place];
  const listed = own.top.some(({ id }) => id === own.id) ? own.top : [...own.top, own];
  const from = rank(own);
  const beyond = from > own.top.length;
  const row = (one) =>
    h(
      "tr",
      { "aria-current": one.id === own.id ? "true" : null, "data-token": one.id },
      h("td", {}, h("code", {}, visible(one.text))),
      h("td.right", {}, number(probability(one), 4)),
      h("td.bar", {}, h("div", { style: { width: `${100 * probability(one)}%` } })),
      h("td", {}, go && one.id !== own.id && h("button.quiet", { "aria-label": `${t("chat.continue")}: ${visible(one.text)}`, title: t("chat.continue"), onclick: () => go(one) }, "↳")),
    );
  return h(
    "section.alternatives",
    { "aria-label": t("chat.alternatives"), onkeydown: (event) => event.key === "Escape" && close() },
    h("h4", {}, t("chat.token", { n: place + 1, text: visible(own.text) })),
    h("p.soft", {}, `${t("chat.rank")} ${beyond ? t("chat.rank.beyond", { n: from }) : from}, ${t("chat.entropy")} ${number(entropy(own), 3)} nats`),
    h("p.soft", {}, t("chat.alternatives")),
    h("div.scroll", { tabindex: "0", role: "region", "aria-label": t("chat.alternatives") }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("tokens")), h("th.right", { scope: "col" }, t("chat.p")), h("td"), go ? h("th", { scope: "col" }, t("chat.continue")) : h("td"))), h("tbody", {}, listed.map(row)))),
    !go && h("p.soft", {}, t("chat.fixed")),
    h("div.tools", {}, [-1, 1].map((by) => h("button.quiet", { disabled: !tokens[place + by], "aria-label": t("chat.token", { n: place + 1 + by, text: "" }), onclick: () => step(place + by) }, by < 0 ? "‹" : "›")), h("button.quiet", { onclick: close }, t("chat.close"))),
  );
}
