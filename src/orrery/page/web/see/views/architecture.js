// How the model is built, drawn from its modules: as a whole, an attention, the stream, unrolled, and in its time.
import { attention, withHeads } from "#see/architecture/attention.js";
import { figure } from "#see/architecture/figure.js";
import { paths } from "#see/architecture/paths.js";
import { told } from "#see/architecture/shapes.js";
import { stream } from "#see/architecture/stream.js";
import { timeline } from "#see/architecture/timeline.js";
import words from "#see/architecture/words.js";
import { fill, h } from "#see/dom.js";
import { download, exports } from "#see/export.js";
import { t } from "#see/words.js";

const KINDS = ["figure", "attention", "stream", "paths", "timeline"];

async function draw(element, { page, check }) {
  const { facts, checks } = await page.model.get("architecture");
  check(checks);
  const view = new Architecture(page, element, facts);
  view.show();
  return view;
}

class Architecture {
  constructor(page, element, facts) {
    this.parts = { choice: h("div.controls"), picture: h("div.scroll.drawing", { tabindex: 0, role: "region", "aria-label": t("view.architecture") }), said: h("p.number", { "data-part": "", "aria-live": "polite" }), save: h("div") };
    Object.assign(this, { page, facts });
    const { choice, picture, said, save } = this.parts;
    fill(element, h("p", {}, t("architecture.about")), choice, picture, said, save, h("details", {}, h("summary", {}, t("architecture.tree")), branch(facts.tree)));
  }

  show() {
    const { facts, page } = this;
    const drawing = KINDS.includes(page.focus.get("figure")) ? page.focus.get("figure") : "figure";
    const chosen = (part) => (this.parts.said.textContent = told(part));
    const drawn = { figure: () => figure(facts, chosen), attention: () => this.attention(), stream: () => this.stream(chosen), paths: () => paths(facts), timeline: () => timeline(facts) }[drawing]();
    const select = h("select", { name: "drawing", onchange: () => page.focus.set({ figure: select.value }) }, KINDS.map((name) => h("option", { value: name, selected: name === drawing }, t(`architecture.${name}`))));
    fill(this.parts.choice, h("label", {}, t("architecture.drawing"), select), drawing === "attention" && this.which());
    this.parts.picture.dataset.drawing = drawing;
    this.parts.said.textContent = " ";
    fill(this.parts.picture, drawn);
    const svg = this.parts.picture.querySelector("svg");
    fill(this.parts.save, svg && exports({ svg: () => download(`${drawing}.svg`, standing(svg), "image/svg+xml") }));
  }

  /** The attention that is drawn: the one that is chosen, else the first. */
  get part() {
    const all = withHeads(this.facts);
    return all.find(({ id }) => id === this.page.focus.get("part")?.attention) ?? all[0];
  }

  which() {
    const all = withHeads(this.facts);
    if (all.length < 2) return null;
    const select = h("select", { name: "attention", onchange: () => this.page.focus.set({ part: { attention: select.value } }) }, all.map((one) => h("option", { value: one.id, selected: one === this.part }, one.key.replace(/\.added$/, "") || one.what)));
    return h("label", {}, t("architecture.which"), select);
  }

  attention() {
    return this.part ? attention(this.facts, this.part) : h("p.soft", {}, t("architecture.none.attention"));
  }

  stream(chosen) {
    const drawn = ["reader", "main"].map((column) => stream(this.facts, column, chosen)).filter(Boolean);
    return drawn.length ? drawn : h("p.soft", {}, t("architecture.none.stream"));
  }

  focus(changed) {
    if (changed.has("figure") || changed.has("part")) this.show();
  }
}

/** The tree of the parts, each with its settings, opened one level at a time. */
function branch(node, depth = 0) {
  const text = [h("code", {}, node.name), ` ${node.what}`, node.weight && h("span.number", {}, `  ${node.weight}`)];
  if (!node.children.length) return h("p.leaf", {}, text);
  return h("details.leaf", { open: depth < 2 }, h("summary", {}, text), node.children.map((child) => branch(child, depth + 1)));
}

/** A drawing that stands alone: every part carries the style that the page gives it. */
function standing(svg) {
  const copy = svg.cloneNode(true);
  const [from, to] = [svg, copy].map((root) => [root, ...root.querySelectorAll("*")]);
  from.forEach((one, i) => {
    const style = getComputedStyle(one);
    for (const name of ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight"]) to[i].style.setProperty(name, style.getPropertyValue(name));
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}

export default { words, draw };
