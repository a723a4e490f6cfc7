// The residual stream: its length at every token, what is added to it, and how far a block turns it.
import { fill, h } from "#see/dom.js";
import { following, panel } from "#see/panel.js";
import { said, t } from "#see/words.js";

const words = {
  en: { "view.residual": "Stream", "residual.about": "Each block adds to the stream: x after a block is x before it, what its attention or mixer writes and what its feed-forward writes. Rows are places in the model, columns are tokens.", "residual.stream": "Length of the stream", "residual.added": "Length of what is added", "residual.cosine": "Cosine with the stream before the block" },
  de: { "view.residual": "Strom", "residual.about": "Jeder Block fügt dem Strom etwas hinzu: x nach einem Block ist x davor, was seine Aufmerksamkeit oder sein Mixer schreibt und was seine Feed-forward-Schicht schreibt. Zeilen sind Stellen im Modell, Spalten sind Tokens.", "residual.stream": "Länge des Stroms", "residual.added": "Länge dessen, was hinzukommt", "residual.cosine": "Kosinus mit dem Strom vor dem Block" },
};

async function draw(element, { page, check }) {
  const { facts, tensors, checks } = await page.source.get("residual");
  check(checks);
  const short = (key) => said(key.replace("blocks.", "").replace(".resid_post", "").replace(".added", "").replace("feed_forward", "feed-forward"));
  const signed = page.comparing && { colours: "signed" };
  const panels = [
    ["stream", facts.streams.map(short), signed || { colours: "weight", lowest: 0 }],
    ["added", facts.added.map(short), signed || { colours: "weight", lowest: 0 }],
    ["cosine", facts.streams.slice(1).map(short), signed || { colours: "signed", lowest: -1, highest: 1 }],
  ].filter(([name]) => tensors[name].shape[0]);
  const drawn = panels.map(([name, rows, how]) => panel(page, { name, title: t(`residual.${name}`), tensor: tensors[name], rows, how }));
  fill(element, h("p", {}, t("residual.about")), facts.notes.map((note) => h("p", {}, said(note))), h("div.side", {}, drawn.map((one) => one.element)));
  return following(page, drawn);
}

export default { words, draw };
