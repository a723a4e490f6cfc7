// Elements in one call. Text is always text: nothing here reads markup.

/**
 * Make an element.
 * @param {string} tag a name, with classes behind dots: "button.quiet"
 * @param {Object<string, any>} [attributes] attributes; `on...` are listeners, `style` is an object, null is left out
 * @param {...(Node|string|number|null|Array)} children
 */
export function h(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = SVG.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  if (classes.includes("scroll")) element.setAttribute("tabindex", "0"); // the arrow keys move what is wider than its room
  for (const [key, value] of Object.entries(attributes)) set(element, key, value);
  add(element, children);
  return element;
}

function set(element, key, value) {
  if (value === null || value === undefined || value === false) return;
  if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
  else if (key === "style") Object.entries(value).forEach(([name, one]) => one !== null && element.style.setProperty(name, one));
  else if (key === "value" || key === "checked") element[key] = value;
  else element.setAttribute(key, value === true ? "" : value);
}

function add(element, children) {
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false) element.append(child);
}

/** Put children in the place of what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

/** Move a row of buttons, where it is wider than its room, so that the current one is seen. */
export function reveal(row) {
  const current = row.querySelector("[aria-current]");
  if (current) row.scrollLeft = current.offsetLeft - (row.clientWidth - current.offsetWidth) / 2;
}

/** A token as it is shown: blanks and line ends can be seen. */
export function visible(text) {
  if (text === "") return "∅";
  return text.replace(/ /g, "␣").replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(/[\u0000-\u001f\u007f]/g, "�");
}

/** A number as the page's language writes it, of one with English marks: German parts thousands by a blank and begins decimals with a comma. */
export function marked(text) {
  const german = globalThis.document?.documentElement.lang === "de";
  return text.replaceAll("-", "−").replace(/[,.]/g, (mark) => (german ? { ",": "\u202f", ".": "," }[mark] : mark));
}

export const whole = (count) => marked((count || 0).toLocaleString("en"));

export function number(value, digits = 4) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return whole(value);
  const size = Math.abs(value);
  return marked(size !== 0 && (size < 1e-3 || size >= 1e6) ? value.toExponential(Math.max(0, digits - 2)) : value.toPrecision(digits));
}

const SVG = new Set(["svg", "g", "path", "line", "circle", "rect", "text", "polyline", "polygon", "title", "image", "defs", "clipPath", "tspan", "marker"]);
