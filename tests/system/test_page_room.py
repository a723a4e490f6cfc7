"""A saved page that has no room for all of a view says what it lacks."""

import pytest

import orrery
from browser import Seen
from views_toy import language_model_of

pytestmark = pytest.mark.slow
STATE = """() => [
  document.querySelector("canvas.way").checkVisibility(),
  document.querySelector("p[role=status]").textContent,
]"""


def test_the_way_of_a_token_that_was_not_saved_is_not_that_of_another(browser, tmp_path, monkeypatch):
    monkeypatch.setattr("orrery.page.page.ROOM", 0)
    file = orrery.see(language_model_of("gpt2"), "the cat sat").save(tmp_path / "page.html")
    visit = Seen(browser).open(file.as_uri())
    visit.page.evaluate("() => window.orrery.focus.set({ screen: 'inside', view: 'way' })")
    visit.page.wait_for_selector("canvas.way")
    for query, shown, words in ((0, False, "The way of this token was not saved with the page."), (2, True, "")):
        visit.page.evaluate("(query) => window.orrery.focus.set({ query })", query)
        visit.page.wait_for_function(f"() => document.querySelector('p[role=status]').textContent === {words!r}")
        assert visit.page.evaluate(STATE) == [shown, words]
    assert visit.said == []
    visit.close()
