// Recurrence, unrolled over the tokens, against attention: how far a token is from another, and what a layer costs.
import { fill, h, number } from "#see/dom.js";
import { arrow, box, label, picture } from "#see/architecture/shapes.js";
import { t } from "#see/words.js";

const [COUNT, EACH] = [7, 70];

export function paths(facts) {
  const chain = h("div.scroll");
  const all = h("div.scroll");
  const told = h("p.number", { "data-pair": "" });
  const recurrent = facts.nodes.some((node) => node.slot === "branch" && node.settings.mask === "past") || facts.kinds.some((kind) => /GRU|LSTM|RNN/.test(kind));
  const attends = facts.nodes.some((node) => node.settings.heads);
  const show = (to) => {
    const place = (i) => 45 + EACH * i;
    const token = (i) => h("g", { class: `part token ${i === to ? "on" : ""}`, role: "button", tabindex: "0", "aria-label": `${t("architecture.inputs")} ${i + 1}`, onpointerenter: () => i !== to && show(i), onfocus: () => i !== to && show(i, true) }, h("circle", { cx: place(i), cy: 170, r: 15 }), label(`x${sub(i + 1)}`, place(i), 175));
    const state = (i) => box({ x: place(i), y: 95, width: 46, height: 30, kind: i <= to ? "recurrence" : "norm", title: `h${sub(i + 1)}` });
    const tokens = Array.from({ length: COUNT }, (_, i) => i);
    const unrolled = picture(520, 200, t("architecture.chain"), tokens.map((i) => [arrow([[place(i), 155], [place(i), 111]], i === 0 ? "on" : "flow"), arrow([[place(i), 80], [place(i), 40]], i === to ? "on" : "flow"), i < COUNT - 1 && arrow([[place(i) + 23, 95], [place(i + 1) - 23, 95]], i < to ? "on" : "flow"), state(i), label(`y${sub(i + 1)}`, place(i), 30)]), tokens.map(token));
    const direct = picture(520, 200, t("architecture.all"), tokens.map((i) => i <= to && arrow([[place(i), 155], [place(to), 111]], i === 0 ? "on" : "flow")), tokens.map((i) => [arrow([[place(i), 80], [place(i), 40]], i === to ? "on" : "flow"), box({ x: place(i), y: 95, width: 46, height: 30, kind: i === to ? "attention" : "norm", title: `z${sub(i + 1)}` }), label(`y${sub(i + 1)}`, place(i), 30)]), tokens.map(token));
    const focused = document.activeElement?.closest?.(".token") ? [...document.activeElement.parentNode.querySelectorAll(".token")].indexOf(document.activeElement) : -1;
    const side = chain.contains(document.activeElement) ? chain : all;
    fill(chain, unrolled);
    fill(all, direct);
    if (focused >= 0) side.querySelectorAll(".token")[to].focus();
    told.textContent = t("architecture.pair", { i: 1, j: to + 1, steps: to });
  };
  show(COUNT - 1);
  const mark = (own) => own && h("span.soft", {}, ` · ${t("architecture.this")}`);
  return h("div", {}, h("div.side", {}, h("figure", {}, h("figcaption", {}, h("strong", {}, t("architecture.chain")), mark(recurrent)), chain), h("figure", {}, h("figcaption", {}, h("strong", {}, t("architecture.all")), mark(attends)), all)), told, table(facts));
}

/** Table 1 of Vaswani et al. 2017 with numbers. */
function table(facts) {
  const d = facts.width || 512;
  const body = h("tbody");
  const input = h("input", { type: "number", name: "tokens", min: 1, max: 1e6, value: Math.min(facts.context || 512, 4096), oninput: () => show() });
  const show = () => {
    const n = Math.max(1, Number(input.value) || 1);
    const rows = [["self", "n² · d", n * n * d, 1, 1], ["recurrent", "n · d²", n * d * d, n, n], ["convolution", "3 · n · d²", 3 * n * d * d, 1, Math.max(1, Math.ceil(Math.log(n) / Math.log(3)))]];
    fill(body, rows.map(([name, formula, work, steps, path]) => h("tr", { "data-layer": name }, h("th", { scope: "row" }, t(`architecture.${name}`)), h("td", {}, formula), h("td.right", {}, number(work, 3)), h("td.right", {}, number(steps)), h("td.right", {}, number(path)))));
  };
  show();
  const heads = [["layer"], ["work", 2], ["sequential"], ["path"]].map(([name, span], i) => h(i > 1 ? "th.right" : "th", { scope: "col", colspan: span ?? null }, t(`architecture.${name}`)));
  return h("div", {}, h("p.soft", {}, t("architecture.table", { d: number(d) })), h("div.controls.narrow", {}, h("label", {}, t("architecture.tokens"), input)), h("div.scroll", {}, h("table", {}, h("thead", {}, h("tr", {}, heads)), body)));
}

const sub = (n) => [...String(n)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");
