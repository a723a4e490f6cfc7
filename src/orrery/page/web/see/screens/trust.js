// Whether what is shown can be believed: the laws that the code keeps, and the badges of the views seen.
import { badge } from "#see/checks.js";
import { fill, h, number } from "#see/dom.js";
import { module } from "#see/screens/inside.js";
import { addWords, said, t } from "#see/words.js";
import { drawLaws } from "#see/views/laws.js";

addWords({
  en: { "trust.laws": "Laws", "trust.model": "Check the laws of {family}", "trust.default": "Check every family", "trust.stop": "Stop", "trust.running": "Checking: {said}", "trust.begins": "it begins", "trust.failed": "The run came to no end: {why}", "trust.none": "Nothing is known yet. A run here takes seconds for one family and a minute or two for all; a file that orrery verify --json wrote is shown with --laws FILE, or as laws.json in the folder of the run.", "trust.badges": "Views of this session", "trust.seen": "No view was looked at yet.", "trust.view": "View", "trust.text": "Text", "trust.checks": "Checks", "trust.closest": "Closest to its bound", "trust.saved": "This page was saved without evidence of the laws." },
  de: { "trust.laws": "Gesetze", "trust.model": "Gesetze von {family} prüfen", "trust.default": "Alle Familien prüfen", "trust.stop": "Anhalten", "trust.running": "Geprüft wird: {said}", "trust.begins": "es beginnt", "trust.failed": "Der Lauf kam zu keinem Ende: {why}", "trust.none": "Noch ist nichts bekannt. Ein Lauf hier dauert für eine Familie Sekunden und für alle ein, zwei Minuten; eine Datei von orrery verify --json wird mit --laws DATEI gezeigt oder als laws.json im Ordner des Laufs.", "trust.badges": "Ansichten dieser Sitzung", "trust.seen": "Noch wurde keine Ansicht betrachtet.", "trust.view": "Ansicht", "trust.text": "Text", "trust.checks": "Prüfungen", "trust.closest": "Am nächsten an der Schranke", "trust.saved": "Diese Seite wurde ohne Nachweis der Gesetze gespeichert." },
});

/** Milliseconds between two questions how far a run is. */
const PAUSE = 1000;

/** Draw the screen; returns what ends it. */
export async function draw(element, page) {
  const parts = { lamp: h("div"), buttons: h("div.controls"), laws: h("section.view", { "data-view": "laws" }), badges: h("section") };
  fill(element, h("h2", {}, t("trust.laws")), parts.buttons, parts.laws, parts.lamp, h("h2", {}, t("trust.badges")), parts.badges);
  const { draw: drawSaved } = await module("laws");
  await badges(parts.badges, page);
  if (!page.live) {
    if (page.model.has("laws")) await drawSaved(parts.laws, { page, check: (checks) => badge(parts.lamp, checks) });
    else fill(parts.laws, h("p.soft", {}, t("trust.saved")));
    return {};
  }
  const screen = new Laws(page, parts);
  await screen.ask();
  return screen;
}

class Laws {
  constructor(page, parts) {
    Object.assign(this, { page, parts, version: "", timer: null, ended: false });
  }

  /** Ask what is known, or begin or end a run; while one is under way, ask again. */
  async ask(of = null) {
    clearTimeout(this.timer);
    try {
      const told = await (await this.page.call(of ? "/inspect/laws" : `/inspect/laws?${new URLSearchParams({ version: this.version })}`, of && { of })).json();
      if (this.ended) return;
      this.show(told);
      if (told.running !== null) this.timer = setTimeout(() => this.ask(), PAUSE);
    } catch (error) {
      if (!this.ended) fill(this.parts.buttons, h("p.failure", { role: "alert" }, error.message));
    }
  }

  show({ family, running, failure, version = "", ...facts }) {
    const go = (of, text) => h("button", { "data-check": of, onclick: () => this.ask(of) }, text);
    const idle = [family && go("model", t("trust.model", { family })), go("default", t("trust.default"))];
    fill(this.parts.buttons, running === null ? idle : [h("span", { role: "status", "data-running": "" }, t("trust.running", { said: running || t("trust.begins") })), go("nothing", t("trust.stop"))], failure && h("p.failure", { role: "alert" }, t("trust.failed", { why: failure })));
    if (facts.cells && version !== this.version) drawLaws(this.parts.laws, facts);
    else if (!version) fill(this.parts.laws, h("p.soft", {}, t("trust.none")));
    this.version = version;
    this.parts.laws.dataset.ready = "true";
  }

  destroy() {
    this.ended = true;
    clearTimeout(this.timer);
  }
}

/** The badges of the views that were looked at, the latest first; a click goes there. */
async function badges(element, page) {
  const seen = [...page.badges.values()].reverse();
  if (!seen.length) return fill(element, h("p.soft", {}, t("trust.seen")));
  await Promise.all(seen.map(({ kind }) => module(kind)));
  const part = (one) => (one.passed ? (one.bound ? one.value / one.bound : 0) : Infinity);
  const row = ({ kind, checks, given, checkpoint }) => {
    const passed = checks.filter((one) => one.passed).length;
    const whole = passed === checks.length;
    const worst = checks.reduce((a, b) => (part(b) > part(a) ? b : a));
    const text = given ? String(given.text ?? given.target ?? given.source ?? Object.keys(given)[0]) : page.session.model;
    const go = () => page.focus.set({ screen: page.views("inside").some((view) => view.kind === kind) ? "inside" : ((page.pass ?? page.session).views.find((view) => view.kind === kind)?.screen ?? "inside"), view: kind });
    return h("tr", { "data-badge": kind }, h("td", {}, h("button.quiet", { onclick: go }, t(`view.${kind}`))), h("td.path", {}, text.length > 60 ? `${text.slice(0, 60)}…` : text, checkpoint !== null && given && h("span.soft", {}, ` · ${number(checkpoint)}`)), h("td", {}, h("span", { class: `law ${whole ? "holds" : "fails"}` }, `${whole ? "●" : "✖"} ${t("checks", { passed, all: checks.length })}`)), h("td", {}, said(worst.name)), h("td.right", {}, t("check.bound", { value: number(worst.value, 2), bound: number(worst.bound, 2) })));
  };
  const head = ["view", "text", "checks", "closest"].map((name) => h("th", { scope: "col", colspan: name === "closest" ? 2 : null }, t(`trust.${name}`)));
  return fill(element, h("div.scroll", { tabindex: 0, role: "region", "aria-label": t("trust.badges") }, h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, seen.map(row)))));
}
