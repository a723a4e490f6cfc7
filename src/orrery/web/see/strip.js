// The strip of tokens that stands above every view: it shows and moves the token that looks and the one looked at.
import { fill, h, visible } from "#see/dom.js";

/**
 * @param {HTMLElement} element
 * @param {import("#see/page.js").Page} page
 */
export function strip(element, page) {
  const draw = () => {
    const streams = ["source", "tokens"].filter((name) => page.pass?.[name]?.length);
    fill(element, streams.map((name) => row(page, name, streams.length > 1)));
    mark();
  };
  const mark = () => {
    for (const button of element.querySelectorAll("button[data-place]")) {
      const place = Number(button.dataset.place);
      button.classList.toggle("looks", button.dataset.stream === "tokens" && place === page.focus.get("query"));
      button.classList.toggle("seen", button.dataset.stream === page.focus.get("keys", "tokens") && place === page.focus.get("key"));
      button.classList.toggle("over", button.dataset.stream === "tokens" && place === page.focus.get("overQuery"));
      button.classList.toggle("over-key", button.dataset.stream === page.focus.get("keys", "tokens") && place === page.focus.get("overKey"));
      const hidden = page.pass?.edits.some(({ op, key, at }) => op === "mask" && key === place && at.includes("*"));
      button.classList.toggle("hidden", button.dataset.stream === page.focus.get("keys", "tokens") && Boolean(hidden));
    }
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
