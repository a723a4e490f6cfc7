"""Every view of models of several families in a real browser: each opens, and nothing undefined is shown."""

import re

import pytest
import torch

from browser import Seen
from orrery.data.pictures.addresses import content_of
from orrery.data.pictures.files import read_pixels
from orrery.data.pictures.png import write_png
from orrery.page.page import Page
from orrery.page.views._view import ViewSubject, fitting
from orrery.serving.background import serving
from views_toy import PIXELS, language_model_of, subject_of

pytestmark = pytest.mark.slow
FAMILIES = [
    *("gpt2", "llama", "gpt_oss", "deepseek_v3", "t5", "bart", "bert", "rnnsearch", "lstm", "nplm", "vit"),
    *("mamba", "based", "jamba", "bimamba", "clip", "siglip"),
]
SCREENS = ("inside", "decode", "model")
WRONG = re.compile(r"\bundefined\b|\bNaN\b|\[object |\bnull\b")


def whole(visit):
    """Say that a view shows no value that is none, neither as text nor in its pictures."""
    html = visit.page.locator("main").evaluate("(one) => one.outerHTML")
    words = [html[max(0, one.start() - 60) : one.end() + 20] for one in WRONG.finditer(html)]
    assert words == []
    assert visit.page.locator("main .failure:not([hidden])").all_inner_texts() == []


def walked(visit):
    """Open every view of every screen; return what was opened."""
    opened, screens = [], visit.page.evaluate("() => window.orrery.session.screens")
    for screen in [screen for screen in SCREENS if screen in screens]:
        visit.screen(screen)
        for stop in visit.page.locator(".rail [data-view]").all():
            name = stop.get_attribute("data-view")
            visit.view(name)
            visit.page.wait_for_load_state("networkidle")
            assert visit.page.locator(".view").inner_text().strip(), name
            whole(visit)
            opened.append(name)
    return opened


@pytest.mark.parametrize("family", FAMILIES)
def test_every_view_opens(browser, tmp_path, family):
    lm = language_model_of(family)
    file = tmp_path / "image.png"
    file.write_bytes(write_png(PIXELS.permute(2, 0, 1)))
    with serving(lm, "toy") as toy:
        visit = Seen(browser).open(f"{toy.url}/#screen=%22inside%22", "inside")
        if lm.model.spec.vocabulary is None:
            visit.page.set_input_files("input[name=image]", file)
            if lm.model.spec.reads_pair:
                visit.page.fill("textarea[name=target]", "the dog")
            visit.page.click("form.ask button.go")
            visit.page.wait_for_selector(".strip")
            visit.ready()
        else:
            visit.look("the cat sat on", "the dog" if lm.model.spec.reads_source else None)
        opened = walked(visit)
        expected = [view.kind for view in fitting(subject_of(family)) if view.screen in SCREENS]
        assert sorted(opened) == sorted(expected)
        visit.quiet()
        visit.close()


@pytest.mark.parametrize("family", ["gpt2", "t5", "bert", "rnnsearch", "vit"])
def test_a_saved_page_shows_every_view_too(browser, tmp_path, family):
    file = Page(subject_of(family)).save(tmp_path / "page.html")
    visit = Seen(browser).open(file.as_uri()).ready()
    assert set(walked(visit)) == {view.kind for view in fitting(subject_of(family)) if view.screen in SCREENS}
    assert visit.said == []
    visit.close()


def test_nothing_is_ready_while_it_is_drawn_again(browser, tmp_path):
    visit = Seen(browser).open(Page(subject_of("gpt2")).save(tmp_path / "page.html").as_uri()).ready()
    for change in ({"screen": "decode"}, {"screen": "inside"}, {"language": "de"}):
        visit.page.wait_for_selector("main[data-ready]")
        assert visit.page.evaluate(_READY_ONCE_TOLD, change) is False
    visit.close()


_READY_ONCE_TOLD = """(change) => new Promise((done) => {
  window.orrery.focus.set(change);
  requestAnimationFrame(() => done(document.querySelector("main").hasAttribute("data-ready")));
})"""


def test_the_alignment_of_a_translation(browser):
    """Bahdanau's picture: the source across, what was written down, in grey."""
    subject = subject_of("rnnsearch")
    with serving(subject.lm, "toy") as toy:
        visit = (
            Seen(browser).open(f"{toy.url}/#screen=%22inside%22&view=%22attention%22").look("the cat sat on", "the dog")
        )
        (site,) = subject.seen.sites
        pattern_LS = subject.seen[site.key(site.layers[0], "pattern")][0, 0]
        canvas = ".view .labelled .heat canvas"
        rows, columns = pattern_LS.shape
        assert visit.page.evaluate(f"[document.querySelector('{canvas}').height]") == [rows]
        assert visit.page.get_attribute(canvas, "data-colours") == "grey"
        for row in range(rows):
            for column in range(columns):
                value, *_ = visit.cell(canvas, row, column)
                assert abs(value - float(pattern_LS[row, column])) <= 0.5 / 255 + 2**-11
        visit.quiet()
        visit.close()


@pytest.mark.parametrize("family", ["vit", "vision_encoder_decoder"])
def test_a_picture_is_given_and_its_patches_are_looked_at(browser, tmp_path, family):
    pillow = pytest.importorskip("PIL.Image", reason="Pillow, of the extra vision, is not installed")
    lm, file = language_model_of(family), tmp_path / "image.webp"
    pixels = PIXELS[:12, :12].contiguous()
    pillow.fromarray(pixels.numpy()).save(file, lossless=True)
    with serving(lm, "toy") as toy:
        found = Seen(browser).open(f"{toy.url}/#screen=%22inside%22", "inside")
        found.page.set_input_files("input[name=image]", file)
        found.page.click("form.ask button.go")
        found.page.wait_for_selector(".strip")
        found.ready().view("patches")
        frames = found.page.locator(".view svg.patches rect")
        assert frames.count() == 9
        focus = "query" if family == "vit" else "key"
        frames.nth(4).click()
        assert found.page.evaluate(f"() => window.orrery.focus.get('{focus}')") == 5
        found.page.wait_for_selector('.view svg.patches rect:nth-of-type(5)[stroke-width="4"]')
        assert frames.nth(3).get_attribute("stroke-width") == "1"
        address = found.page.get_attribute(".view svg.patches image", "href")
        assert torch.equal(read_pixels(content_of(address)), pixels.permute(2, 0, 1))
        whole(found)
        found.quiet()
        found.close()


def test_the_search_sees_what_is_undefined(browser):
    with serving(language_model_of("gpt2"), "toy") as toy:
        visit = Seen(browser).open(f"{toy.url}/#screen=%22inside%22").look("the cat sat on")
        visit.view("tokens")
        whole(visit)
        for text in ("undefined", "NaN", "[object Object]"):
            visit.page.evaluate("(text) => document.querySelector('.view').append(' ' + text)", text)
            with pytest.raises(AssertionError):
                whole(visit)
        visit.close()


def test_the_subject_of_the_model_alone_has_views():
    for family in FAMILIES:
        assert {view.screen for view in fitting(ViewSubject(language_model_of(family)))} <= {
            "decode",
            "model",
            "train",
            "trust",
        }
