// How heads come about: the score of a role at every checkpoint, a line for each head that has it most.
import { chart, legend } from "#see/chart.js";
import { nearest } from "#see/checkpoints.js";
import { fill, h, number } from "#see/dom.js";
import { csv, download, exports } from "#see/export.js";
import { ServerSource } from "#see/source.js";
import { addWords, t } from "#see/words.js";

addWords({
  en: { "forming.measure": "Measure the heads at every checkpoint", "forming.running": "Checkpoint {now} of {all} …", "forming.role": "Role", "forming.title": "{role}, of the heads that have it most at the end", "forming.none": "This text gives the role nothing to measure; one that repeats itself does.", "forming.text": "Look inside a text first, one that repeats itself." },
  de: { "forming.measure": "Die Köpfe bei jedem Checkpoint messen", "forming.running": "Checkpoint {now} von {all} …", "forming.role": "Rolle", "forming.title": "{role}, der Köpfe, die sie am Ende am meisten haben", "forming.none": "Dieser Text gibt der Rolle nichts zu messen; einer, der sich wiederholt, tut es.", "forming.text": "Zuerst in einen Text hineinsehen, der sich wiederholt." },
});

/** Heads that are drawn. */
const MOST = 5;

/** @returns {{element: HTMLElement, destroy: () => void}} */
export function forming(page) {
  const [said, picture] = [h("span.soft", { role: "status" }), h("div")];
  const button = h("button", { "data-do": "forming", onclick: () => measure() }, t("forming.measure"));
  let [ended, found] = [false, []];

  async function measure() {
    const given = page.focus.get("given");
    const site = page.pass?.sites.findIndex((one) => one.queries === one.keys) ?? -1;
    if (!given || given.response || site < 0) return (said.textContent = t("forming.text"));
    button.disabled = true;
    try {
      const { checkpoints } = await (await page.call("/inspect/checkpoints")).json();
      found = [];
      for (const [i, { step }] of checkpoints.entries()) {
        said.textContent = t("forming.running", { now: i + 1, all: checkpoints.length });
        const { id } = await (await page.call("/inspect/traces", { ...given, checkpoint: step })).json();
        const { facts, tensors } = await new ServerSource(page.call, id).get("heads", { site });
        if (ended) return;
        found.push({ step, facts, tensors });
      }
      said.textContent = "";
      show();
      await page.look(given); // the pass that was open may have been let go of meanwhile
    } catch (error) {
      said.textContent = error.message;
    }
    button.disabled = false;
  }

  function show() {
    const { facts } = found[0];
    const role = facts.roles.includes(page.focus.get("role")) ? page.focus.get("role") : "induction";
    const heads = found[0].tensors[role].shape[1];
    const lines = facts.layers.flatMap((layer, row) => Array.from({ length: heads }, (_, head) => ({ name: `${layer}.${head}`, points: found.map(({ step, tensors }) => [step, tensors[role].data[row * heads + head]]) })));
    const last = ({ points }) => points.at(-1)[1] || 0;
    const series = lines.filter(({ points }) => points.some(([, value]) => Number.isFinite(value))).sort((a, b) => last(b) - last(a)).slice(0, MOST);
    const select = h("select", { name: "role", onchange: () => (page.focus.set({ role: select.value }), show()) }, facts.roles.map((name) => h("option", { value: name, selected: name === role }, t(`heads.${name}`))));
    const title = t("forming.title", { role: t(`heads.${role}`) });
    const rows = lines.flatMap(({ name, points }) => points.map(([step, value]) => [role, name, step, value]));
    const drawn = series.length ? chart({ series, label: title, x: t("curves.step") }, { height: 200, zero: true }) : h("p.soft", {}, t("forming.none"));
    const go = (name, step) => {
      const [layer, head] = name.split(".").map(Number);
      page.focus.set({ view: "attention", layer, head });
      nearest(step);
    };
    const cell = (name, [step, value]) => h("td.right", {}, h("button.quiet", { title: `${t("curves.step")} ${step}`, onclick: () => go(name, step) }, number(value, 3)));
    const row = ({ name, points }) => h("tr", { "data-head": name }, h("th", { scope: "row" }, name), points.map((point) => cell(name, point)));
    const numbers = h("table", { "data-forming": role }, h("tbody", {}, series.map(row)));
    fill(picture, h("div.controls", {}, h("label", {}, t("forming.role"), select)), h("h3", {}, title), drawn, series.length > 0 && [legend(series.map(({ name }) => name)), h("div.scroll", { tabindex: 0, role: "region", "aria-label": title }, numbers)], exports({ csv: () => download("heads-over-steps.csv", csv([["role", "head", "step", "score"], ...rows]), "text/csv") }));
  }

  return { element: h("div", {}, h("div.controls", {}, button, said), picture), destroy: () => (ended = true) };
}
