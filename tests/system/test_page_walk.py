"""What a reader does with the page: long words, Back, a server that ends, and German that is German."""

import re

import pytest

import orrery
from browser import Seen
from orrery.text.train import train_tokenizer
from pages import DOCS
from serving_toy import chat_model, running
from views_toy import language_model_of

pytestmark = pytest.mark.slow
WORD = "Donaudampfschifffahrtsgesellschaftskapitänsmütze"
HARD = f"{WORD} 🙂 مرحبا שלום 你好 é̀ Z̷a\n\tend"


@pytest.fixture(scope="module")
def long_words(tmp_path_factory):
    """Return a saved page whose text has a token of 48 letters."""
    tokenizer = train_tokenizer("byte_bpe", [f"{HARD} {WORD}"] * 30, 420)
    lm = language_model_of("llama", tokenizer)
    return orrery.see(lm, HARD).save(tmp_path_factory.mktemp("words") / "page.html")


def test_long_words_fit_on_a_phone_and_what_is_said_of_numbers_is_german(browser, long_words):
    visit = Seen(browser, 360, 780).open(f"{long_words.as_uri()}#language=%22de%22")
    commas = 0
    english = re.compile(r"\b(the|is|are|of|and|what|sum|to)\b")
    for stop in visit.stops():
        assert (stop, visit.outside()) == (stop, [])
        names = visit.page.locator(".checks li > span:first-child").all_text_contents()
        assert (stop, [name for name in names if english.search(name)]) == (stop, [])
        assert (stop, visit.page.evaluate(_POINTS)) == (stop, [])
        commas += visit.page.locator("main").inner_text().count("0,")
    assert commas > 100
    visit.screen("inside").view("embedding")
    for place in range(visit.page.evaluate("window.orrery.pass.tokens.length")):
        visit.page.evaluate("(query) => window.orrery.focus.set({ query })", place)
        assert (place, visit.settled().outside()) == (place, [])
    visit.page.wait_for_selector(".scatter span:not(.over)")
    assert visit.page.evaluate(_OVER) == []
    visit.screen("decode").view("cache")
    small = (
        "Math.min(...[...document.querySelectorAll('.chart text')].map((one) => one.getBoundingClientRect().height))"
    )
    assert visit.page.evaluate(small) >= 11
    visit.close()


_POINTS = r"""() => {
  const texts = [...document.querySelectorAll("main :not(code)")].flatMap((one) =>
    [one.title, one.getAttribute("aria-label"), ...[...one.childNodes].map((node) => node.nodeType === 3 && node.data)]
  );
  return [...new Set(texts.filter((text) => /[0-9][.][0-9][0-9]/.test(text)))].slice(0, 5);
}"""
"""Numbers that begin their decimals with a point; a head such as 5.3 is a name."""
_OVER = """() => {
  const names = [...document.querySelectorAll(".scatter div span")];
  const boxes = names.map((one) => [one.textContent, one.getBoundingClientRect()]);
  const over = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const pairs = boxes.flatMap((one, i) => boxes.slice(i + 1).map((other) => [one, other]));
  return pairs.filter(([one, other]) => over(one[1], other[1])).map(([one, other]) => [one[0], other[0]]);
}"""


def test_a_long_name_leaves_the_screens_in_one_row(browser, long_words, tmp_path):
    page = tmp_path / "page.html"
    page.write_text(re.sub(r'("model": ?)"tiny"', rf'\1"{"a-long-name-" * 7}"', long_words.read_text("utf-8")), "utf-8")
    visit = Seen(browser).open(page.as_uri())
    assert "a-long-name" in visit.page.locator(".model strong").inner_text()
    for width in (768, 1440):
        visit.page.set_viewport_size({"width": width, "height": 900})
        assert len({tab.bounding_box()["y"] for tab in visit.page.locator(".tabs button").all()}) == 1
    visit.close()


def test_each_attention_of_a_saved_page_begins_with_what_was_saved(browser, tmp_path):
    file = orrery.see(language_model_of("t5"), "the cat sat on the mat", "the dog").save(tmp_path / "page.html")
    visit = Seen(browser).open(f"{file.as_uri()}#view=%22qkv%22").ready()
    for site in range(3):
        visit.choose("[data-choice=site]", str(site))
        assert visit.page.locator(".steps li").count() >= 4
    visit.close()


