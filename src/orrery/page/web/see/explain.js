// Any number on the page can be explained: a link to its formula, and the tree of formulas below it.
import { fill, h, number, visible } from "#see/dom.js";
import { t } from "#see/words.js";

let page = null;

/** Say which page the links ask; the screens do it before they draw a view. */
export function explainWith(given) {
  page = given;
}

const asked = (key, index) => ({ key, index: index.join(",") });

/** Whether a number can be explained here: a saved page holds only some. */
export function explains(key, index) {
  return Boolean(key && page?.source?.has("explain", asked(key, index)));
}

/**
 * A number that opens its explanation.
 * @param {number} value
 * @param {string} key of its tensor, as a trace names it
 * @param {number[]} index its place there, without the axis of rows
 * @param {number} [digits]
 */
export function explained(value, key, index, digits = 4) {
  const text = number(value, digits);
  if (!explains(key, index)) return h("span.number", {}, text);
  return h("button.why", { title: `${key}[${index.join(", ")}]`, "data-key": key, "data-index": index.join(","), onclick: () => open(key, index) }, text);
}

/** Show the explanation of a number beside what is on the page. */
export function open(key, index) {
  const dialog = h("dialog.explain", { "aria-label": t("explain.title"), onclose: () => dialog.remove() });
  const element = h("div", {});
  fill(dialog, h("div.controls", {}, h("strong", {}, t("explain.title")), h("button.quiet", { onclick: () => dialog.close() }, t("keys.close"))), element);
  document.body.append(dialog);
  dialog.showModal();
  return tree(element, key, index);
}

/**
 * Draw the formula of a number; each operand opens its own.
 * @returns {Promise<{facts: any, checks: Array}>} what was told of the number
 */
export async function tree(element, key, index) {
  try {
    const { facts, checks } = await page.source.get("explain", key ? asked(key, index) : {});
    fill(element, node(facts, checks[0]));
    return { facts, checks };
  } catch (error) {
    fill(element, h("p.failure", { role: "alert" }, error.message));
    return { facts: null, checks: [] };
  }
}

/** What an index counts, in words: head 1, token 5 "is", channel 3. */
export function places(axes) {
  return axes.map(({ name, place, text }) => `${t(`explain.${name}`)} ${place}${text ? ` “${visible(text)}”` : ""}`).join(", ");
}

const typeset = (text) => text.replaceAll("-", "−");
const value = (given) => number(Number(given));
/** A number that stands behind a sign: a negative one in brackets. */
const signed = (given, behind) => (behind && Number(given) < 0 ? `(${value(given)})` : value(given));

function node(facts, check) {
  const { key, index, axes, text, filled, kind, terms, others } = facts;
  const sum = kind === "sum";
  return h(
    "div.formula",
    { "data-key": key, "data-index": index.join(",") },
    h("p", {}, h("code", {}, `${key}[${index.join(", ")}]`), " = ", h("strong", {}, value(facts.recorded)), h("span.soft", {}, ` ${places(axes)}`)),
    h("p.math", {}, kind === "given" ? typeset(text) : `= ${typeset(text)}`),
    filled && h("p.math", {}, `= ${typeset(filled)}`),
    terms.length > 0 && h("ul", {}, terms.map((term) => row(term, sum)), others > 0 && h("li.soft", {}, t("explain.others", { count: others, value: value(facts.others_sum) }))),
    kind !== "given" && h("p.soft", { "data-passed": String(check?.passed ?? true) }, `${check?.passed ? "✓" : "✗"} ${t("explain.check", { value: number(Number(facts.value), 6), recorded: number(Number(facts.recorded), 6), off: number(check?.value, 2) })}`),
  );
}

function row(term, sum) {
  const product = term.factors.length > 1 || !sum;
  const factors = term.factors.flatMap((factor, i) => [i ? " · " : null, operand(factor)]);
  return h("li", {}, factors, product && sum ? h("span.number", {}, ` = ${value(term.value)}`) : null, term.factors.filter((factor) => explains(factor.key, factor.index)).map(below));
}

function operand({ name, value: held, parameter }) {
  return h("span.operand", { title: parameter ?? null }, h("span.number", {}, value(held)), h("small", {}, ` ${name}`));
}

/** The explanation of an operand, asked for when it is opened. */
function below({ name, key, index }) {
  const element = h("div");
  const details = h("details", { ontoggle: () => details.open && !element.hasChildNodes() && tree(element, key, index) }, h("summary", {}, t("explain.of", { name })), element);
  return details;
}

/** One number written out as its formula with the largest operands; empty where it cannot be explained. */
export function inline(key, index, most = 4) {
  const element = h("p.inline");
  const settings = { ...asked(key, index), most };
  if (!page?.source?.has("explain", settings)) return element;
  page.source.get("explain", settings).then(
    ({ facts, checks }) => fill(element, written(facts, checks[0])),
    (error) => fill(element, h("span.failure", {}, error.message)),
  );
  return element;
}

function written({ key, index, kind, text, filled, terms, others, recorded, ...facts }, check) {
  const sum = terms.map((term, i) => [i ? " + " : "", term.factors.map((factor, j) => [j ? " · " : "", signed(factor.value, i + j)])]);
  const rest = others ? ` + ${signed(facts.others_sum, 1)} (${t("explain.rest", { count: others })})` : "";
  const middle = kind === "sum" ? [sum, rest] : [typeset(filled || text)];
  return [h("code", {}, `${key.split(".").pop()}[${index.join(", ")}]`), " = ", middle, " = ", explained(Number(recorded), key, index), h("span", { "data-passed": String(check?.passed ?? true), title: number(check?.value, 2) }, check?.passed ? " ✓" : " ✗")];
}
