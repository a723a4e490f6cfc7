// The header: the model, the screens, and what holds for all of them.
import { fill, h, reveal, whole } from "#see/dom.js";
import { download } from "#see/export.js";
import { glossary } from "#see/glossary.js";
import { help } from "#see/keys.js";
import { FRAMED } from "#see/page.js";
import { scheme } from "#see/palette.js";
import { LANGUAGES, t, useLanguage } from "#see/words.js";

/** Draw the header for a screen. */
export function header(element, page, screen) {
  const { session } = page;
  const tabs = session.screens.map((name) =>
    h("button.tab", { "aria-current": name === screen ? "page" : null, "data-screen": name, onclick: () => page.focus.set({ screen: name }) }, t(`screen.${name}`)),
  );
  const chooser = h(
    "select.quiet",
    { "aria-label": t("language"), onchange: (event) => page.focus.set({ language: useLanguage(event.target.value) }) },
    Object.entries(LANGUAGES).map(([code, name]) => h("option", { value: code, selected: code === document.documentElement.lang }, name)),
  );
  const facts = { family: session.family ?? "", parameters: whole(session.parameters), dtype: session.dtype, device: session.device };
  const [about, name] = [t("model.facts", facts), h("strong", {}, session.model)];
  const buttons = [
    theme(page),
    page.live && h("button.quiet", { onclick: () => save(page), "data-tool": "save" }, t("save")),
    !FRAMED && h("button.quiet", { onclick: () => copy(page), "data-tool": "link" }, t("link")),
    h("button.quiet", { onclick: () => glossary(), "data-tool": "glossary" }, t("glossary")),
    h("button.quiet", { onclick: help, "data-tool": "help" }, t("help")),
  ];
  const nav = h("nav.tabs", { "aria-label": "Orrery" }, tabs);
  const more = h("div.more", { id: "more" }, h("div.model", {}, name, h("span.soft", {}, about), !page.live && h("span.soft", {}, t("offline"))), h("div.tools", {}, chooser, buttons));
  fill(element, nav, menu(element), more);
  reveal(nav);
}

/** On a phone what is no screen stands behind one button, so that the header is one line. */
function menu(element) {
  const turn = () => button.setAttribute("aria-expanded", String(element.classList.toggle("open")));
  const button = h("button.menu", { "aria-expanded": String(element.classList.contains("open")), "aria-controls": "more", "aria-label": t("menu"), onclick: turn }, "☰");
  return button;
}

function theme(page) {
  const turn = () => useTheme(page, scheme() === "dark" ? "light" : "dark");
  return h("button.quiet", { onclick: turn, "data-tool": "theme", "aria-label": t("theme") }, "◐");
}

/** Be light or dark; "" is as the system says. */
export function useTheme(page, theme) {
  document.documentElement.dataset.theme = theme;
  page.focus.set({ theme });
  page.tell();
}

/** Keep the pass as one file; the server puts everything into it that its views ask for. */
async function save(page) {
  if (!page.source) return page.say(t("save.none"));
  const answer = await page.call(`/inspect/traces/${page.pass.id}/page.html`).catch((error) => page.say(error.message));
  if (answer) download("inside.html", await answer.arrayBuffer(), "text/html");
}

async function copy(page) {
  const copied = await navigator.clipboard?.writeText(location.href).then(() => true, () => false);
  page.say(t(copied ? "link.done" : "link.none"));
}
