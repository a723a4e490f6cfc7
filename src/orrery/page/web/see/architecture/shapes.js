// What the drawings of an architecture are made of: boxes, arrows, and words for parts and shapes.
import { h, whole } from "#see/dom.js";
import { said, t } from "#see/words.js";

export { whole };

/** `L × 512`, as it stands in a figure. */
export const sides = (shape) => (shape ? shape.join(" × ") : "");

/** `MultiHeadAttention` in words. */
export const spaced = (kind) => kind.replace(/([a-z])([A-Z])/g, "$1 $2").replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2");

/** A picture with a title that all readers are told. */
export function picture(width, height, label, ...children) {
  return h("svg.diagram", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label }, h("defs", {}, h("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto-start-reverse" }, h("path", { d: "M0 0L8 4L0 8z" }))), children);
}

export const label = (text, x, y, more = {}) => h("text", { x, y, "text-anchor": "middle", ...more }, text);

/** A line along points, with an arrow at its end. */
export function arrow(points, kind = "flow", end = true) {
  return h("path", { class: `link ${kind}`, d: `M${points.map((point) => point.join(" ")).join("L")}`, "marker-end": end ? "url(#arrow)" : null });
}

/** A box around a centre; with something to do it is a button. */
export function box({ x, y, width, height = 34, kind, title, below = "", about, chosen }) {
  const key = (event) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), chosen());
  const doing = chosen ? { role: "button", tabindex: "0", "aria-label": about ?? title, onclick: chosen, onkeydown: key } : {};
  const most = Math.floor((width - 8) / 6.6);
  const short = (text, count) => (text.length > count ? `${text.slice(0, count - 1)}…` : text);
  return h("g", { class: `part ${kind}`, ...doing }, h("title", {}, about ?? title), h("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: 5 }), label(short(title, most), x, y + (below ? -2 : 4)), below && label(short(below, Math.floor((width - 4) / 5.6)), x, y + 12, { class: "cost" }));
}

/** The class of the colour of a part. */
export function tint(part) {
  if (part.slot === "branch") return part.settings.heads || /Attention/.test(part.kind) ? "attention" : /RNN|LSTM|GRU|Decoder|Source|TimeDelay/.test(part.kind) ? "recurrence" : "feed_forward";
  return { embed: "embed", position: "embed", head: "head" }[part.slot] ?? "norm";
}

/** What a part is called in a figure. */
export function named(part) {
  const mask = part.settings.mask ?? "";
  const masked = part.settings.heads && /causal|window|sliding|past/.test(mask) && part.role !== "cross" ? "Masked " : "";
  return part.kind ? said(masked + spaced(part.kind)) : t("architecture.shared");
}

/** All that is known of a part in one sentence. */
export function told(part) {
  const what = part.what || named(part);
  return part.shape ? t("architecture.part", { what, parameters: whole(part.parameters), shape: sides(part.shape), key: part.key }) : t("architecture.part.plain", { what, parameters: whole(part.parameters) });
}
