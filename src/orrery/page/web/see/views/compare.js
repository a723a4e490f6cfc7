// What differs between the architecture of this model and another.
import { fill, h, whole } from "#see/dom.js";
import { csv, download, exports } from "#see/export.js";
import { t } from "#see/words.js";

const words = {
  en: { "view.compare": "Compare", "compare.with": "Compare with", "compare.choose": "choose", "compare.about": "Each part and each setting in which this model differs from another is a row of a table.", "compare.saved": "A saved page holds the comparison with the model's own family alone.", "compare.families": "families, at the size of their defaults", "compare.runs": "runs beside this one", "compare.part": "Part", "compare.same": "The architectures are the same.", "compare.parameters": "parameters", "compare.only": "not there", "compare.count": "{count} differences" },
  de: { "view.compare": "Vergleich", "compare.with": "Vergleichen mit", "compare.choose": "wählen", "compare.about": "Jeder Teil und jede Einstellung, worin sich dieses Modell von einem anderen unterscheidet, ist eine Zeile einer Tabelle.", "compare.saved": "Eine gespeicherte Seite hat nur den Vergleich mit der eigenen Familie des Modells.", "compare.families": "Familien, in der Größe ihrer Vorgaben", "compare.runs": "Läufe neben diesem", "compare.part": "Teil", "compare.same": "Der Aufbau ist derselbe.", "compare.parameters": "Parameter", "compare.only": "nicht da", "compare.count": "{count} Unterschiede" },
};

async function draw(element, { page, check }) {
  const { facts } = await page.model.get("compare");
  const panel = h("div");
  const has = (other) => page.model.has("compare", { other });
  const show = async () => {
    const other = page.focus.get("other");
    if (!other || !has(other)) return fill(panel);
    try {
      const { facts: told, checks } = await page.model.get("compare", { other });
      check(checks);
      fill(panel, table(told));
    } catch (error) {
      fill(panel, h("p.failure", { role: "alert" }, error.message));
    }
  };
  const option = (name) => h("option", { value: name, selected: name === page.focus.get("other"), disabled: !has(name) }, name);
  const group = (label, names) => names.length > 0 && h("optgroup", { label }, names.map(option));
  const select = h("select", { name: "other", onchange: () => page.focus.set({ other: select.value || null }) }, h("option", { value: "" }, t("compare.choose")), group(t("compare.runs"), facts.runs), group(t("compare.families"), facts.families));
  fill(element, h("p", {}, t("compare.about")), !page.live && h("p.soft", {}, t("compare.saved")), h("div.controls", {}, h("label", {}, t("compare.with"), select)), panel);
  await show();
  return { focus: (changed) => changed.has("other") && show() };
}

function table({ name, other, differences, parameters }) {
  if (!differences.length) return h("p", {}, t("compare.same"));
  const cell = (text) => h("td", {}, text || h("span.soft", {}, t("compare.only")));
  const head = h("tr", {}, ["compare.part", name, other].map((text) => h("th", { scope: "col" }, t(text))));
  const count = h("tr", {}, h("th", { scope: "row" }, t("compare.parameters")), parameters.map((number) => h("td", {}, whole(number))));
  const rows = differences.map(({ path, first, second }) => h("tr", { "data-path": path }, h("th.path", { scope: "row" }, path), cell(first), cell(second)));
  const save = { csv: () => download("compare.csv", csv([["part", name, other], ["parameters", ...parameters], ...differences.map(({ path, first, second }) => [path, first, second])]), "text/csv") };
  return [h("p", {}, t("compare.count", { count: differences.length })), h("div.scroll", { tabindex: 0, role: "region", "aria-label": t("view.compare") }, h("table", {}, h("thead", {}, head), h("tbody", {}, count, rows))), exports(save)];
}

export default { words, draw };
