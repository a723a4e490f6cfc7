// A form for any edit: what is done, to which tensor, at which places.
import { fill, h } from "#see/dom.js";
import { t } from "#see/words.js";

/** What each operation asks for. */
const FIELDS = {
  zero: ["at", "head", "channel", "position"], mean: ["at", "head", "channel", "position", "from"], scale: ["at", "scale", "head", "channel", "position"], set: ["at", "value", "head", "channel", "position"],
  patch: ["at", "from", "position", "from_position", "head"], add: ["at", "from", "from_position", "vector", "scale", "position"], mask: ["at", "key", "position", "head"], replace: ["at", "position", "token"], rescale: ["at", "scale"], rebase: ["at", "value"],
};
const NUMBERS = new Set(["scale", "value"]);
const TEXTS = new Set(["at", "from", "token"]);

/** A number, a list of numbers, or the word itself, which the server refuses by name. */
function read(name, text) {
  if (TEXTS.has(name)) return text;
  if (NUMBERS.has(name)) return Number(text);
  const parts = text.split(/[\s,]+/).filter(Boolean);
  if (!parts.every((part) => Number.isFinite(Number(part)))) return text;
  return parts.length > 1 || name === "vector" ? parts.map(Number) : Number(parts[0]);
}

/** Draw the form; `enter(edit, other)` is told of an edit and of the text that it takes from. */
export function form(page, start, enter) {
  const op = h("select", { name: "op", onchange: () => draw() }, Object.keys(FIELDS).map((name) => h("option", { value: name }, t(["scale", "add"].includes(name) ? `lab.${name}.op` : `lab.${name}`))));
  const fields = h("div.controls");
  const inputs = {};
  const draw = () => {
    const begun = start(op.value);
    for (const name of Object.keys(inputs)) delete inputs[name];
    fill(fields, FIELDS[op.value].map((name) => {
      const list = name === "at" && h("datalist", { id: "lab-keys" }, Object.keys(page.pass?.shapes ?? {}).map((key) => h("option", { value: key })));
      inputs[name] = h("input", { name, type: "text", autocomplete: "off", size: TEXTS.has(name) ? 26 : 6, list: list ? "lab-keys" : null, value: String(begun[name] ?? "") });
      return h("label", {}, t(`lab.${name}`), inputs[name], list);
    }));
  };
  const send = (event) => {
    event.preventDefault();
    const edit = { at: inputs.at.value.trim(), op: op.value };
    for (const [name, { value }] of Object.entries(inputs)) if (name !== "at" && name !== "from" && value.trim()) edit[name] = read(name, value.trim());
    enter(edit, inputs.from?.value.trim() || null);
  };
  draw();
  return h("form.lab-form", { onsubmit: send }, h("div.controls", {}, h("label", {}, t("lab.op"), op)), fields, h("button.go", { "data-lab": "add" }, t("lab.add")));
}
