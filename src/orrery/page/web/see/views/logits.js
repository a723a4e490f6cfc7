// What comes next: the likeliest tokens, and which part of the model adds how much to the logit of one.
import { fill, h, number, visible } from "#see/dom.js";
import { csv, download, exports, safetensors } from "#see/export.js";
import { said, t } from "#see/words.js";

const MOST = 40;
const words = {
  en: { "view.logits": "Logits", "logits.about": "Behind the chosen token the model says this. Right: the logit of a token as a sum of what each part of the model adds to it directly, at the scale that the final norm had.", "logits.next": "Behind “{token}”", "logits.parts": "The logit of “{token}”", "logits.against": "“{token}” against “{other}”", "logits.part": "part", "logits.adds": "adds", "logits.sum": "sum of all {count} parts", "logits.token": "token", "logits.before": "p clean", "logits.after": "p edited", "logits.change": "logit", "logits.kl": "KL(clean ‖ edited) is {kl} nats", "logits.other": "the other {count} parts" },
  de: { "view.logits": "Logits", "logits.about": "Hinter dem gewählten Token sagt das Modell dies. Rechts: das Logit eines Tokens als Summe dessen, was jeder Teil des Modells unmittelbar beiträgt, bei der Skala, die die letzte Norm hatte.", "logits.next": "Hinter „{token}“", "logits.parts": "Das Logit von „{token}“", "logits.against": "„{token}“ gegen „{other}“", "logits.part": "Teil", "logits.adds": "trägt bei", "logits.sum": "Summe aller {count} Teile", "logits.token": "Token", "logits.before": "p ohne", "logits.after": "p mit", "logits.change": "Logit", "logits.kl": "KL(ohne ‖ mit) ist {kl} nats", "logits.other": "die anderen {count} Teile" },
};

async function draw(element, { page, check }) {
  const next = h("div.scroll");
  const parts = h("div.scroll");
  let turn = 0;
  const show = async () => {
    const mine = ++turn;
    const { tokens } = page.pass;
    const position = Math.min(page.focus.get("query") ?? tokens.length - 1, tokens.length - 1);
    const token = page.live ? page.focus.get("token") : null;
    const against = page.live ? page.focus.get("against") : null;
    const { facts, tensors, checks } = await page.source.get("logits", { position, token, against });
    if (mine !== turn) return;
    check(checks);
    const spell = (id) => visible(facts.spelled[id] ?? String(id));
    fill(next, likeliest(page, facts, tensors, visible(tokens[position].text), spell));
    fill(parts, shares(facts, tensors, spell));
  };
  fill(element, h("p", {}, t("logits.about")), h("div.side", {}, next, parts));
  await show();
  return { focus: (changed) => ["query", "token", "against"].some((name) => changed.has(name)) && show() };
}

/** The likeliest tokens; a click takes the logit of one apart, with shift it is subtracted. */
function likeliest(page, facts, tensors, behind, spell) {
  const before = facts.difference && tensors["clean.log_probability"].data;
  const row = (_, n) => {
    const id = tensors.id.data[n];
    const p = Math.exp(tensors.log_probability.data[n]);
    const choose = (event) => page.live && page.focus.set(event.shiftKey ? { against: id } : { token: id, against: null });
    const was = before ? Math.exp(before[n]) : null;
    const bar = (share) => h("div", { style: { width: `${100 * share}%` } });
    return h("tr", { "aria-current": id === facts.token ? "true" : null, "data-id": id }, h("td", {}, h("button.token", { onclick: choose, disabled: !page.live }, spell(id))), h(before ? "td.bar.two" : "td.bar", {}, before && bar(was), bar(p)), before && h("td.right", {}, number(was, 3)), h("td.right", {}, number(p, 3)), h("td.right", {}, number(tensors.logit.data[n] - (before ? tensors["clean.logit"].data[n] : 0), 4)));
  };
  const heads = [t("logits.token"), "", ...(before ? [t("logits.before"), t("logits.after"), t("logits.change")] : ["p", t("logits.change")])].map((text, i) => h(i > 1 ? "th.right" : "th", { scope: "col" }, text));
  const moved = before && h("p.number", { "data-kl": facts.kl }, t("logits.kl", { kl: number(facts.kl, 4) }));
  return [h("h3", {}, t("logits.next", { token: behind })), moved, h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, [...tensors.id.data].map(row)))];
}

/** The parts of a logit, the largest first. */
function shares(facts, tensors, spell) {
  const values = tensors.parts.data;
  const order = [...values.keys()].sort((a, b) => Math.abs(values[b]) - Math.abs(values[a]));
  const most = Math.max(1e-9, ...values.map(Math.abs));
  const rest = order.slice(MOST).reduce((sum, n) => sum + values[n], 0);
  const bar = (value) => h("td.bar", {}, h("div", { style: { width: `${(100 * Math.abs(value)) / most}%`, background: value < 0 ? "var(--look)" : "var(--accent)" } }));
  const row = (name, value) => h("tr", {}, h("td.path", {}, name), bar(value), h("td.right", {}, number(value, 4)));
  const title = facts.against === null ? t("logits.parts", { token: spell(facts.token) }) : t("logits.against", { token: spell(facts.token), other: spell(facts.against) });
  const ways = {
    csv: () => download("logit-parts.csv", csv([["part", "value"], ...order.map((n) => [facts.parts[n], values[n]])]), "text/csv"),
    safetensors: () => download("logit-parts.safetensors", safetensors({ parts: tensors.parts }), "application/octet-stream"),
  };
  const rows = [...order.slice(0, MOST).map((n) => row(facts.parts[n], values[n])), order.length > MOST && row(t("logits.other", { count: order.length - MOST }), rest), h("tr", {}, h("th", { scope: "row" }, t("logits.sum", { count: order.length })), h("td"), h("td.right", {}, number(facts.total - (facts.clean?.total ?? 0), 5)))];
  const heads = [t("logits.part"), "", t("logits.adds")].map((text, i) => h(i > 1 ? "th.right" : "th", { scope: "col" }, text));
  const notes = [h("h3", {}, title), facts.notes.map((note) => h("p", {}, said(note)))];
  if (!order.length) return notes;
  return [...notes, h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, rows)), exports(ways)];
}

export default { words, draw };
