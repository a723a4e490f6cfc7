"""Every view at the widths of a phone, a tablet and a desk, light and dark: nothing is cut, wide or unreadable."""

import re

import pytest

from browser import Seen
from orrery.page.page import Page
from orrery.page.views._inside import Inside
from orrery.page.views._view import ViewSubject
from views_toy import given_to, language_model_of

pytestmark = pytest.mark.slow
TEXT = "the cat sat on the mat, the dog sat on the log and looked at it"
SIZES = {"phone": (360, 780), "tablet": (768, 1024), "desk": (1440, 900)}
MODELS = {
    **{family: {} for family in ("gpt2", "llama", "bert", "t5", "bart", "mamba", "vit", "rnnsearch")},
    "vision_encoder_decoder": {},
    "a classifier": {"family": "bert", "architectures": ["BertForSequenceClassification"]},
    "a tagger": {"family": "bert", "architectures": ["BertForTokenClassification"]},
}


@pytest.fixture(scope="module")
def page_of(tmp_path_factory):
    """Return the page of a model, saved once for the module."""
    folder, saved = tmp_path_factory.mktemp("sizes"), {}

    def made(name: str):
        if name not in saved:
            config = dict(MODELS[name])
            lm = language_model_of(str(config.pop("family", name)), **config)
            subject = ViewSubject(lm, Inside(lm, given_to(lm, TEXT)))
            saved[name] = Page(subject).save(folder / f"{name.replace(' ', '-')}.html")
        return saved[name]

    return made


@pytest.mark.parametrize(
    ("name", "size"),
    [("gpt2", "phone"), ("gpt2", "desk"), ("t5", "phone"), ("a classifier", "phone"), ("vit", "tablet")],
)
def test_nothing_is_wider_than_the_window(browser, page_of, name, size):
    width, height = SIZES[size]
    visit = Seen(browser, width, height).open(page_of(name).as_uri())
    assert {stop: found for stop in visit.stops() if (found := visit.outside())} == {}
    assert visit.said == []
    visit.close()


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", MODELS)
def test_every_view_can_be_read_and_reached_at_every_size(browser, page_of, name, size, scheme):
    width, height = SIZES[size]
    for language in ("en", "de"):
        visit = Seen(browser, width, height, scheme).open(f"{page_of(name).as_uri()}#language=%22{language}%22")
        for stop in visit.stops():
            assert (stop, visit.outside()) == (stop, [])
            if language == "en":
                visit.accessible()
        assert visit.said == []
        assert {url.split(":")[0] for url in visit.asked} <= {"file", "data", "blob"}
        visit.close()


def test_what_is_too_wide_or_cut_is_seen(browser, page_of):
    visit = Seen(browser, *SIZES["phone"]).open(page_of("gpt2").as_uri()).ready()
    assert visit.outside() == []
    for style in ("width:500px", "width:9px;overflow:hidden;white-space:nowrap"):
        visit.page.evaluate(
            """(style) => {
              const one = document.querySelector(".view").appendChild(document.createElement("div"));
              one.id = "wrong";
              one.textContent = "too much of it";
              one.setAttribute("style", style);
            }""",
            style,
        )
        assert visit.outside() != []
        visit.page.evaluate("document.getElementById('wrong').remove()")
    visit.close()


def test_the_header_of_a_phone_is_one_line_whose_button_opens_the_rest(browser, page_of):
    visit = Seen(browser, *SIZES["phone"]).open(page_of("gpt2").as_uri()).ready()
    height = "document.getElementById('header').getBoundingClientRect().height"
    assert visit.page.evaluate(height) <= 48
    assert not visit.page.locator("header [data-tool=theme]").is_visible()
    visit.click("header .menu")
    assert visit.page.locator("header [data-tool=theme]").is_visible()
    assert visit.page.locator("header .menu").get_attribute("aria-expanded") == "true"
    visit.choose("header select", "de")
    assert visit.page.locator("header select").is_visible()
    visit.accessible()
    visit.close()


