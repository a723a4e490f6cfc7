"""Draw the README's picture of a saved page with Chromium: ``python docs/examples/screenshot.py PAGE.html OUT.png``."""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright


def screenshot(page: Path, out: Path) -> None:
    """Write what the view of attention shows."""
    with sync_playwright() as playwright:
        words = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=words)
        window = browser.new_page(color_scheme="light", viewport={"width": 1280, "height": 690})
        window.goto(page.resolve().as_uri())
        window.wait_for_selector("main[data-ready]")
        window.click('.rail [data-view="attention"]')
        window.wait_for_selector('.view[data-view="attention"][data-ready]')
        window.screenshot(path=out)
        browser.close()


if __name__ == "__main__":
    screenshot(Path(sys.argv[1]), Path(sys.argv[2]))
