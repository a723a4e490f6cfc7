"""The page in a real browser: served and saved, by pointer and keyboard, its pictures read back as numbers."""

import csv
import json
import math
import re
from urllib.parse import unquote

import pytest

import orrery
from browser import Seen
from serving_toy import chat_model, running

pytestmark = pytest.mark.slow
TEXT = "the cat sat on the mat, the dog"


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with running(chat_model(tmp_path_factory.mktemp("toy") / "model"), "float32") as server:
        yield server


@pytest.fixture(scope="module")
def pattern(toy):
    return toy.served.lm.trace(TEXT)["blocks.1.attention.pattern"][0, 2]


HEAT = ".view .heat canvas"


@pytest.fixture
def seen(browser, toy):
    visit = Seen(browser).open(f"{toy.url}/#screen=%22inside%22&layer=1&head=2").look(TEXT)
    yield visit
    visit.quiet()
    visit.close()


def test_pixels_are_the_numbers_of_the_pattern(seen, pattern):
    size = pattern.shape[0]
    assert seen.page.evaluate(f"[document.querySelector('{HEAT}').width, document.querySelector('{HEAT}').height]") == [
        size,
        size,
    ]
    for row in range(0, size, 3):
        for column in range(0, size, 2):
            value, lowest, highest = seen.cell(HEAT, row, column)
            assert (lowest, highest) == (0, 1)
            assert abs(value - float(pattern[row, column])) <= 0.5 / 255 + 1e-3, (row, column)


def test_the_pointer_shows_and_a_click_locks(seen, pattern):
    size = pattern.shape[0]
    box = seen.page.locator(HEAT).bounding_box()
    query, key = 5, 3
    at = (box["x"] + (key + 0.5) * box["width"] / size, box["y"] + (query + 0.5) * box["height"] / size)
    seen.page.mouse.move(*at)
    seen.page.wait_for_selector('[data-over]:has-text("gives")')
    told = seen.page.locator("[data-over]").inner_text()
    assert math.isclose(float(told.split()[-1]), float(pattern[query, key]), rel_tol=3e-3)  # three digits are shown
    assert seen.page.locator(".token.over").get_attribute("data-place") == str(query)
    seen.page.mouse.click(*at)
    seen.page.wait_for_selector(f'.token.looks[data-place="{query}"]')
    seen.page.wait_for_selector(f'.token.seen[data-place="{key}"]')
    seen.press("Escape")
    seen.page.wait_for_selector(".token.looks", state="detached")


def test_the_keyboard_moves_and_the_address_brings_everything_back(browser, toy, seen):
    seen.press("ArrowUp")
    seen.press("]")
    seen.press("ArrowRight")
    seen.page.wait_for_selector('.grid button[data-layer="0"][data-head="3"][aria-pressed="true"]')
    address = seen.page.evaluate("location.href")
    assert json.loads(unquote(address.split("given=")[1].split("&")[0]).replace("+", " ")) == {"text": TEXT}
    again = Seen(browser).open(address).ready()
    again.page.wait_for_selector('.grid button[data-layer="0"][data-head="3"][aria-pressed="true"]')
    again.page.wait_for_selector('.token.looks[data-place="0"]')
    same = "[...document.querySelectorAll('.view .heat canvas')].map((one) => one.toDataURL())"
    assert seen.page.evaluate(same)[0] == again.page.evaluate(same)[0]
    again.quiet()
    again.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_a_small_window_shows_all(browser, toy, scheme):
    visit = Seen(browser, width=390, scheme=scheme).open(toy.url + "/").look(TEXT)
    visit.accessible()
    visit.narrow()
    visit.quiet()
    visit.close()


def test_what_is_chosen_while_a_view_is_drawn_is_shown_in_it(seen):
    held = []
    seen.page.route("**/logits*", lambda route: held.append(route), times=1)
    with seen.page.expect_request("**/logits*"):
        seen.page.click('.rail [data-view="logits"]')
    seen.page.evaluate("window.orrery.focus.set({ query: 3 })")
    seen.frame()
    held[0].continue_()
    seen.view("logits")
    assert "sat" in seen.page.locator(".view h3").first.inner_text()


def test_the_words_change_with_the_language(seen):
    seen.choose("header select", "de")
    seen.page.wait_for_selector('.go:has-text("Hineinsehen")')
    assert seen.page.evaluate("document.documentElement.lang") == "de"
    seen.view("residual")
    rows = seen.page.locator(".view").inner_text()
    assert "Einbettung" in rows
    assert "embedded" not in rows
    seen.screen("model").view("architecture")
    shown = seen.page.locator("body").inner_text()
    assert "Token-Einbettung" in shown
    assert re.search(r"\d\u202f\d{3}", shown)
    assert not re.search(r"\d,\d{3}", shown)


