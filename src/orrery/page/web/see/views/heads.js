// The roles of heads: a table of scores, the heads of one role sorted by it.
import { fill, h, number } from "#see/dom.js";
import { csv, download, exports } from "#see/export.js";
import { t } from "#see/words.js";

const words = {
  en: { "view.heads": "Heads", "heads.about": "How far each head plays a role in this pass, from 0 to 1. A click on a column sorts, a click on a head shows its pattern.", "heads.head": "head", "heads.previous_token": "previous token", "heads.induction": "induction", "heads.duplicate_token": "duplicate token", "heads.first_token": "first token", "heads.entropy": "entropy", "heads.distance": "distance" },
  de: { "view.heads": "Köpfe", "heads.about": "Wie weit jeder Kopf in diesem Lauf eine Rolle spielt, von 0 bis 1. Ein Klick auf eine Spalte sortiert, ein Klick auf einen Kopf zeigt sein Muster.", "heads.head": "Kopf", "heads.previous_token": "voriges Token", "heads.induction": "Induktion", "heads.duplicate_token": "gleiches Token", "heads.first_token": "erstes Token", "heads.entropy": "Entropie", "heads.distance": "Entfernung" },
};

async function draw(element, { page, check }) {
  const own = page.pass.sites.findIndex((site) => site.queries === site.keys);
  const { facts, tensors, checks } = await page.source.get("heads", { site: own });
  check(checks);
  const body = h("tbody");
  const heads = tensors[facts.roles[0]].shape[1];
  const all = facts.layers.flatMap((layer, i) => Array.from({ length: heads }, (_, head) => ({ layer, head, values: facts.roles.map((role) => tensors[role].data[i * heads + head]) })));
  const rows = () => {
    const by = facts.roles.indexOf(page.focus.get("role"));
    const order = by < 0 ? all : [...all].sort((a, b) => (b.values[by] || 0) - (a.values[by] || 0));
    fill(body, order.map(({ layer, head, values }) => h("tr", {}, h("td", {}, h("button.token", { onclick: () => page.focus.set({ view: "attention", site: own, layer, head }) }, `${layer}.${head}`)), values.map((value) => h("td.right", { style: { background: `color-mix(in srgb, var(${value < 0 ? "--look" : "--accent"}) ${Math.round(45 * Math.min(1, Math.abs(value) || 0))}%, transparent)` } }, number(value, 3))))));
  };
  const head = (role) => h("th.right", { scope: "col" }, h("button.quiet", { onclick: () => page.focus.set({ role }) }, t(`heads.${role}`)));
  const ways = { csv: () => download("heads.csv", csv([["block", "head", ...facts.roles], ...all.map(({ layer, head, values }) => [layer, head, ...values])]), "text/csv") };
  fill(element, h("p", {}, t("heads.about")), h("div.scroll", {}, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("heads.head")), facts.roles.map(head))), body)), exports(ways));
  rows();
  return { focus: (changed) => changed.has("role") && rows() };
}

export default { words, draw };
