// How answers are drawn: a field left empty leaves the choice to the model's files.
import { h } from "#see/dom.js";
import { t } from "#see/words.js";

const FIELDS = [
  ["temperature", 0, 2, 0.05],
  ["top_p", 0.01, 1, 0.01],
  ["top_k", 1, 1000000, 1],
  ["max_tokens", 1, 1000000, 1],
  ["seed", 0, 2 ** 53 - 1, 1],
];

/** The settings before anybody changes them. */
export const usual = (context) => ({ temperature: null, top_p: null, top_k: null, max_tokens: Math.min(256, Math.max(1, Math.floor(context / 4))), seed: null });

/** Draw a field for each setting; changes go into `settings`. */
export function panel(settings) {
  const field = ([name, min, max, step]) =>
    h(
      "label",
      { title: t(`chat.about.${name}`) },
      t(`chat.${name}`),
      h("input", { type: "number", name, min, max, step, value: settings[name] ?? "", placeholder: t(name === "seed" ? "chat.any" : "chat.usual"), oninput: (event) => (settings[name] = event.target.value === "" ? null : Number(event.target.value)) }),
    );
  return h("div.fields", {}, FIELDS.map(field));
}

/** The settings for another answer to the same words: with a seed, each answer counts on from it. */
export function forAnswer(settings, number) {
  return { ...settings, seed: settings.seed === null ? null : settings.seed + number };
}
