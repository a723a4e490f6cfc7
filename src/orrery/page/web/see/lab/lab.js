// The drawer of edits, on every screen: each edit inside the pass is put on or off, undone, compared, copied.
import { fill, h, number } from "#see/dom.js";
import { applied, called, gestures, line, masks, python, same } from "#see/lab/edits.js";
import { form } from "#see/lab/form.js";
import words from "#see/lab/words.js";
import { addWords, t } from "#see/words.js";

/** Draw the drawer; the page's gestures reach it as `page.lab`. */
export function lab(element, page) {
  addWords(words);
  page.lab = new Lab(element, page);
  page.listen(() => page.lab.draw());
  page.focus.listen((changed) => ["layer", "head", "query", "key", "site", "language", "difference"].some((name) => changed.has(name)) && page.lab.draw());
  document.addEventListener("keydown", (event) => page.lab.press(event));
  page.lab.draw();
}

class Lab {
  constructor(element, page) {
    Object.assign(this, { element, page, past: [], next: [], failure: "", unsaved: null });
  }

  get edits() {
    return this.page.focus.get("edits", []);
  }

  /** Run the pass with other edits; what cannot be run is told, and the edits stay as they were. */
  async change(edits, sources = {}) {
    const before = this.edits;
    if (await this.run(edits, sources)) this.remember(before);
    this.draw();
  }

  /** Let one step back lead to what was before; for those that run the pass themselves. */
  remember(before) {
    Object.assign(this, { past: [...this.past, before], next: [] });
  }

  async run(edits, sources = {}) {
    const { page } = this;
    const had = page.focus.get("sources", {});
    Object.assign(this, { failure: "", unsaved: null, copied: null });
    if (Object.keys(sources).length) page.focus.set({ sources: { ...had, ...sources } });
    try {
      if (!page.pass) throw new Error(t("lab.look"));
      await page.look(page.focus.get("given"), edits, { told: !page.untold.has("given") });
      return true;
    } catch (error) {
      if (page.live) this.failure = error.message;
      else this.unsaved = applied(edits);
      page.focus.set({ sources: had });
      return false;
    }
  }

  add(edit, sources) {
    return this.change([...this.edits, edit], sources);
  }

  /** Add edits, or take them away where they are there already. */
  toggle(...edits) {
    const there = edits.every((edit) => this.edits.some((one) => same(one, edit)));
    const rest = this.edits.filter((one) => !edits.some((edit) => same(one, edit)));
    return this.change(there ? rest : [...rest, ...edits]);
  }

  mask(stream, place) {
    const edits = masks(this.page, stream, place);
    return edits.length ? this.toggle(...edits) : this.tell(t("lab.alone", { place }));
  }

  undo() {
    return this.back(this.past, this.next);
  }

  redo() {
    return this.back(this.next, this.past);
  }

  async back(from, to) {
    const before = this.edits;
    const edits = from.pop();
    if (edits && (await this.run(edits))) to.push(before);
    this.draw();
  }

  tell(text) {
    this.failure = text;
    this.draw();
    this.page.say(text);
  }

  press(event) {
    if (event.altKey || !this.page.pass || event.target.closest("input, textarea, select, dialog")) return;
    const name = event.key.toLowerCase();
    if (name === "z") event.shiftKey ? this.redo() : this.undo();
    else if (event.ctrlKey || event.metaKey) return;
    else if (name === "x" && gestures(this.page).head) this.toggle(gestures(this.page).head.edit);
    else if (name === "m" && this.page.focus.get("query") !== null) this.mask("tokens", this.page.focus.get("query"));
    else return;
    event.preventDefault();
  }

  async enter(edit, other) {
    const { page } = this;
    if (typeof edit.token === "string") {
      const ids = /^\d+$/.test(edit.token) ? [Number(edit.token)] : (await (await page.call("/tokenize", { prompt: edit.token })).json()).tokens;
      if (ids.length !== 1) return this.tell(`${JSON.stringify(edit.token)}: ${ids.length} tokens`);
      [edit.token] = ids;
    }
    if (!other) return this.add(edit);
    const had = page.focus.get("sources", {});
    const given = page.pass.source.length ? { source: other, target: page.pass.given.target ?? "" } : { text: other };
    const known = Object.keys(had).find((name) => JSON.stringify(had[name]) === JSON.stringify(given));
    const name = known ?? "BCDEFGHIJKLMNOPQRSTUVWXYZ"[Object.keys(had).length % 25];
    return this.add({ ...edit, from: name }, { [name]: given });
  }

  /** What the form begins with: the place that is looked at. */
  begun(op) {
    const { focus, pass } = this.page;
    const site = pass?.sites[focus.get("site", 0)];
    const layer = focus.get("layer") ?? 0;
    const inside = site ? site.path.replace("*", layer) : "";
    const at = { mask: `${inside}.scores`, patch: `blocks.${layer}.resid_post`, add: `blocks.${layer}.resid_post`, replace: "ids", rescale: inside, rebase: Object.keys(pass?.bases ?? {})[0] ?? "positions.*" }[op] ?? `${inside}.mixed`;
    return { at, head: at.startsWith(inside) && inside ? focus.get("head") ?? "" : "", position: op === "patch" || op === "replace" ? focus.get("query") ?? "" : "", key: focus.get("key") ?? "", scale: op === "scale" ? 0.5 : 1, from_position: focus.get("query") ?? "" };
  }

