// The residual stream: its length at every token, what is added to it, and how far a block turns it.
import { fill, h, number, visible } from "#see/dom.js";
import { download, exports, safetensors, savePng } from "#see/export.js";
import { labelled } from "#see/labelled.js";
import { t } from "#see/words.js";

const words = {
  en: { "view.residual": "Stream", "residual.about": "Each block adds to the stream: x after a block is x before it, what attention writes and what the feed-forward writes. Rows are places in the model, columns are tokens.", "residual.stream": "Length of the stream", "residual.added": "Length of what is added", "residual.cosine": "Cosine with the stream before the block" },
  de: { "view.residual": "Strom", "residual.about": "Jeder Block fügt dem Strom etwas hinzu: x nach einem Block ist x davor, was die Aufmerksamkeit schreibt und was die Feed-forward-Schicht schreibt. Zeilen sind Stellen im Modell, Spalten sind Tokens.", "residual.stream": "Länge des Stroms", "residual.added": "Länge dessen, was hinzukommt", "residual.cosine": "Kosinus mit dem Strom vor dem Block" },
};

async function draw(element, { page, check }) {
  const { facts, tensors, checks } = await page.source.get("residual");
  check(checks);
  const tokens = page.pass.tokens.map(({ text }) => visible(text));
  const short = (key) => key.replace("blocks.", "").replace(".resid_post", "").replace(".added", "").replace("feed_forward", "feed-forward");
  const signed = page.comparing && { colours: "signed" };
  const panels = [
    ["stream", facts.streams.map(short), signed || { colours: "weight", lowest: 0 }],
    ["added", facts.added.map(short), signed || { colours: "weight", lowest: 0 }],
    ["cosine", facts.streams.slice(1).map(short), signed || { colours: "signed", lowest: -1, highest: 1 }],
  ].filter(([name]) => tensors[name].shape[0]);
  const drawn = panels.map(([name, rows, how]) => {
    const { shape, data } = tensors[name];
    const said = h("p.number", {}, " ");
    const over = (row, column) => {
      page.focus.set({ overQuery: column });
      said.textContent = row === null ? " " : `${rows[row]} · ${tokens[column]}: ${number(data[row * shape[1] + column], 4)}`;
      map.mark(row, column);
    };
    const map = labelled({ ...how, values: data, rows: shape[0], columns: shape[1], label: t(`residual.${name}`) }, { rows, columns: tokens }, { over, chosen: (_, query) => page.focus.set({ query }) });
    const ways = { png: () => savePng(`${name}.png`, map.canvas), safetensors: () => download(`${name}.safetensors`, safetensors({ [name]: tensors[name] }), "application/octet-stream") };
    return { map, element: h("section", { "data-panel": name }, h("h3", {}, t(`residual.${name}`)), h("div.scroll", {}, map.element), said, exports(ways)) };
  });
  fill(element, h("p", {}, t("residual.about")), facts.notes.map((note) => h("p", {}, note)), h("div.side", {}, drawn.map((one) => one.element)));
  return {
    focus(changed) {
      if (changed.has("theme")) drawn.forEach(({ map }) => map.update());
      if (changed.has("query")) drawn.forEach(({ map }) => map.mark(null, page.focus.get("query")));
    },
    destroy: () => page.focus.set({ overQuery: null }),
  };
}

export default { words, draw };