def test_a_dark_system_and_paper_have_pictures_of_their_own(seen):
    corner = """all => all.map((one) => {  // a copy is read, for a browser complains where one canvas is read often
      const copy = new OffscreenCanvas(1, 1).getContext("2d");
      copy.drawImage(one, one.width - 1, 0, 1, 1, 0, 0, 1, 1);
      return copy.getImageData(0, 0, 1, 1).data[0];
    })"""
    maps, ink = seen.page.locator(".view canvas:not(.scale canvas)"), "getComputedStyle(document.body).color"
    assert maps.count() > 2
    light = maps.evaluate_all(corner)
    assert min(light) > 200
    seen.page.emulate_media(color_scheme="dark")
    seen.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")  # it is told then
    assert max(maps.evaluate_all(corner)) < 60
    seen.page.emulate_media(color_scheme="dark", media="print")
    seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert maps.evaluate_all(corner) == light
    assert seen.page.evaluate(ink) == "rgb(0, 0, 0)"
    seen.page.evaluate("dispatchEvent(new Event('afterprint'))")
    seen.page.emulate_media(color_scheme="dark", media="screen")
    assert max(maps.evaluate_all(corner)) < 60
    seen.view("qkv")
    assert seen.page.locator(".view button.fold:visible").count() > 0
    seen.page.emulate_media(color_scheme="light", media="print")
    assert seen.page.locator(".view button.fold:visible, .rail button:visible, #lab:visible").count() == 0
    seen.page.emulate_media(media="screen", forced_colors="active")
    current = "getComputedStyle(document.querySelector('.tab[aria-current]')).outlineStyle"
    assert seen.page.evaluate(current) == "solid"


def test_what_cannot_be_read_is_told_on_the_page(seen):
    seen.page.fill("textarea[name=text]", "the " * 3000)
    seen.click("form.ask button.go")
    seen.page.wait_for_selector("form.ask .failure:not([hidden])")
    assert "context" in seen.page.locator("form.ask .failure").inner_text()
    seen.said.clear()  # the browser itself writes of an answer of 400


@pytest.mark.parametrize("way", ["csv", "safetensors", "png", "svg"])
def test_what_is_shown_can_be_saved(seen, pattern, tmp_path, way):
    with seen.page.expect_download() as waited:
        seen.click(f'[data-export="{way}"]')
    file = tmp_path / f"file.{way}"
    waited.value.save_as(file)
    if way == "csv":
        rows = list(csv.reader(file.read_text(encoding="utf-8").splitlines()))
        assert abs(float(rows[2][1]) - float(pattern[1, 0])) < 1e-3
    elif way == "safetensors":
        import safetensors.torch

        saved = safetensors.torch.load_file(file)["pattern"]
        assert (saved - pattern).abs().max() < 1e-3
    elif way == "png":
        assert file.read_bytes().startswith(b"\x89PNG")
    else:
        assert file.read_text(encoding="utf-8").startswith("<svg")


def test_a_saved_page_opens_from_the_disk(browser, toy, pattern, tmp_path):
    file = orrery.see(toy.served.lm, TEXT).save(tmp_path / "page.html")
    visit = Seen(browser).open(f"{file.as_uri()}#layer=1&head=2").ready()
    value, *_ = visit.cell(HEAT, 6, 2)
    assert abs(value - float(pattern[6, 2])) <= 0.5 / 255 + 1e-3
    assert [url for url in visit.asked if not url.startswith("data:")] == [file.as_uri()]
    visit.accessible()
    assert visit.said == []
    visit.close()


def test_every_module_that_is_sent_parses_and_loads(browser, toy):
    visit = Seen(browser).open(toy.url + "/")
    failed = visit.page.evaluate("""async () => {
      const { imports } = JSON.parse(document.querySelector("script[type=importmap]").textContent);
      const asked = Object.keys(imports).map((name) => import(name).then(() => null, (error) => `${name}: ${error}`));
      return (await Promise.all(asked)).filter(Boolean);
    }""")
    assert failed == []
    visit.quiet()
    visit.close()


def test_two_heads_of_any_blocks_stand_side_by_side(browser, toy):
    visit = Seen(browser).open(f"{toy.url}/#screen=%22inside%22&layer=1&head=2&drawing=%22lines%22").look(TEXT)
    visit.choose("[data-choice=beside]", "0.3")
    visit.page.wait_for_selector('[data-beside="0.3"]')
    query = 6
    visit.click(f'.token[data-place="{query}"]')
    visit.page.wait_for_selector(".most li")
    trace = toy.served.lm.trace(TEXT)
    for layer, head in ((1, 2), (0, 3)):
        row = trace[f"blocks.{layer}.attention.pattern"][0, head, query]
        told = visit.page.locator(f'.most [data-head="{layer}.{head}"]').inner_text()
        weights = [float(part.split()[-1]) for part in told.split(", ")]
        assert weights == pytest.approx(row.sort(descending=True).values[: len(weights)].tolist(), abs=6e-3)
    again = Seen(browser).open(visit.page.evaluate("location.href")).ready()
    again.page.wait_for_selector('[data-beside="0.3"]')
    for one in (visit, again):
        one.accessible()
        one.quiet()
        one.close()