  draw() {
    const { page, edits, element } = this;
    const open = element.querySelector("details")?.open ?? page.focus.get("lab", false);
    const more = element.querySelector("details.more")?.open ?? false;
    const on = applied(edits);
    const summary = h("summary", {}, h("strong", {}, t("lab")), " ", h("span.soft", {}, edits.length ? t("lab.count", { count: on.length, all: edits.length }) : t("lab.none")));
    const kept = this.form?.isConnected && this.form.contains(document.activeElement) ? this.form : null;
    this.form = kept ?? (page.live && page.pass ? form(page, (op) => this.begun(op), (edit, other) => this.enter(edit, other).catch((error) => this.tell(error.message))) : null);
    element.setAttribute("aria-label", t("lab"));
    fill(element, h("details", { open, ontoggle: (event) => event.target === event.currentTarget && page.focus.set({ lab: event.target.open || null }) }, summary, h("p.soft", {}, t("lab.about")), this.list(edits), this.tools(on), this.told(), this.saved(), page.pass && this.quick(), this.form && h("details.more", { open: more }, h("summary", {}, t("lab.more")), this.form)));
    if (kept) kept.querySelector("select")?.focus();
  }

  list(edits) {
    const { page } = this;
    const turn = (i) => this.change(edits.map((edit, n) => (n === i ? { ...edit, off: edit.off ? undefined : true } : edit)));
    return h("ol.edits", {}, edits.map((edit, i) => {
      const other = edits.map((one, n) => (n === i ? { ...one, off: !one.off } : one));
      const label = h("label", {}, h("input", { type: "checkbox", checked: !edit.off, disabled: !page.holds(other), "data-edit": i, onchange: () => turn(i) }), h("code", { title: line(edit) }, line(edit)));
      return h("li", {}, label, edit.from && h("span.soft", {}, JSON.stringify(page.focus.get("sources", {})[edit.from] ?? edit.from)), h("button.quiet", { "aria-label": `${t("lab.remove")} ${i + 1}`, disabled: !page.holds(edits.filter((_, n) => n !== i)), onclick: () => this.change(edits.filter((_, n) => n !== i)) }, "✕"));
    }));
  }

  /** The lists of edits that a saved page has, to choose from. */
  saved() {
    const lists = this.page.live ? [] : this.page.held.runs.map(({ edits }) => edits).filter((edits) => edits.length);
    return lists.length > 0 && h("div.tools", {}, h("span.soft", {}, t("lab.saved")), lists.map((edits, i) => {
      const there = called(edits) === called(this.edits);
      return h("button.quiet", { "data-saved": i, "aria-pressed": String(there), onclick: () => this.change(there ? [] : edits) }, h("code", {}, edits.map(line).join("")));
    }));
  }

  tools(on) {
    const { page } = this;
    const compare = h("input", { type: "checkbox", "data-lab": "difference", disabled: !page.clean, checked: page.comparing, onchange: (event) => page.focus.set({ difference: event.target.checked }) });
    return h("div.tools", {}, h("button.quiet", { "data-lab": "undo", disabled: !this.past.length, onclick: () => this.undo() }, t("lab.undo")), h("button.quiet", { "data-lab": "redo", disabled: !this.next.length, onclick: () => this.redo() }, t("lab.redo")), h("label", {}, compare, t("lab.difference")), page.pass && h("button.quiet", { "data-lab": "copy", onclick: () => this.copy(on) }, t("lab.copy")));
  }

  async copy(on) {
    this.copied = this.page.python(on);
    await navigator.clipboard?.writeText(this.copied).catch(() => null);
    this.page.say(t("lab.copied"));
    this.draw();
  }

  told() {
    const { page, failure, unsaved } = this;
    const moved = h("p.number", { "data-lab": "kl" });
    if (page.comparing && page.pass.views.some(({ kind }) => kind === "logits")) {
      page.source.get("logits", { position: page.pass.tokens.length - 1 }).then(({ facts: { kl, turned } }) => (moved.textContent = t("lab.kl", { kl: number(kl, 4), turned, all: page.pass.tokens.length })), () => null);
    }
    const shown = unsaved ? page.python(unsaved) : this.copied;
    return [failure && h("p.failure", { role: "alert" }, failure), moved, unsaved && h("p", {}, t("lab.unsaved")), shown && h("pre.code", { tabindex: 0 }, shown)];
  }

  quick() {
    const { page } = this;
    const found = gestures(page);
    const query = page.focus.get("query");
    const button = (name, told, edits) => {
      const there = edits.every((edit) => this.edits.some((one) => same(one, edit)));
      const after = there ? this.edits.filter((one) => !edits.some((edit) => same(one, edit))) : [...this.edits, ...edits];
      return h("button.quiet", { "data-do": name, "aria-pressed": String(there), class: `quiet${page.holds(after) ? "" : " unsaved"}`, onclick: () => this.toggle(...edits) }, t(`lab.do.${name}`, told));
    };
    return h("div.tools", {}, Object.entries(found).map(([name, { told, edit }]) => button(name, told, [edit])), query !== null && masks(page, "tokens", query).length > 0 && button("token", { place: query }, masks(page, "tokens", query)));
  }
}
