// Explain a number: any tensor of the pass at any place, as a tree of formulas down to weights and tokens.
import { fill, h } from "#see/dom.js";
import { tree } from "#see/explain.js";
import { t } from "#see/words.js";

const words = {
  en: { "view.explain": "Explain a number", "explain.about": "Every number follows from others. Open an operand to see where it comes from, down to weights and the row of a token.", "explain.key": "Tensor", "explain.index": "Place", "explain.go": "Explain", "explain.any": "Numbers that other views show as links open here as well." },
  de: { "view.explain": "Eine Zahl erklären", "explain.about": "Jede Zahl folgt aus anderen. Ein geöffneter Operand zeigt, woher er kommt, bis hinab zu Gewichten und der Zeile eines Tokens.", "explain.key": "Tensor", "explain.index": "Stelle", "explain.go": "Erklären", "explain.any": "Auch Zahlen, die andere Ansichten als Verweis zeigen, öffnen sich so." },
};

async function draw(element, { page, check }) {
  const root = h("div", { "data-root": "" });
  const shapes = page.pass.shapes;
  const key = h("input", { name: "key", list: "keys-of-the-pass", autocomplete: "off", spellcheck: "false", size: 28 });
  const index = h("input", { name: "index", autocomplete: "off", size: 10 });
  const shape = h("span.soft");
  const told = () => (shape.textContent = key.value in shapes ? `[${shapes[key.value].slice(1).join(", ")}]` : "");
  const go = (event) => {
    event.preventDefault();
    page.focus.set({ number: key.value ? { key: key.value, index: index.value || shapes[key.value]?.slice(1).map(() => 0).join(",") } : null });
  };
  const show = async () => {
    const asked = page.focus.get("number");
    const { facts, checks } = await tree(root, asked?.key ?? null, (asked?.index ?? "").split(","));
    check(checks);
    if (!facts) return;
    key.value = facts.key;
    index.value = facts.index.join(",");
    told();
  };
  key.addEventListener("input", told);
  const form = page.live && h("form.controls", { onsubmit: go }, h("label", {}, t("explain.key"), key), h("datalist", { id: "keys-of-the-pass" }, Object.keys(shapes).map((name) => h("option", { value: name }))), h("label", {}, t("explain.index"), index), shape, h("button.go", { type: "submit" }, t("explain.go")));
  fill(element, h("p", {}, t("explain.about")), form, root, h("p.soft", {}, t("explain.any")));
  await show();
  return {
    focus: (changed) => changed.has("number") && show(),
  };
}

export default { words, draw };
