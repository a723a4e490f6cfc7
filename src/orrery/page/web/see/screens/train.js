// A run: its curves as they grow, and below them the inside of the model at one of its checkpoints.
import { badge } from "#see/checks.js";
import { fill, h } from "#see/dom.js";
import { forming } from "#see/forming.js";
import { draw as inside, module } from "#see/screens/inside.js";
import { addWords, t } from "#see/words.js";

addWords({
  en: { "train.inside": "Inside, at a checkpoint", "train.about": "Move the slider, or click on a curve, and watch how an alignment or an induction head forms." },
  de: { "train.inside": "Innenansicht bei einem Checkpoint", "train.about": "Den Regler bewegen oder in eine Kurve klicken und zusehen, wie eine Zuordnung oder ein Induktionskopf entsteht." },
});

/** Draw the screen; returns what ends it. */
export async function draw(element, page) {
  const [lamp, curves, below] = [h("div"), h("section.view", { "data-view": "curves", "aria-label": t("view.curves") }), h("div")];
  if (page.live) await module("heads"); // the words of the roles
  const heads = page.live ? forming(page) : {};
  fill(element, curves, lamp, page.live && h("h2", {}, t("train.inside")), page.live && h("p.soft", {}, t("train.about")), below, heads.element);
  const { draw: drawCurves } = await module("curves");
  const drawn = await drawCurves(curves, { page, check: (checks) => badge(lamp, checks) });
  curves.dataset.ready = "true";
  const end = page.focus.listen((changed) => drawn.focus(changed));
  const stage = page.live ? await inside(below, page) : null;
  const destroy = () => {
    end();
    drawn.destroy();
    stage?.destroy?.();
    heads.destroy?.();
  };
  return { destroy };
}
