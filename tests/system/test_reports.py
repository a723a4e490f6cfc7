"""Every report has one skeleton, says how it was made, and can be read in a browser of any width, light and dark."""

import re
from pathlib import Path
from typing import Any

import pytest

from browser import Seen
from made_pages import MADE
from orrery.reports.page import MAKING, POLICY
from report_pages import REPORTS

SIZES = {"phone": (360, 780), "desk": (1440, 900)}


@pytest.fixture(scope="module")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the file of a report, made once for the module."""
    folder = tmp_path_factory.mktemp("reports")

    def made(name: str) -> Path:
        file: Path = folder / f"{name}.html"
        if not file.exists():
            file.write_text(REPORTS[name](), encoding="utf-8")
        return file

    return made


def faults(text: str) -> list[str]:
    """Return what the markup of a report lacks or has too much of."""
    wanted = {
        "one head": '<main>\n<header>\n<p class="kind"><b>Orrery</b> ',
        "the day": f'<time datetime="{MADE.day}">',
        "the version": "<li>Orrery 0.1.0</li>",
        "the last part": f'<section id="making">\n<h2>{MAKING}</h2>',
        "the command": f"<pre>{MADE.words}</pre>",
        "the policy": POLICY,
    }
    missing = [name for name, markup in wanted.items() if text.count(markup) != 1]
    missing += ["one title"] if len(re.findall("<h1>", text)) != 1 or "<title>" not in text else []
    missing += ["the last part is last"] if f"<h2>{MAKING}</h2>" not in text.rpartition("<section")[2] else []
    moved = '<div class="wide" tabindex="0">'
    tables, figures = (
        len(re.findall(f'{moved}<table( class="many")?>', text)),
        len(re.findall(f'{moved}<svg [^>]*class="of"', text)),
    )
    missing += (
        ["every table with heads can be moved"] if len(re.findall('<table(?! class="facts")', text)) != tables else []
    )
    missing += ["every figure is of one style"] if text.count("<svg") != figures else []
    return missing


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_has_the_same_skeleton(page_of: Any, name: str) -> None:
    text = page_of(name).read_text(encoding="utf-8")
    assert faults(text) == []
    assert f'<p class="kind"><b>Orrery</b> {name}</p>' in text
    assert "<b>marks</b>" not in text


def test_a_report_of_another_make_is_found(page_of: Any) -> None:
    text = page_of("stages").read_text(encoding="utf-8")
    for old, new in (
        ('<div class="wide" tabindex="0"><table', "<table"),
        ("<time ", "<b "),
        (MADE.words, ""),
        ('class="of"', ""),
        ("</main>", "<section><h2>More</h2></section></main>"),
    ):
        assert faults(text.replace(old, new, 1)) != []


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_read_without_moving_it_sideways(
    browser: Any, page_of: Any, name: str, size: str, scheme: str
) -> None:
    visit = Seen(browser, *SIZES[size], scheme)
    visit.page.goto(page_of(name).as_uri())
    visit.narrow()
    assert visit.page.evaluate(_CUT) == []
    paper, ink = map(brightness, visit.page.locator("body").evaluate(_COLOURS))
    assert (paper > ink) == (scheme == "light")
    visit.accessible()
    assert (visit.said, visit.asked) == ([], [page_of(name).as_uri()])
    visit.close()


def brightness(colour: str) -> float:
    """Return the mean of the channels of ``rgb(r, g, b)``."""
    return sum(int(part) for part in colour[4:-1].split(",")[:3]) / 3


_COLOURS = "(one) => [getComputedStyle(one).backgroundColor, getComputedStyle(one).color]"
_CUT = """() => [...document.querySelectorAll("body *")].filter((one) => {
  if (one.closest("svg *, .wide *, details:not([open]) > :not(summary)")) return false;
  const { left, right, width, height } = one.getBoundingClientRect();
  return width && height && (left < -1 || right > document.documentElement.clientWidth + 1);
}).map((one) => `${one.tagName} ${one.textContent.slice(0, 40)}`)"""
