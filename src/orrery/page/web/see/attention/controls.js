// What can be chosen about the drawing of an attention; the focus holds the choices, so that an address does.
import { h } from "#see/dom.js";
import { t } from "#see/words.js";

/** The choices by name; every one has a value, whatever the address says. */
export function choices(page, site) {
  const { focus } = page;
  const drawing = focus.get("drawing");
  const mass = focus.get("mass");
  const measure = focus.get("measure");
  if (page.comparing) return { drawing: drawing === "bars" ? "bars" : "map", colours: "signed", measure: "weight", valued: false, mean: focus.get("mean") === true, withoutFirst: false, mass: 1 };
  return {
    drawing: ["map", "lines", "bars"].includes(drawing) ? drawing : "map",
    measure: ["value", "causal"].includes(measure) ? measure : "weight",
    colours: ["weight", "grey"].includes(focus.get("colours")) ? focus.get("colours") : site.queries === site.keys ? "weight" : "grey",
    valued: measure === "value",
    mean: focus.get("mean") === true,
    withoutFirst: focus.get("withoutFirst") === true,
    mass: mass > 0 && mass <= 1 ? mass : 0.9,
  };
}

export const NAMES = new Set(["drawing", "colours", "measure", "mean", "withoutFirst", "also"]);

/** The row of choices. */
export function controls(page, site) {
  const now = choices(page, site);
  const { sites } = page.pass;
  const set = (name, value) => page.focus.set({ [name]: value });
  const choose = (label, name, options, given) =>
    h("label", {}, t(label), h("select", { "data-choice": name, onchange: (event) => given(event.target.value) }, options.map(([value, text, chosen]) => h("option", { value, selected: chosen }, text))));
  const tick = (label, name) => h("label", {}, h("input", { type: "checkbox", "data-choice": name, checked: now[name], onchange: (event) => set(name, event.target.checked) }), t(label));
  return [
    sites.length > 1 && choose("attention.site", "site", sites.map(({ path }, i) => [String(i), path, i === site.number]), (value) => set("site", Number(value))),
    choose("attention.drawing", "drawing", (page.comparing ? ["map", "bars"] : ["map", "lines", "bars"]).map((name) => [name, t(`attention.${name}`), name === now.drawing]), (value) => set("drawing", value)),
    !page.comparing && choose("attention.measure", "measure", ["weight", "value", ...(page.live ? ["causal"] : [])].map((name) => [name, t(`attention.as.${name}`), name === now.measure]), (value) => set("measure", value)),
    now.drawing === "map" && !page.comparing && choose("attention.colours", "colours", [["weight", t("attention.blue"), now.colours === "weight"], ["grey", t("attention.grey"), now.colours === "grey"]], (value) => set("colours", value)),
    now.drawing !== "lines" && site.heads > 1 && tick("attention.all", "mean"),
    !page.comparing && tick("attention.hide", "withoutFirst"),
  ];
}
