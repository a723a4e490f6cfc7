// The checkpoints of a run as a slider: the pass that is open is opened again at the one that is chosen.
import { fill, h, whole } from "#see/dom.js";
import { addWords, t } from "#see/words.js";

addWords({
  en: { "checkpoint": "Model at", "checkpoint.step": "step {step}", "checkpoint.best": "step {step}, the best", "checkpoint.served": "as it is served ({name})", "checkpoint.play": "Play", "checkpoint.stop": "Stop", "checkpoint.none": "The run has kept no checkpoint; checkpoints.keep in its recipe says how many it keeps." },
  de: { "checkpoint": "Modell bei", "checkpoint.step": "Schritt {step}", "checkpoint.best": "Schritt {step}, der beste", "checkpoint.served": "wie es läuft ({name})", "checkpoint.play": "Abspielen", "checkpoint.stop": "Anhalten", "checkpoint.none": "Der Lauf hat keinen Checkpoint behalten; checkpoints.keep im Rezept sagt, wie viele er behält." },
});

/** Milliseconds that a checkpoint stays while they are played one after the other. */
const STAY = 900;
const sliders = new Set();

/** Tell every slider of the page that the run has other checkpoints now. */
export function tellCheckpoints(checkpoints) {
  for (const one of sliders) one.update(checkpoints);
}

/** Look at the checkpoint that is nearest to a step. */
export function nearest(step) {
  for (const one of sliders) one.near(step);
}

/** @returns {{element: HTMLElement, destroy: () => void}} */
export function slider(page) {
  const one = new Slider(page);
  sliders.add(one);
  one.load();
  return { element: one.element, destroy: () => (sliders.delete(one), one.pause()) };
}

class Slider {
  constructor(page) {
    Object.assign(this, { page, element: h("div.controls.checkpoints"), steps: [], served: "", playing: null });
  }

  async load() {
    try {
      const { checkpoints, served } = await (await this.page.call("/inspect/checkpoints")).json();
      this.served = served;
      this.update(checkpoints);
    } catch (error) {
      fill(this.element, h("p.failure", { role: "alert" }, error.message));
    }
  }

  update(checkpoints) {
    this.steps = checkpoints;
    if (!checkpoints.length) return fill(this.element, h("span.soft", {}, t("checkpoint.none")));
    this.range = h("input", { type: "range", min: 0, max: checkpoints.length, step: 1, name: "checkpoint", oninput: () => this.say(), onchange: () => (this.pause(), this.go(Number(this.range.value))) });
    this.said = h("output", { "data-checkpoint": "" });
    this.told = h("span.failure", { role: "alert" });
    this.play = h("button.quiet", { "data-do": "play", onclick: () => (this.playing ? this.pause() : this.run()) }, t(this.playing ? "checkpoint.stop" : "checkpoint.play"));
    fill(this.element, h("label", {}, t("checkpoint"), this.range), this.said, checkpoints.length > 1 && this.play, this.told);
    this.range.value = this.place;
    this.say();
  }

  /** The place of what is looked at; the last is the model as it is served. */
  get place() {
    const step = this.page.focus.get("checkpoint");
    const found = this.steps.findIndex((one) => one.step === step);
    return step === null || found < 0 ? this.steps.length : found;
  }

  say() {
    const one = this.steps[Number(this.range.value)];
    const text = one ? t(one.best ? "checkpoint.best" : "checkpoint.step", { step: whole(one.step) }) : t("checkpoint.served", { name: this.served });
    this.said.textContent = text;
    this.range.setAttribute("aria-valuetext", text);
  }

  near(step) {
    if (!this.steps.length) return;
    const off = (i) => Math.abs(this.steps[i].step - step);
    this.pause();
    this.go([...this.steps.keys()].reduce((best, i) => (off(i) < off(best) ? i : best)));
  }

  async go(place) {
    this.range.value = place;
    this.say();
    this.told.textContent = "";
    this.page.focus.set({ checkpoint: this.steps[place]?.step ?? null });
    const given = this.page.focus.get("given");
    if (!given) return;
    this.page.say(t("looking"));
    try {
      // What was served was written by another state of the model; its text is read at this one.
      await this.page.look(given.response ? { ids: this.page.pass.tokens.map(({ id }) => id) } : given);
      this.page.say(this.said.textContent);
    } catch (error) {
      await this.load();
      this.told.textContent = error.message;
    }
  }

  async run() {
    const mine = (this.playing = {});
    this.play.textContent = t("checkpoint.stop");
    let place = this.place >= this.steps.length ? -1 : this.place;
    while (this.playing === mine && ++place <= this.steps.length) {
      await this.go(place);
      await new Promise((done) => setTimeout(done, STAY));
    }
    if (this.playing === mine) this.pause();
  }

  pause() {
    this.playing = null;
    if (this.play) this.play.textContent = t("checkpoint.play");
  }
}
