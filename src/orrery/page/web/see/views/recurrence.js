// The inside of a mixer with a state: a heat map of each of its values, channels by tokens.
import { fill, h } from "#see/dom.js";
import { following, panel } from "#see/panel.js";
import { t } from "#see/words.js";

const words = {
  en: { "view.recurrence": "State", "recurrence.about": "A mixer with a state reads one token after the other. Each picture is one value of its steps: rows are the channels that change most over the text, columns are tokens. What is between 0 and 1 in a forget gate is how much of the state a token keeps.", "recurrence.mixer": "Mixer", "recurrence.of": "{n} of {all} channels" },
  de: { "view.recurrence": "Zustand", "recurrence.about": "Ein Mixer mit Zustand liest ein Token nach dem anderen. Jedes Bild ist ein Wert seiner Schritte: Zeilen sind die Kanäle, die sich im Text am meisten ändern, Spalten sind Tokens. Was in einem Vergessens-Gate zwischen 0 und 1 steht, ist, wie viel vom Zustand ein Token behält.", "recurrence.mixer": "Mixer", "recurrence.of": "{n} von {all} Kanälen" },
};

async function draw(element, { page, check }) {
  let stop = {};
  const show = async () => {
    const { facts, tensors, checks } = await page.source.get("recurrence", { mixer: page.focus.get("mixer", 0) });
    check(checks);
    const chooser = h("label", {}, t("recurrence.mixer"), h("select", { onchange: (event) => page.focus.set({ mixer: Number(event.target.value) }) }, facts.mixers.map((one, n) => h("option", { value: String(n), selected: n === facts.mixer }, one))));
    const drawn = Object.entries(facts.channels).map(([name, channels]) => {
      const signed = tensors[name].data.some((one) => one < 0);
      const title = `${name.replaceAll("_", " ")} (${t("recurrence.of", { n: channels.length, all: facts.widths[name] })})`;
      return panel(page, { name, title, tensor: tensors[name], rows: channels.map(String), how: signed ? { colours: "signed" } : { colours: "weight", lowest: 0 } });
    });
    fill(element, h("p", {}, t("recurrence.about")), h("div.controls", {}, chooser), h("div.side", {}, drawn.map((one) => one.element)));
    stop = following(page, drawn);
  };
  await show();
  return { focus: (changed) => (changed.has("mixer") ? show() : stop.focus(changed)), destroy: () => stop.destroy() };
}

export default { words, draw };
