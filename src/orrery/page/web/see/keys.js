// The keyboard: every view answers to the same keys.
import { fill, h } from "#see/dom.js";
import { t } from "#see/words.js";

const MOVES = {
  ArrowLeft: ["query", -1], ArrowRight: ["query", 1], ArrowUp: ["layer", -1], ArrowDown: ["layer", 1], "[": ["head", -1], "]": ["head", 1],
};
const MEASURES = { a: null, v: "value", c: "causal" };
const LIST = [["← →", "keys.token"], ["↑ ↓", "keys.layer"], ["[ ]", "keys.head"], [".", "keys.stop"], ["g", "keys.go"], ["/", "keys.search"], ["a v c", "keys.measure"], ["x", "keys.ablate"], ["m", "keys.mask"], ["z", "keys.undo"], ["d", "keys.diff"], ["Esc", "keys.unlock"], ["?", "keys.help"]];

/** Listen to the keyboard, except where somebody types. */
export function keyboard(page) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
    const move = MOVES[event.key];
    if (move && page.pass) step(page, ...move);
    else if (event.key === "Escape") page.focus.set({ query: null, key: null, head: null });
    else if (event.key === ".") next(page);
    else if (event.key in MEASURES && page.pass) page.focus.set({ view: "attention", measure: MEASURES[event.key] });
    else if (event.key === "d" && page.clean) page.focus.set({ difference: !page.focus.get("difference", false) });
    else if (event.key === "g" && page.pass) prompt(page, "go", goTo);
    else if (event.key === "/" && page.pass) prompt(page, "search", search);
    else if (event.key === "?") help();
    else return;
    event.preventDefault();
  });
}

function step(page, name, by) {
  const site = page.pass.sites[page.focus.get("site", 0)];
  const counts = { query: page.pass.tokens.length, layer: page.pass.blocks, head: site?.heads ?? 0 };
  const now = page.focus.get(name);
  const from = now ?? (by > 0 ? -1 : counts[name]);
  if (counts[name]) page.focus.set({ [name]: Math.max(0, Math.min(counts[name] - 1, from + by)) });
}

function next(page) {
  const kinds = [...document.querySelectorAll(".rail [data-view]")].map((button) => button.dataset.view);
  const now = document.querySelector(".rail [aria-current]")?.dataset.view;
  if (kinds.length) page.focus.set({ view: kinds[(kinds.indexOf(now) + 1) % kinds.length] });
}

function goTo(page, text) {
  const found = /^\s*(\d+)\s*[.,: ]\s*(\d+)\s*$/.exec(text);
  if (found) page.focus.set({ view: "attention", layer: Number(found[1]), head: Number(found[2]) });
}

function search(page, text) {
  const tokens = page.pass.tokens.map((token) => token.text.toLowerCase());
  const from = page.focus.get("query", -1) + 1;
  const order = [...tokens.keys()].map((i) => (i + from) % tokens.length);
  const found = order.find((i) => tokens[i].includes(text.toLowerCase()));
  if (text && found !== undefined) page.focus.set({ query: found });
}

function prompt(page, name, use) {
  const input = h("input", { type: "text", autocomplete: "off" });
  const dialog = h("dialog", { onclose: () => dialog.remove() });
  const enter = (event) => {
    event.preventDefault();
    use(page, input.value);
    dialog.close();
  };
  fill(dialog, h("form", { onsubmit: enter }, h("label", {}, t(name), input)));
  document.body.append(dialog);
  dialog.showModal();
}

/** Show the list of keys. */
export function help() {
  const dialog = h("dialog.keys", { "aria-label": t("keys.title"), onclose: () => dialog.remove() });
  const rows = LIST.map(([keys, name]) => h("tr", {}, h("td", {}, h("kbd", {}, keys)), h("td", {}, t(name))));
  fill(dialog, h("h2", {}, t("keys.title")), h("table", {}, h("tbody", {}, rows)), h("button.go", { onclick: () => dialog.close() }, t("keys.close")));
  document.body.append(dialog);
  dialog.showModal();
}
