// Words that a reader may not know open their entry: the first of each in a view becomes a button.
import { fill, h } from "#see/dom.js";
import de from "#see/glossary/de.js";
import en from "#see/glossary/en.js";
import { t } from "#see/words.js";

const TABLES = { en, de };
/** What explains in words; tables of numbers and what can be clicked already are left as they are. */
const TEXTS = ".view p, .view h3, .view figcaption, .view caption, .view thead th";
const PATTERNS = new Map();

const entries = () => TABLES[document.documentElement.lang] ?? en;

/** One expression for all words of a language, a group for each. */
function pattern() {
  const { lang } = document.documentElement;
  if (!PATTERNS.has(lang)) {
    const groups = Object.entries(entries()).map(([name, [, text]]) => `(?<${name}>${text})`);
    PATTERNS.set(lang, new RegExp(`(?<![\\p{L}\\d_.])(?:${groups.join("|")})(?![\\p{L}\\d_]|\\.\\d)`, lang === "de" ? "u" : "iu"));
  }
  return PATTERNS.get(lang);
}

/** Look for words in everything that is drawn into an element from now on. */
export function watchWords(element) {
  const watcher = new MutationObserver((changes) => {
    const texts = new Set();
    for (const { target, addedNodes } of changes) {
      if (target.matches?.(TEXTS)) texts.add(target);
      for (const node of addedNodes) if (node.nodeType === 1 && !node.matches(".term")) [node, ...node.querySelectorAll(TEXTS)].forEach((one) => one.matches(TEXTS) && texts.add(one));
    }
    texts.forEach(link);
  });
  watcher.observe(element, { childList: true, subtree: true });
}

function link(text) {
  if (!text.isConnected || text.querySelector("button, code") || text.matches("[data-over], [role=status]")) return;
  const view = text.closest(".view");
  for (const node of [...text.childNodes].filter(({ nodeType }) => nodeType === 3)) {
    for (let rest = node, from = 0; rest; ) {
      const found = pattern().exec(rest.data.slice(from));
      if (!found) break;
      const name = Object.keys(found.groups).find((one) => found.groups[one] !== undefined);
      if (view.querySelector(`.term[data-term=${name}]`)) {
        from += found.index + found[0].length;
        continue;
      }
      const word = rest.splitText(from + found.index);
      rest = word.splitText(found[0].length);
      from = 0;
      word.replaceWith(h("button.term", { type: "button", "data-term": name, title: t("glossary.open"), onclick: (event) => (event.stopPropagation(), glossary(name)) }, found[0]));
    }
  }
}

/** Show one entry, or all of them. */
export function glossary(name = null) {
  const shown = Object.entries(entries()).filter(([one]) => name === null || one === name);
  const title = name === null ? t("glossary") : shown[0][1][0];
  const dialog = h("dialog.glossary", { "aria-label": title, onclose: () => dialog.remove() });
  const all = name !== null && h("button.quiet", { onclick: () => (dialog.close(), glossary()) }, t("glossary.all"));
  const close = h("button.go", { autofocus: true, onclick: () => dialog.close() }, t("keys.close"));
  const list = shown.map(([one, [word, , meaning]]) => [h("dt", { "data-entry": one }, word), h("dd", {}, meaning)]);
  fill(dialog, name === null && h("h2", {}, title), h("dl", {}, list), h("div.controls", {}, close, all));
  document.body.append(dialog);
  dialog.showModal();
}
