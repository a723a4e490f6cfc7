// The way of a token from the text to what the model answers: one drawing that can be moved and come closer to.
import { fill, h, number, visible } from "#see/dom.js";
import { t } from "#see/words.js";
import { camera } from "#see/way/camera.js";
import { heightOf, paintWay, STEP, WIDTH } from "#see/way/drawing.js";
import words from "#see/way/words.js";

/** Stations that the token passes in a second. */
const SPEED = 1.2;
/** Room below the last station, for the answer. */
const BELOW = 200;

async function draw(element, { page, check }) {
  const view = new Way(page, check);
  fill(element, h("p", {}, t("way.about")), view.unsaved, view.controls, view.canvas, view.table);
  await view.show();
  return view;
}

class Way {
  constructor(page, check) {
    const button = (name, go) => h("button", { "data-way": name, onclick: go }, t(`way.${name}`));
    this.slider = h("input", { type: "range", min: 0, step: 0.01, value: 0, "data-way": "step", "aria-label": t("way.step"), oninput: (event) => this.go(Number(event.target.value)) });
    this.told = h("output.soft");
    this.play = button("play", () => (this.frame ? this.stop() : this.follow()));
    this.controls = h("div.controls", {}, this.play, h("label", {}, t("way.step"), this.slider, this.told), button("closer", () => this.camera.closer(1.5)), button("farther", () => this.camera.closer(1 / 1.5)), button("whole", () => this.camera.whole()));
    Object.assign(this, { page, check, turn: 0, at: 0, canvas: h("canvas.way", { tabindex: 0, role: "img" }), table: h("details"), unsaved: h("p", { role: "status" }) });
    this.watcher = new ResizeObserver(() => this.camera && this.redraw());
    this.watcher.observe(this.canvas);
  }

  async show() {
    const turn = ++this.turn;
    const last = this.page.pass.tokens.length - 1;
    const position = Math.min(this.page.focus.get("query") ?? last, last);
    const saved = this.page.source.has("way", { position });
    this.unsaved.textContent = saved ? "" : t("way.unsaved");
    for (const part of [this.controls, this.canvas, this.table]) part.style.display = saved ? "" : "none";
    if (!saved) return this.stop();
    const { facts, tensors, checks } = await this.page.source.get("way", { position });
    if (turn !== this.turn) return;
    this.check(checks);
    const said = facts.answer.said ?? [];
    this.way = { token: this.page.token("tokens", position), answer: said.map(({ text, p }) => ({ text: visible(text), p })), stations: facts.stations.map((one, n) => this.station(one, Array.from(tensors[n].data))) };
    this.slider.max = this.way.stations.length;
    this.canvas.setAttribute("aria-label", t("way.drawing", { token: visible(this.way.token), count: this.way.stations.length }));
    this.list();
    const first = !this.camera;
    if (first) this.camera = camera(this.canvas, { width: WIDTH, height: heightOf(this.way.stations.length) + BELOW, changed: () => this.redraw() });
    if (first) this.camera.top();
    else this.redraw();
  }

  /** What is written at a station. */
  station({ key, kind, size, length, heads }, values) {
    const [, block, part] = /^blocks\.(\d+)\.(?:(\w+)\.)?\w+$/.exec(key) ?? [];
    const adds = key.endsWith(".added");
    const named = (name) => (t(`way.${name}`) === `way.${name}` ? name.replaceAll("_", " ") : t(`way.${name}`));
    const title = adds ? t("way.adds", { part: named(part), block }) : part ? t("way.after", { part: named(part), block }) : key === "embedded" ? t("way.begins") : named(kind);
    const stream = kind === "cross" ? this.page.pass.sites.find(({ path }) => path.endsWith(".cross"))?.keys ?? "source" : "tokens";
    const looks = (head) => head.map(([place, weight]) => `${visible(this.page.token(stream, place))} ${number(weight, 2)}`).join(", ");
    const texts = heads.map((head, n) => t("way.head", { head: n, looks: looks(head) }));
    return { title, adds, values, most: Math.max(1e-9, ...values.map(Math.abs)), told: t("way.length", { length: number(length, 3), size }), heads: texts };
  }

  /** The same for those who do not see the drawing. */
  list() {
    const row = ({ title, told, heads }, n) => h("tr", {}, h("td.right", {}, String(n)), h("td", {}, title), h("td", {}, told), h("td", {}, heads.join("; ")));
    const answer = this.way.answer.map(({ text, p }) => `${text} ${number(p, 3)}`).join(", ");
    const end = answer && h("tr", {}, h("td"), h("td", {}, t("way.answer")), h("td", { colspan: 2 }, answer));
    const open = this.table.open;
    fill(this.table, h("summary", {}, t("way.table")), h("div.scroll", { role: "region", "aria-label": t("way.table") }, h("table", {}, h("tbody", {}, this.way.stations.map(row), end))));
    this.table.open = open;
  }

  redraw() {
    paintWay(this.canvas, this.camera.now, this.way, this.at);
    const station = Math.min(Math.round(this.at), this.way.stations.length);
    this.told.textContent = this.way.stations[station]?.title ?? t("way.answer");
  }

  /** Move the token, and the camera with it. */
  go(at) {
    this.at = at;
    this.slider.value = at;
    this.camera.look(this.camera.now.x, heightOf(0) + STEP * at);
  }

  follow() {
    const end = this.way.stations.length;
    if (this.at >= end) this.at = 0;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.go(Math.min(end, Math.floor(this.at) + 1));
    let before = null;
    const move = (now) => {
      const passed = before === null ? 0 : Math.min(0.1, (now - before) / 1000);
      before = now;
      this.go(Math.min(end, this.at + SPEED * passed));
      if (this.at >= end) return this.stop();
      this.frame = requestAnimationFrame(move);
    };
    this.play.textContent = t("way.stop");
    this.frame = requestAnimationFrame(move);
  }

  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = null;
    this.play.textContent = t("way.play");
  }

  focus(changed) {
    if (changed.has("query")) return this.show();
    if (changed.has("theme") && this.camera) this.redraw();
  }

  destroy() {
    this.turn = -1;
    this.stop();
    this.watcher.disconnect();
  }
}

export default { words, draw };
