// The logit lens: rows are blocks, columns are tokens; a cell says what the model would say there.
import { fill, h, number, visible } from "#see/dom.js";
import { csv, download, exports, safetensors, savePng } from "#see/export.js";
import { labelled } from "#see/labelled.js";
import { at } from "#see/safetensors.js";
import { t } from "#see/words.js";

const words = {
  en: { "view.lens": "Lens", "lens.about": "What the model would say if it stopped after a block: the stream of that block through the final norm and the head. The last row is what it says.", "lens.target": "log p of the token that follows", "lens.entropy": "entropy", "lens.best": "log p of the likeliest token", "lens.show": "Colour", "lens.clean": "clean", "lens.edited": "edited", "lens.row": "after", "lens.says": "says", "lens.rank": "rank of the token that follows" },
  de: { "view.lens": "Linse", "lens.about": "Was das Modell sagte, wenn es nach einem Block aufhörte: der Strom dieses Blocks durch die letzte Norm und den Kopf. Die letzte Zeile ist, was es sagt.", "lens.target": "log p des folgenden Tokens", "lens.entropy": "Entropie", "lens.best": "log p des wahrscheinlichsten Tokens", "lens.show": "Farbe", "lens.clean": "ohne Eingriffe", "lens.edited": "mit Eingriffen", "lens.row": "nach", "lens.says": "sagt", "lens.rank": "Rang des folgenden Tokens" },
};

async function draw(element, { page, check }) {
  const { facts, tensors, checks } = await page.source.get("lens");
  check(checks);
  const [rows, columns] = tensors.id.shape;
  const names = facts.names.map((name) => name.replace(/^.*blocks\.(\d+)\.resid_post$/, "$1"));
  const tokens = page.pass.tokens.map(({ text }) => visible(text));
  const kinds = {
    target: { values: tensors.target.data, colours: "weight", lowest: -10, highest: 0 },
    best: { values: tensors.best.data, colours: "weight", lowest: -10, highest: 0 },
    entropy: { values: tensors.entropy.data, colours: "weight", lowest: 0 },
  };
  if (facts.difference) for (const [name, { values }] of Object.entries(kinds)) kinds[name] = { values, colours: "signed" };
  const kind = () => kinds[page.focus.get("lens", "target")] ?? kinds.target;
  const chooser = h("select", { onchange: (event) => page.focus.set({ lens: event.target.value }) }, Object.keys(kinds).map((name) => h("option", { value: name, selected: kinds[name] === kind() }, t(`lens.${name}`))));
  const map = labelled({ ...kind(), rows, columns, label: t("view.lens") }, { rows: names, columns: tokens }, { over: (layer, query) => page.focus.set({ overLayer: layer, overQuery: query }), chosen: (layer, query) => page.focus.set({ lensRow: layer, query }) });
  const detail = h("div");
  const told = () => {
    const row = page.focus.get("overLayer") ?? page.focus.get("lensRow", rows - 1);
    const query = page.focus.get("overQuery") ?? page.focus.get("query", columns - 1);
    map.mark(row, query);
    if (row >= rows || query >= columns) return;
    const says = (before, told) => {
      const [ids, logs] = ["id", "log_probability"].map((name) => at(at(tensors[before + name], row), query).data);
      const line = (id, n) => h("tr", {}, h("td.path", {}, visible(told.spelled[id])), h("td.right", {}, number(logs[n], 3)), h("td.right", {}, number(Math.exp(logs[n]), 3)));
      return h("table", {}, facts.difference && h("caption", {}, t(before ? "lens.clean" : "lens.edited")), h("thead", {}, h("tr", {}, [t("lens.says"), "log p", "p"].map((text, i) => h(i ? "th.right" : "th", { scope: "col" }, text)))), h("tbody", {}, [...ids].map(line)));
    };
    const rank = tensors.rank.data[row * columns + query];
    fill(detail, h("h3", {}, `${tokens[query]} · ${t("lens.row")} ${names[row]}`), facts.difference && says("clean.", facts.clean), says("", facts), rank >= 0 && h("p.number", {}, `${t("lens.rank")}: ${rank + 1}`));
  };
  const ways = {
    png: () => savePng("lens.png", map.canvas),
    csv: () => download("lens.csv", csv([["", ...tokens], ...names.map((name, i) => [name, ...kind().values.slice(i * columns, (i + 1) * columns)])]), "text/csv"),
    safetensors: () => download("lens.safetensors", safetensors({ target: tensors.target, entropy: tensors.entropy, log_probability: tensors.log_probability }), "application/octet-stream"),
  };
  fill(element, h("p", {}, t("lens.about")), h("div.controls", {}, h("label", {}, t("lens.show"), chooser)), h("div.side", {}, h("div.scroll", {}, map.element), detail), exports(ways));
  told();
  return {
    focus(changed) {
      if (changed.has("lens")) map.update({ highest: undefined, lowest: undefined, ...kind() });
      told();
    },
    destroy: () => page.focus.set({ overLayer: null, overQuery: null }),
  };
}

export default { words, draw };
