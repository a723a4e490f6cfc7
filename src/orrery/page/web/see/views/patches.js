// The picture as the model reads it, cut into patches: the one that is looked at is framed.
import { fill, h } from "#see/dom.js";
import { t } from "#see/words.js";

const words = {
  en: { "view.patches": "Picture", "patches.about": "What the model reads: patches of {down} by {across} pixels." },
  de: { "view.patches": "Bild", "patches.about": "Was das Modell liest: Felder von {down} mal {across} Punkten." },
};

async function draw(element, { page, check }) {
  const { facts, checks } = await page.source.get("patches");
  check(checks);
  const [rows, columns] = facts.patches;
  const [height, width] = facts.patch;
  const focus = facts.stream === "tokens" ? "query" : "key";
  const frame = (n) => {
    const [row, column] = [Math.floor(n / columns), n % columns];
    const onclick = () => page.focus.set({ [focus]: n + facts.before });
    return h("rect", { x: width * column, y: height * row, width, height, fill: "transparent", stroke: "var(--accent)", "vector-effect": "non-scaling-stroke", onclick }, h("title", {}, `${row + 1}·${column + 1}`));
  };
  const frames = Array.from({ length: rows * columns }, (_, n) => frame(n));
  const [down, across] = facts.pixels;
  const picture = h("image", { href: facts.picture, width: across, height: down, "image-rendering": "pixelated" });
  fill(element, h("p", {}, t("patches.about", { down: height, across: width })), h("svg.patches", { viewBox: `0 0 ${across} ${down}`, width: 400 }, picture, frames));
  const mark = () => frames.forEach((one, n) => one.setAttribute("stroke-width", page.focus.get(focus) === n + facts.before ? 4 : 1));
  mark();
  return { focus: mark };
}

export default { words, draw };
