"""The numbers of the cache on the page: what is held so far, which slot holds it, and its cells as numbers."""

import re

import pytest
import torch

from browser import Seen
from orrery.page.page import Page
from orrery.page.views._inside import Inside
from orrery.page.views._live_cache import live_cache
from orrery.page.views._view import ViewSubject
from orrery.serving.background import serving
from views_toy import language_model_of

pytestmark = pytest.mark.slow
TEXT = "the cat sat on the mat, the dog sat on the log"
WINDOW = 5

_WATCH = """() => {
  const output = document.querySelector(".view output");
  window.counts = [];
  new MutationObserver(() => window.counts.push(parseInt(output.textContent))).observe(output, { childList: true });
}"""


@pytest.fixture(scope="module")
def served():
    lm = language_model_of("mistral")
    with serving(lm, "toy", grace=5) as server:
        yield server, lm


@pytest.fixture
def seen(browser, served):
    visit = Seen(browser).open(f"{served[0].url}/#screen=%22inside%22").look(TEXT).screen("decode").view("cached")
    yield visit
    visit.quiet()
    visit.close()


def kept(seen):
    """Return the places that are drawn as held, each with its slot."""
    told = "(tokens) => tokens.map(({ dataset: { kept, slot } }) => [Number(kept), Number(slot)])"
    return dict(seen.page.locator(".strip.kept [data-kept]").evaluate_all(told))


def cells(seen, number):
    """Return the numbers of a vector, the first is k, the second v."""
    texts = seen.page.locator(".view .vector").nth(number).locator(".cell .why, .cell .number").all_inner_texts()
    return torch.tensor([float(text.replace("\N{MINUS SIGN}", "-")) for text in texts])


def read(seen, tokens):
    seen.page.evaluate(
        """(tokens) => {
          const range = document.querySelector("[name=cached-tokens]");
          range.value = tokens;
          range.dispatchEvent(new Event("input"));
        }""",
        tokens,
    )
    seen.page.wait_for_function(
        "(tokens) => document.querySelector('.view output').textContent.startsWith(`${tokens} of `)", arg=tokens
    )


def test_places_slots_and_numbers_follow_the_text(seen, served):
    lm = served[1]
    inside = Inside(lm, {"text": TEXT})
    length = len(inside.tokens)
    for tokens in (3, length, 7):
        read(seen, tokens)
        held = range(max(0, tokens - WINDOW), tokens)
        assert kept(seen) == {place: place % WINDOW for place in held}
        assert seen.page.locator(".strip.kept [data-gone]").count() == tokens - len(held)
        layer = live_cache(inside, tokens).layers[0]
        assert torch.allclose(cells(seen, 0), layer.rows["k"][0, -1], rtol=6e-3)
        assert torch.allclose(cells(seen, 1), layer.rows["v"][0, -1], rtol=6e-3)
        assert seen.page.locator('tr[data-layer="0"] [data-bytes]').get_attribute("data-bytes") == str(layer.bytes)
    seen.click(".strip.kept [data-kept='3']")
    assert torch.allclose(cells(seen, 0), layer.rows["k"][0, layer.positions.index(3)], rtol=6e-3)
    seen.page.click("tr[data-layer='1'] button")
    seen.page.wait_for_selector("tr[data-layer='1'][aria-current='true']")
    seen.page.select_option("[data-choice=held]", "1")
    seen.page.wait_for_selector('.view h3:has-text("held head 1")')
    second = live_cache(inside, 7).layers[1]
    assert torch.allclose(cells(seen, 1), second.rows["v"][1, second.positions.index(3)], rtol=6e-3)
    assert "serves the heads 3, 4, 5" in seen.page.locator(".view").inner_text()
    seen.accessible()


def test_it_is_played_token_by_token(seen):
    read(seen, 1)
    seen.page.evaluate(_WATCH)
    seen.click("[data-do=play]")
    seen.page.wait_for_function("() => window.counts.at(-1) >= 4")
    seen.click("[data-do=play]")
    seen.page.wait_for_timeout(600)
    counts = seen.page.evaluate("window.counts")
    seen.page.wait_for_timeout(600)
    assert counts == seen.page.evaluate("window.counts") == list(range(2, len(counts) + 2))


def test_a_number_of_it_is_explained(seen):
    seen.page.locator(".view .vector").first.locator(".why").first.click()
    seen.page.wait_for_selector("dialog.explain .formula")
    assert re.search(r"blocks\.0\.attention\.k", seen.page.locator("dialog.explain").inner_text())


def test_a_saved_page_has_the_numbers(browser, tmp_path):
    lm = language_model_of("deepseek_v3")
    inside = Inside(lm, {"text": TEXT})
    visit = Seen(browser, width=360, height=780).open(
        Page(ViewSubject(lm, inside)).save(tmp_path / "page.html").as_uri()
    )
    visit.screen("decode").view("cached")
    latent = live_cache(inside, len(inside.tokens)).layers[0].rows["latent"][0, -1]
    assert torch.allclose(cells(visit, 0), latent, rtol=6e-3)
    assert visit.page.locator("[name=cached-tokens]").count() == 0
    visit.narrow()
    visit.quiet()
    visit.close()
