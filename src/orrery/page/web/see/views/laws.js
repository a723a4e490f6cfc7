// The laws as a matrix: for each family and law the worst value and its bound, by shape, word and colour.
import { fill, h, number } from "#see/dom.js";
import { csv, download, exports } from "#see/export.js";
import { t } from "#see/words.js";

const words = {
  en: {
    "view.laws": "Laws", "laws.family": "Family", "laws.none": "no family", "laws.holds": "holds", "laws.near": "near its bound", "laws.fails": "FAILS", "laws.source": "Evidence: {source}", "laws.summary": "Families: {families}. Laws: {laws}. Checks: {checks}; failed: {failed}. Cells near their bound: {near}.",
    "laws.cell": "{family}, {law}: {state}; worst of {count}: {value}, at most {bound}", "laws.exact": "{family}, {law}: {state}; {count} counts that must be exact", "laws.law": "Law", "laws.check": "Check", "laws.value": "Value", "laws.bound": "At most", "laws.state": "State", "laws.only": "only what fails or is near", "laws.not": "Not run", "laws.reason": "Reason", "laws.details": "{law}, {family}", "laws.nothing": "Nothing fails, and nothing is near its bound.",
    "laws.about": "Each law is an equality that must hold within a bound: cached decoding is the full forward pass, padding changes nothing, and so on. Near means that a value takes more than half of its bound.",
    "laws.beside": "Beside the reference in float64, as recorded", "laws.beside.about": "Largest differences of the logits, recorded by benchmarks/exactness.py; nothing of it was computed here. As it is installed, transformers casts to float32 inside, in float64 too. Widened: these casts are replaced by float64, as in the tests and in the golden outputs. Eager: as installed, with eager kernels of attention and experts.", "laws.by": "Reference", "laws.widened": "Widened", "laws.installed": "As installed", "laws.eager": "Eager", "laws.raises": "raises", "laws.raised": "It raises {error}; {remedy} mends it.", "laws.nocasts": "no casts",
  },
  de: {
    "view.laws": "Gesetze", "laws.family": "Familie", "laws.none": "keine Familie", "laws.holds": "gilt", "laws.near": "nahe der Schranke", "laws.fails": "VERLETZT", "laws.source": "Nachweis: {source}", "laws.summary": "Familien: {families}. Gesetze: {laws}. Prüfungen: {checks}; gescheitert: {failed}. Zellen nahe ihrer Schranke: {near}.",
    "laws.cell": "{family}, {law}: {state}; schlechteste von {count}: {value}, höchstens {bound}", "laws.exact": "{family}, {law}: {state}; {count} Zahlen, die genau stimmen müssen", "laws.law": "Gesetz", "laws.check": "Prüfung", "laws.value": "Wert", "laws.bound": "Höchstens", "laws.state": "Zustand", "laws.only": "nur was scheitert oder nahe ist", "laws.not": "Nicht geprüft", "laws.reason": "Grund", "laws.details": "{law}, {family}", "laws.nothing": "Nichts scheitert, und nichts ist nahe seiner Schranke.",
    "laws.about": "Jedes Gesetz ist eine Gleichheit, die innerhalb einer Schranke gelten muss: Dekodieren mit Speicher ist der volle Vorwärtslauf, Auffüllen ändert nichts, und so fort. Nahe heißt, dass ein Wert mehr als die Hälfte seiner Schranke braucht.",
    "laws.beside": "Neben der Referenz in float64, wie aufgezeichnet", "laws.beside.about": "Größte Abweichungen der Logits, aufgezeichnet von benchmarks/exactness.py; hier wurde davon nichts berechnet. Wie installiert rechnet transformers innen auch in float64 teils in float32. Geweitet: dort steht float64, wie in den Tests und in den goldenen Ausgaben. Eager: wie installiert, mit den Eager-Kernen von Attention und Experten.", "laws.by": "Referenz", "laws.widened": "Geweitet", "laws.installed": "Wie installiert", "laws.eager": "Eager", "laws.raises": "Fehler", "laws.raised": "Sie wirft {error}; {remedy} hilft.", "laws.nocasts": "keine Umwandlung",
  },
};

export const SHAPES = { holds: "●", near: "▲", fails: "✖" };

async function draw(element, { page, check }) {
  const { facts, checks } = await page.model.get("laws");
  check(checks);
  drawLaws(element, facts);
  return {};
}

