"""A real browser for tests: pages that tell what they said, what they asked for, and what axe finds in them."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlparse

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
LOCAL = ("127.0.0.1", "localhost", "::1")
# How many times slower than this machine a page's own code runs. Set it to find tests that read what is not drawn yet.
SLOW = int(os.environ.get("ORRERY_TEST_SLOW_PAGE", "1"))


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser for a block, or skip the test where none is installed."""
    path = next((path_found for name in BROWSERS if (path_found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"needs a browser: none of {', '.join(BROWSERS)} is installed")
    from playwright import sync_api

    with sync_api.sync_playwright() as playwright:
        # Chromium has no sandbox of its own for the superuser, as whom CI runs.
        words = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=[*words, "--disable-dev-shm-usage"])
        yield browser
        browser.close()


class Seen:
    """A page of a browser, and what it did.

    Attributes:
        page: Playwright's page.
        said: what it wrote into the console, and its errors.
        asked: the addresses that it asked for.
    """

    def __init__(self, browser: Any, width: int = 1300, height: int = 900, scheme: str = "light") -> None:
        self.page = browser.new_page(color_scheme=scheme, viewport={"width": width, "height": height})
        if SLOW > 1:
            slower = self.page.context.new_cdp_session(self.page)
            slower.send("Emulation.setCPUThrottlingRate", {"rate": SLOW})
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, address: str, screen: str | None = None) -> "Seen":
        """Open an address and wait until its screen is drawn."""
        self.page.goto(address)
        self.page.wait_for_selector(f'main[data-ready="{screen}"]' if screen else "main[data-ready]")
        return self

    def look(self, text: str, target: str | None = None) -> "Seen":
        """Look inside a text, and wait until a view of it is drawn."""
        self.page.fill("textarea[name=text]", text)
        if target is not None:
            self.page.fill("textarea[name=target]", target)
        self.page.click("form.ask button.go")
        self.page.wait_for_selector(".strip")
        return self.ready()

    def screen(self, name: str) -> "Seen":
        """Go to a screen and wait until it is drawn."""
        self.page.evaluate("(screen) => window.orrery.focus.set({ screen })", name)
        self.frame().page.wait_for_selector(f'main[data-ready="{name}"]')
        return self

    def view(self, name: str) -> "Seen":
        """Go to a view of the rail and wait until it is drawn."""
        self.page.click(f'.rail [data-view="{name}"]')
        self.frame().page.wait_for_selector(f'.view[data-view="{name}"][data-ready]')
        return self

    def click(self, selector: str) -> "Seen":
        """Click, and wait until what it changes is drawn."""
        self.page.click(selector)
        return self.settled()

    def press(self, *keys: str) -> "Seen":
        """Press keys one after another, and wait each time until what it changes is drawn."""
        for key in keys:
            self.page.keyboard.press(key)
            self.settled()
        return self

    def choose(self, selector: str, value: str) -> "Seen":
        """Choose an option, and wait until what it changes is drawn."""
        self.page.select_option(selector, value)
        return self.settled()

    def settled(self) -> "Seen":
        """Wait until the page was told of what changed, and no screen or view is being drawn."""
        drawing = "#main:not([data-ready]), .view:not([data-ready])"
        self.frame().page.wait_for_function("(drawing) => !document.querySelector(drawing)", arg=drawing)
        return self

    def frame(self) -> "Seen":
        """Wait until the page was told of what changed, which happens once a frame: until then the old is ready."""
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
        return self

    def ready(self) -> "Seen":
        """Wait until a view is drawn, with no failure."""
        self.settled().page.wait_for_selector(".view[data-ready]")
        assert self.page.locator(".view .failure").count() == 0, self.page.locator(".failure").all_inner_texts()
        return self

    def cell(self, canvas: str, row: int, column: int) -> tuple[float, float, float]:
        """Return the number that the colour of a cell stands for, its lowest and its highest."""
        return tuple(self.page.evaluate(_READ, [canvas, row, column]))

    def quiet(self) -> None:
        """Say that the page wrote nothing into the console and asked no other machine."""
        assert self.said == [], self.said
        away = [url for url in self.asked if urlparse(url).scheme in ("http", "https") and _host(url) not in LOCAL]
        assert away == []

    def accessible(self) -> None:
        """Say that axe finds nothing serious."""
        axe = pytest.importorskip("axe_playwright_python.sync_playwright")
        violations = axe.Axe().run(self.page).response["violations"]
        serious = [one for one in violations if one["impact"] in ("serious", "critical")]
        assert not serious, [(one["id"], [node["html"][:120] for node in one["nodes"][:3]]) for one in serious]

    def narrow(self) -> None:
        """Say that nothing is wider than the window."""
        width = self.page.viewport_size["width"]
        assert self.page.evaluate("document.documentElement.scrollWidth") <= width

    def stops(self) -> Iterator[str]:
        """Yield every view of every screen, each when it is drawn without a failure."""
        for screen in self.page.evaluate("() => window.orrery.session.screens"):
            self.screen(screen)
            names = [stop.get_attribute("data-view") for stop in self.page.locator(".rail [data-view]").all()]
            for name in names:
                self.view(name)
                assert self.page.locator(".view .failure:not([hidden])").all_inner_texts() == [], name
                yield f"{screen}/{name}"
            if not names:
                yield screen

    def outside(self) -> list[str]:
        """Return what stands outside the window or is cut by its box, but for rows that can be scrolled."""
        return list(self.page.evaluate(_OUTSIDE))

    def close(self) -> None:
        """Close the page."""
        self.page.close()


def _host(url: str) -> str | None:
    return urlparse(url).hostname


_READ = """async ([selector, row, column]) => {
  const { palette, scheme } = await import("#see/palette.js");
  const shown = document.querySelector(selector);
  const copy = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(shown, column, row, 1, 1, 0, 0, 1, 1);
  const [r, g, b] = context.getImageData(0, 0, 1, 1).data;
  const { colours, lowest, highest } = shown.dataset;
  const table = palette(colours, scheme());
  for (let i = 0; i < 256; i++)
    if (table[3 * i] === r && table[3 * i + 1] === g && table[3 * i + 2] === b)
      return [Number(lowest) + (i / 255) * (highest - lowest), Number(lowest), Number(highest)];
  return [NaN, Number(lowest), Number(highest)];
}"""

_OUTSIDE = """() => {
  const { clientWidth: width, scrollWidth } = document.documentElement;
  const found = scrollWidth > width ? [`the page is ${scrollWidth} wide`] : [];
  const rolls = (one) => /auto|scroll/.test(getComputedStyle(one).overflowX);
  const scrolls = (one) => one && one !== document.body && (rolls(one) || scrolls(one.parentElement));
  for (const one of document.querySelectorAll("body *")) {
    if (one.closest("svg *, .unseen, .skip, [hidden]") || scrolls(one)) continue;
    const { left, right, width: own } = one.getBoundingClientRect();
    const said = `${one.tagName}.${one.className} ${one.textContent.slice(0, 30)}`;
    if (own && (right > width + 1 || left < -1)) found.push(`${said} stands at ${left} to ${right}`);
    const cut = /hidden|clip/.test(getComputedStyle(one).overflowX) && one.scrollWidth > one.clientWidth + 1;
    if (own && cut && !one.title) found.push(`${said} is cut`);
  }
  return found.slice(0, 5);
}"""
