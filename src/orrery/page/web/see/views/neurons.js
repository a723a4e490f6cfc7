// The channels of a feed-forward that move a token's logit most, and the tokens that each promotes.
import { fill, h, number, visible } from "#see/dom.js";
import { at } from "#see/safetensors.js";
import { t } from "#see/words.js";

const words = {
  en: { "view.neurons": "Feed-forward", "neurons.about": "A channel adds its activation times its row of the output matrix to the stream. Here are those that move the logit of {token} most.", "neurons.channel": "channel", "neurons.activation": "activation", "neurons.effect": "adds to the logit", "neurons.promotes": "promotes", "neurons.all": "All channels together add {value}." },
  de: { "view.neurons": "Feed-forward", "neurons.about": "Ein Kanal fügt dem Strom seine Aktivierung mal seine Zeile der Ausgangsmatrix hinzu. Hier stehen die, die das Logit von {token} am meisten bewegen.", "neurons.channel": "Kanal", "neurons.activation": "Aktivierung", "neurons.effect": "trägt zum Logit bei", "neurons.promotes": "fördert", "neurons.all": "Alle Kanäle zusammen tragen {value} bei." },
};

async function draw(element, { page, check }) {
  let turn = 0;
  const show = async () => {
    const mine = ++turn;
    const layer = page.focus.get("layer", 0);
    const position = page.live ? page.focus.get("query") ?? -1 : -1;
    const token = page.live ? page.focus.get("token") : null;
    const { facts, tensors, checks } = await page.source.get("neurons", { layer, position, token });
    if (mine !== turn) return;
    check(checks);
    const spell = (id) => visible(facts.spelled[id] ?? String(id));
    const { channel, activation, effect, promoted } = tensors;
    const most = Math.max(1e-9, ...effect.data.map(Math.abs));
    const row = (_, n) => h("tr", {}, h("td.right", {}, String(channel.data[n])), h("td.right", {}, number(activation.data[n], 3)), h("td.bar", {}, h("div", { style: { width: `${(100 * Math.abs(effect.data[n])) / most}%`, background: effect.data[n] < 0 ? "var(--look)" : "var(--accent)" } })), h("td.right", {}, number(effect.data[n], 3)), h("td", {}, [...at(promoted, n).data].map((id) => h("span.token", {}, spell(id)))));
    const heads = ["channel", "activation", "", "effect", "promotes"].map((name, i) => h(i === 4 ? "th" : "th.right", { scope: "col" }, name && t(`neurons.${name}`)));
    const chooser = h("label", {}, t("layer"), h("select", { onchange: (event) => page.focus.set({ layer: Number(event.target.value) }) }, facts.layers.map((one) => h("option", { value: String(one), selected: one === facts.layer }, String(one)))));
    fill(element, h("p", {}, t("neurons.about", { token: spell(facts.token) })), h("div.controls", {}, chooser), h("div.scroll", {}, h("table", {}, h("thead", {}, h("tr", {}, heads)), h("tbody", {}, [...channel.data].map(row)))), h("p.number", {}, t("neurons.all", { value: number(facts.all, 4) })));
  };
  await show();
  return { focus: (changed) => ["layer", "query", "token"].some((name) => changed.has(name)) && show() };
}

export default { words, draw };