/** Draw a matrix: `{families, laws, cells, not_run, checks, source}`. */
export function drawLaws(element, facts) {
  const details = h("section", { "aria-live": "polite" });
  const table = h("div.scroll", { tabindex: 0, role: "region", "aria-label": t("view.laws") });
  const only = h("input", { type: "checkbox", name: "only", onchange: () => show() });
  const cells = new Map(facts.cells.map((cell) => [`${cell.law}\n${cell.family}`, cell]));
  const count = (state) => facts.cells.filter((cell) => cell.state === state).length;
  const named = facts.families.filter(Boolean);
  const open = (cell) => fill(details, h("h3", {}, t("laws.details", { law: cell.law, family: cell.family || t("laws.none") })), list(facts.checks.filter((one) => one.law === cell.law && one.family === cell.family)));
  const show = () => {
    const kept = (cell) => cell && (!only.checked || cell.state !== "holds");
    const families = facts.families.filter((family) => facts.laws.some((law) => kept(cells.get(`${law}\n${family}`))));
    const laws = facts.laws.filter((law) => families.some((family) => kept(cells.get(`${law}\n${family}`))));
    const one = (family, law) => h("td", {}, kept(cells.get(`${law}\n${family}`)) ? button(cells.get(`${law}\n${family}`), open) : h("span.soft", {}, "–"));
    // Few families stand side by side: their laws are then read from top to bottom.
    const turned = families.length < 4;
    const name = (family) => family || t("laws.none");
    const head = h("tr", {}, h("th", { scope: "col" }, t(turned ? "laws.law" : "laws.family")), (turned ? families.map(name) : laws).map((text) => h("th", { scope: "col" }, text)));
    const rows = turned ? laws.map((law) => [law, families.map((family) => one(family, law))]) : families.map((family) => [name(family), laws.map((law) => one(family, law))]);
    fill(table, families.length ? h("table.laws", {}, h("thead", {}, head), h("tbody", {}, rows.map(([text, own]) => h("tr", {}, h("th", { scope: "row" }, text), own)))) : h("p.soft", {}, t("laws.nothing")));
  };
  const summary = t("laws.summary", { checks: number(facts.checks.length), laws: facts.laws.length, families: named.length, failed: facts.checks.filter((one) => !one.passed).length, near: count("near") });
  const rows = facts.checks.map((one) => [one.law, one.family, one.name, one.passed, one.value ?? "", one.bound]);
  const save = exports({ csv: () => download("laws.csv", csv([["law", "family", "check", "passed", "value", "bound"], ...rows]), "text/csv") });
  fill(element, h("p", {}, t("laws.about")), h("p", { "data-summary": "" }, summary, h("span.soft", {}, ` ${t("laws.source", { source: facts.source })}`)), h("div.controls", {}, Object.keys(SHAPES).map((state) => h("span", { class: `law ${state}` }, h("span", { "aria-hidden": "true" }, SHAPES[state]), ` ${t(`laws.${state}`)}`)), h("label", {}, only, t("laws.only"))), table, details, beside(facts.references), missing(facts.not_run), save);
  show();
}

/** A cell: its shape and its worst value; the word and the bound are told to all readers. */
function button(cell, open) {
  const state = t(`laws.${cell.state}`);
  const exact = cell.law === "golden";
  const told = { family: cell.family || t("laws.none"), law: cell.law, state, count: cell.count, value: number(cell.value, 2), bound: number(cell.bound, 2) };
  const label = t(exact ? "laws.exact" : "laws.cell", told);
  const word = cell.state === "holds" ? null : h("strong", {}, ` ${state}`);
  return h("button", { class: `law ${cell.state}`, "aria-label": label, title: `${label}\n${cell.name}`, "data-state": cell.state, onclick: () => open(cell) }, h("span", { "aria-hidden": "true" }, SHAPES[cell.state]), word, h("small", {}, exact ? ` ${cell.count}` : ` ${number(cell.value, 2)} ≤ ${number(cell.bound, 1)}`));
}

function list(checks) {
  const near = (one) => one.law !== "golden" && one.bound > 0 && one.value / one.bound > 0.5;
  const state = (one) => (one.passed ? (near(one) ? "near" : "holds") : "fails");
  const head = ["state", "check", "value", "bound"].map((name, i) => h(i > 1 ? "th.right" : "th", { scope: "col" }, t(`laws.${name}`)));
  const row = (one) => h("tr", {}, h("td", {}, h("span", { class: `law ${state(one)}` }, `${SHAPES[state(one)]} ${t(`laws.${state(one)}`)}`)), h("td", {}, one.name), h("td.right", {}, number(one.value, 3)), h("td.right", {}, number(one.bound, 3)));
  return h("div.scroll", { tabindex: 0, role: "region", "aria-label": t("laws.check") }, h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, checks.map(row))));
}

/** How far the families were from their references in float64: casts widened, as installed, with eager kernels. */
function beside(references) {
  if (!references?.rows.length) return null;
  const head = ["family", "by", "widened", "installed", "eager"].map((name, i) => h(i > 1 ? "th.right" : "th", { scope: "col" }, t(`laws.${name}`)));
  const installed = (one) => (one.raises ? h("span", { title: t("laws.raised", { error: one.raises, remedy: references.remedy }) }, t("laws.raises")) : one.eager === null ? t("laws.nocasts") : number(one.installed, 3));
  const row = (one) => h("tr", {}, h("th", { scope: "row" }, one.family), h("td", {}, one.by), h("td.right", {}, number(one.widened, 3)), h("td.right", {}, installed(one)), h("td.right", {}, number(one.eager, 3)));
  const raised = references.rows.find((one) => one.raises);
  const note = raised && h("p", {}, t("laws.raised", { error: raised.raises, remedy: references.remedy }));
  return h("details", { "data-references": "", open: references.rows.length < 4 }, h("summary", {}, t("laws.beside")), h("p", {}, t("laws.beside.about")), note, h("div.scroll", { tabindex: 0, role: "region", "aria-label": t("laws.beside") }, h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, references.rows.map(row)))));
}

/** What was not run, those with one reason together. */
function missing(groups) {
  if (!groups.length) return null;
  const count = groups.reduce((sum, { names }) => sum + names.length, 0);
  return h("details", {}, h("summary", {}, `○ ${t("laws.not")} (${count})`), h("ul", {}, groups.map(({ reason, names }) => h("li", {}, h("strong", {}, names.length > 6 ? `${names.slice(0, 6).join(", ")} … (${names.length})` : names.join(", ")), `: ${reason}`))));
}

export default { words, draw };
