// What a classifier or a tagger says: its classes with their probabilities, and what one of them depends on.
import { fill, h, number, visible } from "#see/dom.js";
import { csv, download, exports } from "#see/export.js";
import { at } from "#see/safetensors.js";
import { shaded } from "#see/shaded.js";
import { said, t } from "#see/words.js";

const words = {
  en: { "view.classes": "Classes", "classes.row": "The class of the whole text or picture: each has a logit, and {function} makes probabilities of them. Choose one to see what it depends on.", "classes.token": "Each token has its own class: {function} makes probabilities of its logits. Choose a token to see its classes and what they depend on.", "classes.none": "no function, since the answer is a number,", "classes.class": "class", "classes.likely": "The class of each token", "classes.at": "The classes of “{token}”", "classes.of": "The classes", "classes.depends": "Saliency: what “{label}” depends on", "classes.about": "Each token in the colour of how much the logit of the class changes with its vector." },
  de: { "view.classes": "Klassen", "classes.row": "Die Klasse des ganzen Textes oder Bildes: Jede hat ein Logit, und {function} macht Wahrscheinlichkeiten daraus. Eine wählen, um zu sehen, wovon sie abhängt.", "classes.token": "Jedes Token hat seine eigene Klasse: {function} macht aus seinen Logits Wahrscheinlichkeiten. Ein Token wählen, um seine Klassen zu sehen und wovon sie abhängen.", "classes.none": "keine Funktion, da die Antwort eine Zahl ist,", "classes.class": "Klasse", "classes.likely": "Die Klasse jedes Tokens", "classes.at": "Die Klassen von „{token}“", "classes.of": "Die Klassen", "classes.depends": "Saliency: wovon „{label}“ abhängt", "classes.about": "Jedes Token in der Farbe dessen, wie sehr sich das Logit der Klasse mit seinem Vektor ändert." },
};

async function draw(element, { page, check }) {
  const [about, left, right] = [h("p"), h("div.scroll"), h("div")];
  let turn = 0;
  const show = async () => {
    const mine = ++turn;
    const last = page.pass.tokens.length - 1;
    const first = await page.source.get("classes", { position: -1 });
    const row = first.facts.of === "row";
    const position = row ? -1 : Math.min(page.focus.get("query") ?? last, last);
    const label = page.live || row ? page.focus.get("label") : null;
    const { facts, tensors, checks } = await page.source.get("classes", { label, position });
    if (mine !== turn) return;
    check(checks);
    about.textContent = t(`classes.${facts.of}`, { function: facts.function === "none" ? t("classes.none") : facts.function });
    const place = row ? 0 : position;
    fill(left, !row && tags(page, facts, tensors), classes(page, facts, tensors, place, row ? t("classes.of") : t("classes.at", { token: visible(page.token("tokens", position)) })));
    fill(right, facts.notes.map((note) => h("p", {}, said(note))), tensors.tokens && depends(page, facts, tensors));
  };
  fill(element, about, h("div.side", {}, left, right));
  await show();
  return { focus: (changed) => ["query", "label"].some((name) => changed.has(name)) && show() };
}

/** The likeliest class of every token; a click chooses the token. */
function tags(page, facts, { probability }) {
  const one = ({ text }, place) => {
    const shares = at(probability, place).data;
    const best = shares.indexOf(Math.max(...shares));
    return h("button.token.tag", { "data-tag": place, onclick: () => page.focus.set({ query: place }) }, visible(text), h("small", {}, `${facts.labels[best]} ${number(shares[best], 2)}`));
  };
  return [h("h3", {}, t("classes.likely")), h("div.symbols", {}, page.pass.tokens.slice(0, probability.shape[0]).map(one))];
}

/** All classes of the row or of one token, the likeliest first. */
function classes(page, facts, tensors, place, title) {
  const [shares, logits] = [at(tensors.probability, place).data, at(tensors.logit, place).data];
  const order = [...shares.keys()].sort((a, b) => shares[b] - shares[a]);
  const bar = (share) => h("td.bar", {}, h("div", { style: { width: `${100 * Math.max(0, Math.min(1, share))}%` } }));
  const row = (n) => h("tr", { "data-label": n, "aria-current": n === facts.label ? "true" : null }, h("td", {}, h("button.token", { onclick: () => page.focus.set({ label: n }) }, facts.labels[n])), bar(shares[n]), h("td.right", {}, number(shares[n], 4)), h("td.right", {}, number(logits[n], 4)));
  const heads = [t("classes.class"), "", "p", "Logit"].map((text, i) => h(i > 1 ? "th.right" : "th", { scope: "col" }, text));
  const save = () => download("classes.csv", csv([["class", "p", "logit"], ...order.map((n) => [facts.labels[n], shares[n], logits[n]])]), "text/csv");
  return [h("h3", {}, title), h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, order.map(row))), exports({ csv: save })];
}

function depends(page, facts, { tokens }) {
  const most = Math.max(1e-12, ...tokens.data.map(Math.abs));
  const save = () => download("class-saliency.csv", csv([["token", "saliency"], ...page.pass.tokens.map(({ text }, n) => [text, tokens.data[n]])]), "text/csv");
  return [h("h3", {}, t("classes.depends", { label: facts.labels[facts.label] })), h("p.soft", {}, t("classes.about")), h("p.said", { "data-saliency": "" }, shaded(page.pass.tokens, tokens.data, most)), exports({ csv: save })];
}

export default { words, draw };
