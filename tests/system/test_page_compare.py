"""The comparison of architectures in a real browser."""

import pytest

from browser import Seen, chromium
from orrery.page.views._view import ViewSubject, shown
from orrery.serving.background import serving
from views_toy import subject_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_differs_from_a_family_stands_in_a_table(scheme):
    with serving(subject_of("gpt2").lm, grace=5) as served, chromium() as browser:
        seen = Seen(browser, width=390, scheme=scheme)
        seen.open(f'{served.url}/#screen="model"&view="compare"', "model").ready()
        seen.choose("select[name=other]", "llama")
        wanted = shown("compare", ViewSubject(served.served.lm), {"other": "llama"}).facts["differences"]
        seen.page.wait_for_selector("[data-path]")
        for row, one in zip(seen.page.locator("[data-path]").all(), wanted, strict=True):
            assert row.get_attribute("data-path") == one["path"]
            for side in ("first", "second"):
                assert (one[side] or "not there") in row.inner_text()
        seen.accessible()
        seen.narrow()
        assert "other=" in seen.page.evaluate("location.href")
        seen.quiet()
