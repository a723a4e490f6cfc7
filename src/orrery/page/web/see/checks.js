// The badge of a view: the identities that its numbers satisfy, each with its error and its bound.
import { fill, h, number } from "#see/dom.js";
import { said, t } from "#see/words.js";

/** Draw the badge of some checks; without checks there is none. */
export function badge(element, checks) {
  if (!checks?.length) return fill(element);
  const passed = checks.filter((check) => check.passed).length;
  const whole = passed === checks.length;
  return fill(
    element,
    h(
      "details.checks",
      { "data-passed": String(whole) },
      h("summary", {}, h("span.lamp", { "aria-hidden": "true" }, whole ? "✓" : "✗"), t("checks", { passed, all: checks.length })),
      h("ul", {}, checks.map((check) => h("li", { "data-passed": String(check.passed) }, h("span", {}, said(check.name)), h("span.number", {}, t("check.bound", { value: number(check.value, 2), bound: number(check.bound, 2) }))))),
    ),
  );
}