def test_a_desk_has_text_and_tokens_left_and_the_picture_right(browser, page_of):
    for size, beside in (("desk", True), ("phone", False)):
        visit = Seen(browser, *SIZES[size]).open(page_of("gpt2").as_uri()).ready()
        tokens, rail, view = (visit.page.locator(one).bounding_box() for one in (".strips", ".rail", ".view"))
        assert (view["x"] >= tokens["x"] + tokens["width"]) == beside
        assert (view["x"] >= rail["x"] + rail["width"]) == beside
        visit.close()


def test_a_word_of_the_field_opens_its_entry(browser, page_of):
    for language, word, said in (("en", "stream", "The vector that each token carries"), ("de", "Strom", "Der Vektor")):
        visit = Seen(browser, *SIZES["phone"]).open(f"{page_of('gpt2').as_uri()}#language=%22{language}%22").ready()
        visit.view("residual")
        visit.click(".view .term[data-term=stream]")
        dialog = visit.page.locator("dialog.glossary")
        assert said in dialog.inner_text()
        visit.accessible()
        visit.page.keyboard.press("Escape")
        dialog.wait_for(state="detached")
        visit.click("header .menu")
        visit.click("[data-tool=glossary]")
        entries = dialog.locator("dt").all_inner_texts()
        assert word.capitalize() in entries
        assert len(entries) >= 25
        visit.close()


def test_the_glossary_says_the_same_words_in_both_languages(browser, page_of):
    visit = Seen(browser).open(page_of("gpt2").as_uri()).ready()
    tables = visit.page.evaluate("""async () => {
      const [en, de] = await Promise.all(["en", "de"].map((one) => import(`#see/glossary/${one}.js`)));
      return [en.default, de.default];
    }""")
    assert list(tables[0]) == list(tables[1])
    for table in tables:
        for word, pattern, meaning in table.values():
            assert re.search(pattern, word, re.IGNORECASE), word
            assert meaning.endswith(".")
    visit.close()


@pytest.mark.parametrize("name", ["a classifier", "a tagger"])
def test_classes_are_shown_with_probability_and_saliency(browser, page_of, name):
    visit = Seen(browser).open(page_of(name).as_uri()).ready().view("classes")
    if name == "a tagger":
        visit.click('[data-tag="3"]')
        assert "sat" not in visit.page.locator(".view h3").first.inner_text()
    else:
        visit.click('.view tr[data-label="1"] button')
    rows = visit.page.locator(".view tr[data-label]")
    shares = [float(rows.nth(n).locator("td").nth(2).inner_text()) for n in range(rows.count())]
    assert sum(shares) == pytest.approx(1, abs=2e-3)
    assert shares == sorted(shares, reverse=True)
    numbers = visit.page.locator(".view [data-saliency] .shaded")
    assert numbers.count() == visit.page.evaluate("() => window.orrery.pass.tokens.length")
    if name == "a classifier":
        assert visit.page.get_attribute(".view tr[aria-current]", "data-label") == "1"
    visit.close()


def test_the_way_of_a_token_is_drawn_and_walked(browser, page_of):
    visit = Seen(browser, *SIZES["phone"]).open(page_of("gpt2").as_uri()).ready().view("way")
    stations = visit.page.locator("details table tr")
    visit.click("details:has(table) > summary")
    said = stations.all_inner_texts()
    assert said[0].split("\t")[1] == "row of the table"
    assert sum("adds" in one for one in said) == 4  # attention and feed-forward layer of two blocks
    visit.page.locator("[data-way=step]").evaluate("(one) => ((one.value = 2), one.dispatchEvent(new Event('input')))")
    assert visit.page.locator(".controls output").inner_text() == "attention of block 0 adds"
    for way in ("closer", "closer", "farther", "whole"):
        visit.click(f"[data-way={way}]")
    visit.accessible()
    assert visit.said == []
    visit.close()
