"""The demo's page in a real browser, opened from the disk: whole, silent, and readable in light and dark."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from demo_toy import findings
from orrery.studies.demo.page import page as render

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = next((path_found for name in BROWSERS if (path_found := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"needs a browser: none of {', '.join(BROWSERS)} is installed")
    from playwright import sync_api

    with sync_api.sync_playwright() as playwright:
        # Chromium has no sandbox of its own for the superuser, as whom CI runs.
        words = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=words)
        yield browser
        browser.close()


def brightness(colour: str) -> float:
    """Return the mean of the channels of ``rgb(r, g, b)``."""
    return sum(int(part) for part in colour[4:-1].split(",")[:3]) / 3


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_page_opens_from_the_disk(browser: Any, tmp_path: Path, scheme: str) -> None:
    file = tmp_path / "report.html"
    file.write_text(render(findings("</pre><img src=x onerror=alert(1)>")), encoding="utf-8")
    page = browser.new_page(color_scheme=scheme, viewport={"width": 390, "height": 800})
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    assert (said, asked) == ([], [file.as_uri()])
    assert page.locator("svg").count() == 4
    assert all(
        box["width"] > 20 and box["height"] > 20 for box in (s.bounding_box() for s in page.locator("svg").all())
    )
    assert page.locator("h2").all_inner_texts()[0] == "How it learned"
    style = "e => [getComputedStyle(e).backgroundColor, getComputedStyle(e).color]"
    paper, ink = map(brightness, page.locator("body").evaluate(style))
    assert (paper > ink) == (scheme == "light")
    assert abs(paper - ink) > 150
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()
