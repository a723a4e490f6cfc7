// The words of the page, one table a language. A view brings those of its own.
import de from "#see/words/de.js";
import en from "#see/words/en.js";
import SAID from "#see/words/said.js";

export const LANGUAGES = { en: "English", de: "Deutsch" };
const TABLES = { en: { ...en }, de: { ...de } };
let language = "en";

/** Choose the language: what is asked for, else the browser's, else English. */
export function useLanguage(asked) {
  language = [asked, navigator.language?.slice(0, 2), "en"].find((one) => one in TABLES);
  document.documentElement.lang = language;
  return language;
}

/** Add a view's words: `{en: {...}, de: {...}}`. */
export function addWords(tables = {}) {
  for (const [name, table] of Object.entries(tables)) Object.assign((TABLES[name] ??= {}), table);
}

/** What a name says in the chosen language; `{x}` stands for a value. */
export function t(name, values = {}) {
  const text = TABLES[language][name] ?? TABLES.en[name] ?? name;
  return text.replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole);
}

const PATTERNS = Object.entries(SAID).map(([from, to]) => [new RegExp(`^${from.replace(/[.*+?^$()|[\]\\]/g, "\\$&").replaceAll("{}", "(.+)")}$`), to]);

/** A sentence of the server, which speaks English, in the chosen language; one that has no translation stays. */
export function said(text) {
  if (language !== "de") return text;
  for (const [pattern, to] of PATTERNS) {
    const found = pattern.exec(text);
    if (found) return found.slice(1).reduce((told, part) => told.replace("{}", () => part), to);
  }
  return text;
}
