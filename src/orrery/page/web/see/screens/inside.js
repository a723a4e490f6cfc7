// One text, seen from its first byte to its last number: a rail of views in the order of computation.
import { slider } from "#see/checkpoints.js";
import { badge } from "#see/checks.js";
import { fill, h, reveal } from "#see/dom.js";
import { explainWith } from "#see/explain.js";
import { knobs } from "#see/lab/knobs.js";
import { strip } from "#see/strip.js";
import { addWords, t } from "#see/words.js";

/**
 * Draw the screen, or another whose views stand on a rail; returns what ends it.
 * @param {{screen?: string, reads?: boolean}} [which] its name, and whether its views show a text
 */
export async function draw(element, page, { screen = "inside", reads = true } = {}) {
  const form = page.live && reads ? ask(page) : null;
  const tokens = h("div.strips");
  const rail = h("nav.rail", { "aria-label": t(`screen.${screen}`) });
  const lamp = h("div");
  const view = h("section.view", { "aria-live": "off" });
  const at = form && page.session.run ? slider(page) : {};
  const turning = form && screen === "inside" ? knobs(page) : {};
  fill(element, h("div.desk", {}, h("div.left", {}, form, at.element, tokens, turning.element, rail, lamp), view));
  const shown = reads ? strip(tokens, page) : {};
  const stage = new Stage(page, screen, rail, view, lamp);
  const ends = [page.listen(() => stage.again()), page.focus.listen((changed) => stage.follow(changed))];
  await stage.again();
  return { destroy: () => [...ends, shown.destroy, at.destroy, turning.destroy, () => stage.clear()].forEach((end) => end?.()) };
}

/** A rail and the one view that stands on it now; other screens use it as well. */
export class Stage {
  constructor(page, screen, rail, element, lamp) {
    Object.assign(this, { page, screen, rail, element, lamp, drawn: null, turn: 0 });
    explainWith(page);
  }

  /** Draw the rail and the chosen view again. */
  async again() {
    const turn = ++this.turn;
    this.clear();
    const views = this.page.views(this.screen).filter(({ kind }) => kind !== "tokens" || this.page.pass);
    const named = await Promise.all(views.map(async ({ kind }) => ({ kind, ...(await module(kind)) })));
    if (turn !== this.turn) return; // it has changed again
    const of = (name) => named.find(({ kind }) => kind === name);
    const chosen = of(this.page.focus.get("view")) ?? of("attention") ?? named[0];
    fill(this.rail, named.map(({ kind }) => h("button.stop", { "aria-current": kind === chosen?.kind ? "page" : null, "data-view": kind, onclick: () => this.page.focus.set({ view: kind }) }, t(`view.${kind}`))));
    reveal(this.rail);
    await this.show(chosen);
  }

  async show(chosen) {
    const turn = ++this.turn;
    this.missed = new Set(); // what changes while it is drawn
    this.all = null;
    fill(this.element);
    badge(this.lamp, []);
    if (!chosen) return fill(this.element, h("p.soft", {}, t("look.first")));
    this.kind = chosen.kind;
    this.element.dataset.view = chosen.kind;
    this.element.setAttribute("aria-label", t(`view.${chosen.kind}`));
    try {
      const drawn = await chosen.draw(this.element, { page: this.page, check: (checks) => turn === this.turn && this.told(checks) });
      if (turn !== this.turn) return drawn?.destroy?.();
      this.drawn = drawn;
      if (this.missed.size) await drawn?.focus?.(this.missed);
    } catch (error) {
      if (turn === this.turn) fill(this.element, h("p.failure", { role: "alert" }, t("failed", { why: error.message })));
    }
    if (turn === this.turn) this.element.dataset.ready = "true";
  }

  /** Show what a view says of its numbers, and keep it for the screen that collects it. */
  told(checks) {
    badge(this.lamp, checks);
    this.page.note(this.kind, checks);
  }

  /** Tell the view what has changed; while it draws that the stage is not ready. */
  async follow(changed) {
    if (changed.has("view")) return this.again();
    if (!this.drawn) return changed.forEach((name) => this.missed?.add(name));
    const { turn, element: { dataset } } = this;
    const work = this.drawn.focus?.(changed);
    if (!work?.then) return;
    delete dataset.ready;
    const all = (this.all = Promise.all([this.all, work]));
    await all;
    if (turn === this.turn && all === this.all) dataset.ready = "true";
  }

  /** The next or the previous stop of the rail. */
  step(by) {
    const kinds = [...this.rail.querySelectorAll("button")].map((button) => button.dataset.view);
    const next = kinds[(kinds.indexOf(this.kind) + by + kinds.length) % kinds.length];
    this.page.focus.set({ view: next });
  }

  clear() {
    this.drawn?.destroy?.();
    this.drawn = null;
    delete this.element.dataset.ready;
  }
}

const MODULES = new Map();

/** The module that draws a view, with its words. */
export async function module(kind) {
  if (!MODULES.has(kind)) {
    const found = (await import(`#see/views/${kind}.js`)).default;
    addWords(found.words);
    MODULES.set(kind, found);
  }
  return MODULES.get(kind);
}

/** What is looked into: a text or an image, or a source with what was written. */
function ask(page) {
  const given = page.focus.get("given") ?? {};
  const two = page.session.reads_pair;
  const image = page.session.reads_image && h("input", { type: "file", name: "image", accept: "image/png,image/jpeg,image/webp,image/gif,image/bmp" });
  const text = !image && h("textarea", { name: "text", rows: 2, required: true, value: given.text ?? given.source ?? page.session.example ?? "" });
  const target = h("textarea", { name: "target", rows: 2, value: given.target ?? "" });
  const button = h("button.go", { type: "submit" }, t("look"));
  page.returned = (to) => [text, target].forEach((one) => one && (one.value = to[one === target ? "target" : two ? "source" : "text"] ?? ""));
  const told = h("p.failure", { role: "alert", hidden: true });
  const memory = h("span.soft", { "data-memory": "" });
  const look = async (event) => {
    event?.preventDefault();
    button.disabled = true;
    button.textContent = t("working");
    told.hidden = true;
    page.say(t("looking"));
    try {
      const read = image ? { image: (await content(image.files[0])) ?? given.image } : { [two ? "source" : "text"]: text.value };
      const asked = two ? { ...read, target: target.value } : read;
      if (!image) memory.textContent = t("look.memory", await (await page.call("/inspect/cost", asked)).json());
      await page.look(asked);
      page.say("");
    } catch (error) {
      told.hidden = false;
      told.textContent = error.message;
    }
    button.disabled = false;
    button.textContent = t("look");
  };
  return h("form.ask", { onsubmit: look }, h("label", {}, t(image ? "image" : two ? "source" : "text"), image || text), two && h("label", {}, t(page.session.reads_source ? "target" : "text"), target), button, memory, told);
}

/** A file as text that JSON can hold; null where none was chosen. */
function content(file) {
  if (!file) return null;
  return new Promise((resolve, reject) => {
    const reader = Object.assign(new FileReader(), { onload: () => resolve(reader.result), onerror: () => reject(reader.error) });
    reader.readAsDataURL(file);
  });
}
