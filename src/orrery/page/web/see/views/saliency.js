// Which tokens a prediction depends on: each token coloured by its number.
import { fill, h, visible } from "#see/dom.js";
import { csv, download, exports } from "#see/export.js";
import { shaded } from "#see/shaded.js";
import { t } from "#see/words.js";

const METHODS = ["gradient", "gradient_times_input", "integrated"];
const words = {
  en: { "view.saliency": "Saliency", "saliency.about": "How the logit of {token} depends on what was read. Blue is for, orange against.", "saliency.gradient": "length of the gradient", "saliency.gradient_times_input": "gradient times input", "saliency.integrated": "integrated gradients", "saliency.method": "Method" },
  de: { "view.saliency": "Gradienten", "saliency.about": "Wie das Logit von {token} von dem abhängt, was gelesen wurde. Blau spricht dafür, Orange dagegen.", "saliency.gradient": "Länge des Gradienten", "saliency.gradient_times_input": "Gradient mal Eingabe", "saliency.integrated": "integrierte Gradienten", "saliency.method": "Methode" },
};

async function draw(element, { page, check }) {
  const body = h("div");
  let turn = 0;
  const show = async () => {
    const mine = ++turn;
    const method = page.focus.get("saliency", "gradient");
    const position = page.live ? page.focus.get("query") ?? -1 : -1;
    const token = page.live ? page.focus.get("token") : null;
    const { facts, tensors, checks } = await page.source.get("saliency", { method, position, token });
    if (mine !== turn) return;
    check(checks);
    const streams = ["source", "tokens"].filter((name) => tensors[name] && page.pass[name].length);
    const most = Math.max(1e-12, ...streams.flatMap((name) => [...tensors[name].data].map(Math.abs)));
    const rows = streams.flatMap((name) => [...tensors[name].data].map((value, place) => [page.token(name, place), value]));
    fill(
      body,
      h("p", {}, t("saliency.about", { token: visible(facts.spelled[facts.token] ?? String(facts.token)) })),
      streams.map((name) => h("p.said", { "data-stream": name }, shaded(page.pass[name], tensors[name].data, most))),
      exports({ csv: () => download("saliency.csv", csv([["token", method], ...rows]), "text/csv") }),
    );
  };
  const methods = page.live ? METHODS : METHODS.slice(0, 2);
  const chooser = h("select", { onchange: (event) => page.focus.set({ saliency: event.target.value }) }, methods.map((name) => h("option", { value: name, selected: name === page.focus.get("saliency", "gradient") }, t(`saliency.${name}`))));
  fill(element, h("div.controls", {}, h("label", {}, t("saliency.method"), chooser)), body);
  await show();
  return { focus: (changed) => ["saliency", "query", "token"].some((name) => changed.has(name)) && show() };
}

export default { words, draw };
