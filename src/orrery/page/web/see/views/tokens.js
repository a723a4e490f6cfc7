// The text as tokens with their numbers, and what is known of the model.
import { fill, h, visible } from "#see/dom.js";
import { said, t } from "#see/words.js";

const words = {
  en: { "view.tokens": "Tokens", "tokens.place": "place", "tokens.id": "id", "tokens.text": "token" },
  de: { "view.tokens": "Tokens", "tokens.place": "Stelle", "tokens.id": "Nummer", "tokens.text": "Token" },
};

async function draw(element, { page, check }) {
  const { facts, checks } = await page.source.get("tokens");
  check(checks);
  const table = (name) =>
    h(
      "table",
      {},
      h("caption.soft", {}, t(name)),
      h("thead", {}, h("tr", {}, ["place", "id", "text"].map((one) => h("th", { scope: "col" }, t(`tokens.${one}`))))),
      h("tbody", {}, facts[name].map(({ id, text }, place) => h("tr", { "data-place": place, onclick: () => page.focus.set({ query: place }) }, h("td.right", {}, String(place)), h("td.right", {}, String(id)), h("td.path", {}, visible(text))))),
    );
  const streams = ["source", "tokens"].filter((name) => facts[name].length);
  fill(element, facts.notes.map((note) => h("p", {}, said(note))), h("div.side", {}, streams.map((name) => h("div.scroll", {}, table(name)))));
  return {};
}

export default { words, draw };
