// The strip of tokens that stands above every view: it shows and moves the token that looks and the one looked at.
import { fill, h, visible } from "#see/dom.js";

/**
 * @param {HTMLElement} element
 * @param {import("#see/page.js").Page} page
 */
export function strip(element, page) {
  let buttons = {};
  const draw = () => {
    const streams = ["source", "tokens"].filter((name) => page.pass?.[name]?.length);
    fill(element, streams.map((name) => row(page, name, streams.length > 1)));
    buttons = Object.fromEntries(streams.map((name) => [name, element.querySelectorAll(`[data-stream="${name}"]`)]));
    marked = [];
    mark();
  };
  let marked = [];
  /** Marks of a place in a stream: only those that change are touched, for a text may have thousands of tokens. */
  const mark = () => {
    const keys = page.focus.get("keys", "tokens");
    const now = [["looks", "tokens", "query"], ["seen", keys, "key"], ["over", "tokens", "overQuery"], ["over-key", keys, "overKey"]].map(([name, stream, place]) => [name, stream, page.focus.get(place)]);
    for (const { op, key, at } of page.pass?.edits ?? []) if (op === "mask" && at.includes("*")) now.push(["hidden", keys, key]);
    const next = now.map(([name, stream, place]) => [name, buttons[stream]?.[place]]).filter(([, button]) => button);
    for (const [name, button] of marked) button.classList.remove(name);
    for (const [name, button] of next) button.classList.add(name);
    marked = next;
  };
  const ends = [page.listen(draw), page.focus.listen(mark)];
  draw();
  return { destroy: () => ends.forEach((end) => end()) };
}

function row(page, stream, named) {
  const tokens = page.pass[stream];
  return h(
    "div.strip",
    { role: "toolbar", "aria-label": page.t(stream) },
    named && h("span.stream", {}, page.t(stream)),
    tokens.map(({ id, text }, place) =>
      h(
        "button.token",
        {
          "data-stream": stream,
          "data-place": place,
          title: `${place} · ${id}`,
          onclick: (event) => choose(page, stream, place, event.shiftKey),
          ondblclick: () => page.lab?.mask(stream, place),
        },
        visible(text),
      ),
    ),
  );
}

/** A click chooses who looks; with shift, or in the source, who is looked at. */
function choose(page, stream, place, shift) {
  const name = shift || stream === "source" ? "key" : "query";
  page.focus.set({ [name]: page.focus.get(name) === place ? null : place });
}
