// Every head of an attention small, a row for each block.
import { fill, h } from "#see/dom.js";
import { paint } from "#see/heat.js";
import { at } from "#see/safetensors.js";
import { t } from "#see/words.js";

/**
 * Draw the grid; `chosen(layer, head)` is called on a click, `twice` on two. Returns what marks a head.
 * @param {{colours: string, highest: number}} how colours, and the number of the last one
 */
export function grid(element, pictures, layers, how, { chosen, twice }) {
  const [, heads, rows, columns] = pictures.shape;
  const cells = layers.flatMap((layer, i) => [
    h("span", {}, String(layer)),
    ...Array.from({ length: heads }, (_, head) => {
      const canvas = h("canvas");
      paint(canvas, { values: at(at(pictures, i), head).data, rows, columns, ...how, label: t("attention.of", { layer, head }) });
      return h("button", { "data-layer": layer, "data-head": head, title: `${layer}.${head}`, onclick: () => chosen(layer, head), ondblclick: () => twice(layer, head) }, canvas);
    }),
  ]);
  const names = Array.from({ length: heads }, (_, head) => h("span", {}, String(head)));
  fill(element, h("div.grid", { style: { "grid-template-columns": `2rem repeat(${heads}, minmax(1.5rem, 4.5rem))` } }, h("span"), names, cells));
  return (layer, head) => {
    for (const button of element.querySelectorAll("button")) button.setAttribute("aria-pressed", Number(button.dataset.layer) === layer && Number(button.dataset.head) === head);
  };
}
