"""The drawings of an architecture in a real browser, for families that are built in different ways."""

import pytest

from browser import Seen
from orrery.page.views._view import ViewSubject, shown
from orrery.serving.background import serving
from views_toy import subject_of

pytestmark = pytest.mark.slow
FAMILIES = ("transformer", "gpt2", "rnnsearch", "gptj")
DRAWINGS = ("figure", "attention", "stream", "paths", "timeline")
PLACE = '/#screen="model"&view="architecture"'


@pytest.fixture(scope="module", params=FAMILIES)
def served(request):
    with serving(subject_of(request.param).lm, grace=5) as server:
        yield server


def drawing(seen, name):
    seen.choose("select[name=drawing]", name)
    seen.page.wait_for_selector(f'[data-drawing="{name}"]')


def test_every_part_of_the_graph_is_drawn_with_its_numbers(browser, served):
    seen = Seen(browser).open(served.url + PLACE).ready()
    facts = shown("architecture", ViewSubject(served.served.lm), {}).facts
    linked = {end for edge in facts["edges"] for end in (edge["first"], edge["second"])}
    boxes = [node for node in facts["nodes"] if node["id"] in linked and node["slot"] not in ("input", "add")]
    assert seen.page.locator(".drawing .part[role=button]").count() == len(boxes)
    assert seen.page.locator(".drawing .link").count() == len(facts["edges"])
    for kind in ("skip", "memory"):
        wanted = sum(edge["kind"] == kind for edge in facts["edges"])
        assert seen.page.locator(f".drawing .link.{kind}").count() == wanted
    part = next(node for node in boxes if node["parameters"] and node["shape"])
    name = f"{part['what']}: {part['parameters']:,} parameters"
    box = seen.page.locator(f'.drawing .part[aria-label^="{name}"]').first
    box.focus()
    seen.press("Enter")
    told = seen.page.locator("[data-part]").inner_text()
    assert told.startswith(name)
    assert all(str(side) in told.split("gives")[1] for side in part["shape"])
    for name in DRAWINGS:
        drawing(seen, name)
        seen.accessible()
    assert seen.page.locator(f'.timeline .own[data-family="{facts["family"]}"]').count() == (facts["family"] != "gptj")
    seen.quiet()
    seen.close()


def test_the_path_between_tokens_is_as_long_as_they_are_apart(browser, served):
    seen = Seen(browser).open(f'{served.url}{PLACE}&figure="paths"').ready()
    seen.page.locator('[aria-label="tokens 4"]').first.hover()
    seen.page.wait_for_selector('[data-pair]:has-text("3 steps by recurrence")')
    assert seen.page.locator(".drawing .link.on").count() == (1 + 3 + 1) + (1 + 1)
    seen.page.fill("input[name=tokens]", "1000")
    width = shown("architecture", ViewSubject(served.served.lm), {}).facts["width"]
    cells = seen.page.locator('[data-layer="self"] td').all_inner_texts()
    assert cells == ["n² · d", _short(1000**2 * width), "1", "1"]
    cells = seen.page.locator('[data-layer="recurrent"] td').all_inner_texts()
    assert cells == ["n · d²", _short(1000 * width**2), "1,000", "1,000"]
    seen.quiet()
    seen.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_small_window_shows_all(browser, served, scheme):
    seen = Seen(browser, width=390, scheme=scheme).open(f'{served.url}{PLACE}&language="de"').ready()
    for name in DRAWINGS:
        drawing(seen, name)
        seen.narrow()
    seen.accessible()
    seen.quiet()
    seen.close()


def _short(count):
    return f"{count:,}"
