// The beginning: read what the page was given, draw the header, and show the screen that the address names.
import { caller } from "#see/source.js";
import { fill, h } from "#see/dom.js";
import { watchWords } from "#see/glossary.js";
import { header, useTheme } from "#see/header.js";
import { keyboard } from "#see/keys.js";
import { lab } from "#see/lab/lab.js";
import { Page } from "#see/page.js";
import { t, useLanguage } from "#see/words.js";

const main = document.getElementById("main");

async function start() {
  const held = document.getElementById("held");
  const page = held ? saved(JSON.parse(held.textContent)) : await served();
  useLanguage(page.focus.get("language"));
  watchWords(main);
  const coloured = (theme) => (document.documentElement.dataset.theme = theme ?? page.focus.get("theme") ?? "");
  coloured();
  document.title = `Orrery · ${page.session.model}`;
  const skip = document.querySelector(".skip");
  skip.textContent = t("skip");
  skip.href = "#main";
  skip.addEventListener("click", (event) => (event.preventDefault(), main.focus()));
  const screens = page.session.screens;
  let shown = null;
  let turn = 0;
  const show = async () => {
    const mine = ++turn;
    delete main.dataset.ready;
    const name = [page.focus.get("screen"), "inside", screens[0]].find((one) => screens.includes(one));
    shown?.destroy?.();
    shown = null;
    header(document.getElementById("header"), page, name);
    fill(main);
    main.dataset.screen = name;
    const { draw } = await import(`#see/screens/${name}.js`);
    if (mine !== turn) return;
    shown = await draw(main, page);
    main.dataset.ready = name;
  };
  page.focus.listen((changed) => {
    if (changed.has("theme")) for (const canvas of main.querySelectorAll("canvas")) canvas.repaint?.();
    if (changed.has("screen") || changed.has("language")) show().catch((error) => fill(main, h("p.failure", { role: "alert" }, t("failed", { why: page.live ? t("gone") : error.message }))));
  });
  // Paper is light, and pictures are drawn for it; so they are where the system turns dark or light.
  const redrawn = (theme) => () => (coloured(theme), page.focus.again("theme"));
  addEventListener("beforeprint", redrawn("light"));
  addEventListener("afterprint", redrawn());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redrawn());
  // A site around the page has a button of its own; "auto" is as the system says.
  addEventListener("message", ({ source, data }) => source === parent && ["light", "dark", "auto"].includes(data?.theme) && useTheme(page, data.theme.replace("auto", "")));
  keyboard(page);
  lab(document.getElementById("lab"), page);
  const given = page.focus.get("given");
  if (given && page.live) fetchViews();
  if (given || !page.live) await page.look(given).catch((error) => page.lab.tell(error.message));
  await show();
  if (page.live) fetchViews();
  window.orrery = page;
}

/** Fetch what draws views and screens while nobody waits for it, so that a pass is drawn as soon as it is there. */
function fetchViews() {
  const { imports } = JSON.parse(document.querySelector("script[type=importmap]").textContent);
  for (const name of Object.keys(imports)) if (/^#see.(views|screens)/.test(name)) import(name).catch(() => {}); // whoever draws it says what failed
}

function saved({ session, ...held }) {
  return new Page({ session, call: null, held });
}

async function served() {
  const call = caller();
  const session = await opened(call);
  return new Page({ session, call });
}

/** The session of the server; where it needs a key, the reader is asked for it, and it stays in this page. */
async function opened(call) {
  try {
    return await (await call("/inspect/session")).json();
  } catch (error) {
    if (error.status !== 401) throw error;
  }
  useLanguage(null);
  return new Promise((resolve) => {
    const key = h("input", { type: "password", name: "key", autocomplete: "off", required: true });
    const told = h("p.failure", { role: "alert" });
    const enter = async (event) => {
      event.preventDefault();
      call.useKey(key.value);
      try {
        resolve(await (await call("/inspect/session")).json());
      } catch (error) {
        told.textContent = error.message;
      }
    };
    fill(main, h("form.ask", { onsubmit: enter }, h("p", {}, t("key.needed")), h("label", {}, t("key.label"), key), h("button.go", {}, t("key.use")), told));
  });
}

start().catch((error) => fill(main, h("p.failure", { role: "alert" }, error.message)));