def test_the_page_of_a_notebook_goes_from_view_to_view(browser, tmp_path):
    notebook = tmp_path / "notebook.html"
    notebook.write_text(orrery.see(language_model_of("gpt2", n_layer=1), "the")._repr_html_(), encoding="utf-8")
    visit = Seen(browser)
    visit.page.goto(notebook.as_uri())
    frame = visit.page.frame_locator("iframe")
    for name in ("lens", "logits"):
        frame.locator(f'.rail [data-view="{name}"]').click()
        frame.locator(f'.view[data-view="{name}"][data-ready]').wait_for()
    frame.locator('[data-screen="model"]').click()
    frame.locator('main[data-ready="model"]').wait_for()
    assert visit.said == []
    visit.close()


def test_the_page_inside_a_site_is_as_light_or_dark_as_the_site(browser, long_words, tmp_path):
    script = (DOCS / "_static/interactive.js").read_text("utf-8")
    site = tmp_path / "site.html"
    frame = f'<iframe class="live" width="1200" src="{long_words.as_uri()}"></iframe>'
    site.write_text(f'<body data-theme="light"><script>{script}</script>{frame}</body>', encoding="utf-8")
    visit = Seen(browser, scheme="dark")
    visit.page.goto(site.as_uri())
    inside = visit.page.frames[1]
    inside.wait_for_selector("main[data-ready]")
    for theme, shown in (("light", "light"), ("dark", "dark"), ("light", "light"), ("auto", "dark")):
        visit.page.evaluate("(theme) => void (document.body.dataset.theme = theme)", theme)
        inside.wait_for_function(_SCHEME, arg=shown, timeout=5000)
    inside.click("[data-tool=theme]")
    inside.wait_for_function(_SCHEME, arg="light", timeout=5000)
    assert visit.said == []
    visit.close()


_SCHEME = """(shown) => {
  const papers = { light: "rgb(253, 253, 252)", dark: "rgb(20, 23, 27)" };
  return getComputedStyle(document.body).backgroundColor === papers[shown];
}"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with running(chat_model(tmp_path_factory.mktemp("toy") / "model"), "float32") as server:
        yield server


def test_back_goes_to_the_view_screen_and_text_before(browser, toy):
    visit = Seen(browser).open(f"{toy.url}/#screen=%22inside%22").look("the cat sat")
    visit.view("logits").view("lens").screen("model")
    visit.page.go_back()
    visit.page.wait_for_selector('.view[data-view="lens"][data-ready]')
    visit.page.go_back()
    visit.page.wait_for_selector('.view[data-view="logits"][data-ready]')
    visit.look("a dog on the mat")
    visit.page.go_back()
    visit.page.wait_for_function("() => document.querySelector('textarea[name=text]').value === 'the cat sat'")
    assert visit.page.evaluate("window.orrery.pass.given.text") == "the cat sat"
    visit.page.go_forward()
    visit.page.wait_for_function("() => document.querySelector('textarea[name=text]').value === 'a dog on the mat'")
    visit.page.evaluate("location.hash = '#screen=%22model%22'")
    visit.page.wait_for_selector('main[data-screen="model"]')
    visit.quiet()
    visit.close()


def test_a_server_that_ended_is_told_in_words(browser, toy):
    visit = Seen(browser).open(f"{toy.url}/#screen=%22inside%22&language=%22de%22").look("the cat sat")
    visit.page.route("**/inspect/**", lambda route: route.abort("connectionrefused"))
    visit.click("form.ask button.go")
    visit.page.wait_for_selector("form.ask .failure:not([hidden])")
    assert visit.page.locator("form.ask .failure").inner_text() == "Der Server antwortet nicht. Läuft er noch?"
    visit.close()


def test_a_link_that_could_not_be_copied_is_not_called_copied(browser, toy):
    visit = Seen(browser).open(f"{toy.url}/#screen=%22inside%22").look("the cat sat")
    visit.page.evaluate("() => void (navigator.clipboard.writeText = () => Promise.reject(new Error('no')))")
    visit.click("[data-tool=link]")
    visit.page.wait_for_selector("#said:not(:empty)")
    assert "does not let this page copy" in visit.page.locator("#said").inner_text()
    said = visit.page.locator("#said").bounding_box()
    assert said["y"] + said["height"] <= 900
    visit.close()
