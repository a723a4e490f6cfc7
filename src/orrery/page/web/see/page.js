// What all views share: where numbers come from, what is looked at, and the pass that is open.
import { Focus, fromAddress, toAddress } from "#see/focus.js";
import { applied, called, python } from "#see/lab/edits.js";
import { FileSource, Less, ServerSource } from "#see/source.js";
import { t } from "#see/words.js";

/** What of the state stays as it is when the reader goes back. */
const KEPT = new Set(["theme", "language", "given"]);
/** Whether the page stands in a notebook's frame, which has no address of its own. */
export const FRAMED = location.protocol === "about:";
const alike = (one, other) => JSON.stringify(one ?? null) === JSON.stringify(other ?? null);

/**
 * @typedef {object} View one view of a screen, the default export of `views/NAME.js`
 * @property {Object<string, Object<string, string>>} [words] its words by language; `view.NAME` is its title
 * @property {(element: HTMLElement, page: Page) => Promise<Drawn>|Drawn} draw
 *
 * @typedef {object} Drawn
 * @property {(changed: Set<string>) => void} [focus] told what has changed in the focus
 * @property {() => void} [destroy]
 */
export class Page {
  /**
   * @param {object} start
   * @param {any} start.session what is known of the model
   * @param {Function|null} start.call asks the server; null in a saved page
   * @param {any} [start.held] what a saved page holds: payloads of the model, and runs with their edits
   */
  constructor({ session, call, held = null }) {
    this.session = session;
    this.call = call;
    this.focus = new Focus(fromAddress(location.hash));
    this.model = held ? new FileSource(held.model) : new ServerSource(call, null);
    this.held = held;
    this.pass = null;
    this.source = null;
    this.clean = null;
    this.sources = {};
    this.live = held === null;
    this.listeners = new Set();
    this.untold = new Set();
    this.badges = new Map();
    this.focus.listen((changed) => changed.has("difference") && this.pass && this.choose());
    this.focus.listen((changed) => [...changed].some((name) => !name.startsWith("over")) && this.address());
    addEventListener("popstate", () => this.back().catch((error) => this.say(error.message)));
  }

  /** Tell in the address what is looked at; another screen, view or text is a step that the browser's Back takes back. */
  address() {
    if (FRAMED) return;
    const [was, to] = [fromAddress(location.hash), toAddress(this.focus.values, this.untold)];
    const now = fromAddress(to);
    const moved = ["screen", "view", ...("given" in was ? ["given"] : [])].some((name) => !alike(was[name], now[name]));
    history[moved ? "pushState" : "replaceState"](null, "", to);
  }

  /** Look at what the address says: the reader went back or forward, or typed another. */
  async back() {
    const { values } = this.focus;
    const now = fromAddress(location.hash);
    const gone = Object.keys(values).filter((name) => !(name in now || KEPT.has(name) || this.untold.has(name)));
    const other = ["given", "edits", "checkpoint"].some((name) => name in now && !alike(now[name], values[name]));
    const { given = values.given, edits = [], ...rest } = now;
    this.focus.set({ ...Object.fromEntries(gone.filter((name) => name !== "given" && name !== "edits").map((name) => [name, null])), ...rest });
    if (!given || !(other || gone.includes("edits"))) return;
    await this.look(given, edits);
    this.returned?.(given);
  }

  /**
   * Open a pass over a text, with edits or without.
   * @param {object} given {text}, {messages}, {ids}, {source, target} or {response}
   * @param {Array} [edits]
   * @param {{told?: boolean}} [more] whether the address may tell what is looked into
   */
  async look(given, edits = this.focus.get("edits", this.held?.begin ?? []), { told = true } = {}) {
    // An answer was written by the model that is served: it is not looked into at a checkpoint.
    const checkpoint = given?.response ? null : this.focus.get("checkpoint");
    const asked = checkpoint === null ? given : { ...given, checkpoint };
    const turn = (this.turn = (this.turn ?? 0) + 1);
    const clean = await this.open(asked, []);
    const on = applied(edits);
    const edited = on.length ? await this.open(asked, await this.named(on, checkpoint)) : null;
    if (turn !== this.turn) return; // another text was asked for meanwhile
    this.clean = edited ? clean : null;
    this.now = edited ?? clean;
    this.untold = new Set(told ? [] : ["given", "sources"]);
    this.focus.set({ given, edits, checkpoint });
    this.choose();
  }

  async open(given, edits) {
    if (!this.live) {
      const saved = this.held.runs.find((run) => called(run.edits) === called(edits));
      if (!saved) throw new Error(t("offline"));
      return { pass: saved.pass, source: (saved.source ??= new FileSource(saved.payloads)) };
    }
    const { id } = await (await this.call("/inspect/traces", edits.length ? { ...given, edits } : given)).json();
    const source = new ServerSource(this.call, id);
    return { source, pass: (await source.get("tokens")).facts };
  }

  /** Edits as the server takes them: another pass, which the address holds as a text, by its id. */
  async named(edits, checkpoint) {
    const texts = this.live ? this.focus.get("sources", {}) : {};
    const ids = {};
    for (const name of new Set(edits.map(({ from }) => from).filter((one) => one in texts))) {
      const { pass } = await this.open(checkpoint === null ? texts[name] : { ...texts[name], checkpoint }, []);
      ids[name] = pass.id;
      this.sources[name] = pass.python;
    }
    return edits.map((edit) => (edit.from in ids ? { ...edit, from: ids[edit.from] } : edit));
  }

  /** Whether a list of edits can be run here: a saved page has only those that were saved with it. */
  holds(edits) {
    return this.live || this.held.runs.some((run) => called(run.edits) === called(edits));
  }

  /** Whether the views show the edited pass less the clean one. */
  get comparing() {
    return Boolean(this.clean) && this.focus.get("difference") === true;
  }

  /** Let the views ask the pass, or its difference from the clean one. */
  choose() {
    const { pass, source } = this.now;
    this.pass = pass;
    this.source = this.comparing ? new Less(source, this.clean.pass.id, pass.views) : source;
    this.tell();
  }

  /** The program that gives the same numbers. */
  python(edits) {
    return python({ load: this.pass.load, trace: this.pass.python, sources: { ...this.pass.sources, ...this.sources }, compare: this.comparing }, edits);
  }

  /** Be told when another pass is open. */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell() {
    for (const listener of [...this.listeners]) listener();
  }

  /** Keep what a view said of its numbers: one screen collects it, the last hundred. */
  note(kind, checks) {
    const name = `${kind} ${this.pass?.id ?? ""}`;
    this.badges.delete(name);
    if (checks?.length) this.badges.set(name, { kind, checks, given: this.pass?.given ?? null, checkpoint: this.focus.get("checkpoint") });
    if (this.badges.size > 100) this.badges.delete(this.badges.keys().next().value);
  }

  /** Say something for a while, to those who do not see the page as well. */
  say(text) {
    const said = document.getElementById("said");
    said.textContent = text;
    clearTimeout(this.silence);
    this.silence = setTimeout(() => (said.textContent = ""), 5000);
  }

  /** The views of a screen that have something to show, in the order of computation. */
  views(screen) {
    const views = (this.pass ?? this.session).views;
    return views.filter((view) => view.screen === screen);
  }

  /** A token of a stream, `tokens` or `source`. */
  token(stream, place) {
    return this.pass?.[stream]?.[place]?.text ?? "";
  }

  t(name, values) {
    return t(name, values);
  }
}
