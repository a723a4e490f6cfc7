// What can be turned while one looks: the scale of attention, the base of positions, a head, a cell. The shown head answers at once, the whole pass follows.
import { fill, h, number } from "#see/dom.js";
import { gestures, same } from "#see/lab/edits.js";
import words from "#see/lab/knobs_words.js";
import { addWords, t } from "#see/words.js";

addWords(words);

/** Milliseconds without a movement after which the whole pass runs. */
const STILL = 150;

/** @returns {{element: HTMLElement, destroy: () => void}} */
export function knobs(page) {
  const one = new Knobs(page);
  const ends = [page.listen(() => one.draw()), page.focus.listen((changed) => ["site", "layer", "head", "query", "key", "edits", "language"].some((name) => changed.has(name)) && one.draw())];
  one.draw();
  return { element: one.element, destroy: () => (clearTimeout(one.waiting), page.focus.set({ overTurned: null }), ends.forEach((end) => end())) };
}

class Knobs {
  constructor(page) {
    Object.assign(this, { page, element: h("details.knobs", { open: page.focus.get("knobs", true), ontoggle: ({ target }) => page.focus.set({ knobs: target.open ? null : false }) }), before: null, shape: "" });
  }

  get site() {
    const { pass, focus } = this.page;
    return pass.sites[Math.min(focus.get("site", 0), pass.sites.length - 1)];
  }

  /** The edits that sliders make: by name what is edited, how, and what it is without. */
  get sliders() {
    const { pass } = this.page;
    const bases = Object.entries(pass.bases).map(([at, base]) => ({ name: at, at, op: "rebase", field: "value", plain: base, to: (x) => (x === Math.log10(base) ? base : Number((10 ** x).toPrecision(3))), from: Math.log10, min: 1, max: 7, step: 0.01, text: t("knobs.base", { name: Object.keys(pass.bases).length > 1 ? at : "θ" }), say: (value) => number(value, 3) }));
    const { scale, path } = this.site ?? {};
    if (scale == null) return bases;
    return [{ name: "scale", at: path, op: "rescale", field: "scale", plain: 1, to: Number, from: Number, min: 0, max: 4, step: 0.05, text: t("knobs.scale"), say: (value) => t("knobs.times", { factor: number(value, 3), scale: number(value * scale, 3) }) }, ...bases];
  }

  /** The edits that are wanted now; while a slider is held the pass is behind. */
  get edits() {
    return this.wanted ?? this.page.focus.get("edits", []);
  }

  edit(slider, edits) {
    return edits.find(({ at, op, off }) => at === slider.at && op === slider.op && !off);
  }

  value(slider, edits) {
    return this.edit(slider, edits)?.[slider.field] ?? slider.plain;
  }

  draw() {
    const { page, element } = this;
    element.hidden = !page.pass?.sites.length;
    if (element.hidden) return;
    const { sliders } = this;
    const shape = JSON.stringify([sliders.map(({ name, plain }) => [name, plain]), this.site?.path, document.documentElement.lang]);
    if (shape !== this.shape) this.build(sliders, shape); // a slider that is held must stay the same element
    if (this.before === null) for (const slider of sliders) this.say(slider, this.value(slider, this.edits));
    fill(this.switches, this.buttons());
  }

  build(sliders, shape) {
    Object.assign(this, { shape, ranges: new Map(), switches: h("div.tools") });
    const range = (slider) => {
      const { name, text, min, max, step } = slider;
      const input = h("input", { type: "range", min, max, step, "data-knob": name, oninput: () => this.move(slider, slider.to(Number(input.value))), onchange: () => this.settle(), ondblclick: () => (this.move(slider, slider.plain), this.settle()) });
      const said = h("output.number");
      this.ranges.set(name, { input, said });
      return h("label", { title: t("knobs.back") }, h("span", {}, text), input, said);
    };
    const none = [this.site?.scale == null && t("knobs.unscaled"), !Object.keys(this.page.pass.bases).length && t("knobs.unturned")].filter(Boolean);
    fill(this.element, h("summary", {}, t("knobs")), sliders.map(range), none.map((text) => h("p.soft", { "data-none": "" }, text)), this.switches);
  }

  say(slider, value) {
    const { input, said } = this.ranges.get(slider.name);
    input.value = slider.from(value);
    said.textContent = slider.say(value);
    input.setAttribute("aria-valuetext", said.textContent);
  }

  /** A head and a cell that are looked at, to be put off and on. */
  buttons() {
    const { page } = this;
    const edits = page.focus.get("edits", []);
    return Object.entries(gestures(page)).filter(([name]) => name === "head" || name === "edge").map(([name, { told, edit }]) => h("button.quiet", { "data-switch": name, "aria-pressed": String(edits.some((one) => same(one, edit))), onclick: () => page.lab.toggle(edit) }, t(`knobs.${name}`, told)));
  }

  move(slider, value) {
    const { page, edits } = this;
    this.before ??= page.focus.get("edits", []);
    const rest = edits.filter((one) => one !== this.edit(slider, edits));
    this.wanted = value === slider.plain ? rest : [...rest, { at: slider.at, op: slider.op, [slider.field]: value }];
    this.say(slider, value);
    page.focus.set({ overTurned: this.turned(this.wanted) });
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.run(), STILL);
  }

  /** What the shown head is asked for: how much more than its pass has, and the base. */
  turned(wanted) {
    const scale = this.sliders.find(({ op }) => op === "rescale");
    const had = scale ? this.value(scale, this.page.pass.edits) : 1;
    const bases = this.sliders.filter(({ op }) => op === "rebase");
    const base = bases.find((one) => this.value(one, wanted) !== this.value(one, this.page.pass.edits));
    if (had === 0 || (base && bases.length > 1)) return null; // nothing follows from scores of zero, nor is it known which base turns the head
    return { factor: scale ? this.value(scale, wanted) / had : 1, base: base ? this.value(base, wanted) : null };
  }

  /** The slider is let go of: one step back in the drawer leads to what was before it. */
  settle() {
    if (this.before === null) return;
    this.page.lab.remember(this.before);
    this.before = null;
    clearTimeout(this.waiting);
    return this.run();
  }

  /** Run the whole pass with what is wanted; while one runs, only the last wish waits. */
  async run() {
    if (this.running) return;
    this.running = true;
    for (let ran = null, well = true; well && this.wanted !== ran; ) {
      ran = this.wanted;
      well = await this.page.lab.run(ran);
    }
    Object.assign(this, { running: false, wanted: null });
    this.page.focus.set({ overTurned: null });
    this.page.lab.draw();
    this.draw();
  }
}
