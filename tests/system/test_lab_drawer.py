"""The drawer of edits in a browser: gestures, differences, undo, the address, files, and Python of the same numbers."""

import json
from urllib.parse import unquote

import pytest
import torch

import orrery
from browser import Seen
from orrery.inspection.difference import difference
from serving_toy import chat_model, running

pytestmark = pytest.mark.slow
TEXT = "the cat sat on the mat, the dog"
HEAT = ".view .heat canvas"
EDIT = {"at": "blocks.0.attention.mixed", "op": "zero", "head": 1}


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with running(chat_model(tmp_path_factory.mktemp("toy") / "model"), "float32") as server:
        yield server


@pytest.fixture(scope="module")
def runs(toy):
    clean = toy.served.lm.trace(TEXT)
    return clean, clean.edit([EDIT]).run()


@pytest.fixture
def seen(browser, toy):
    visit = Seen(browser).open(f"{toy.url}/#screen=%22inside%22&layer=1&head=2&lab=true").look(TEXT)
    yield visit
    visit.quiet()
    visit.close()


def focus(seen, name):
    return seen.page.evaluate("(name) => window.orrery.focus.get(name)", name)


def settled(seen, edits):
    """Wait until so many edits act and their pass is drawn."""
    seen.page.wait_for_selector(
        f'#lab summary:has-text("{edits} edits act")' if edits else '#lab summary:has-text("no edits")'
    )
    seen.ready()


def ablate(seen):
    seen.page.dblclick('.grid button[data-layer="0"][data-head="1"]')
    settled(seen, "1 of 1")


def compare(seen):
    seen.press("d")
    seen.page.wait_for_selector('[data-lab="difference"]:checked')
    seen.page.wait_for_selector('.view canvas[data-colours="signed"]')
    seen.ready()


def test_two_clicks_ablate_a_head_and_the_difference_is_that_of_two_traces(seen, runs):
    clean, edited = runs
    ablate(seen)
    seen.click('.grid button[data-layer="1"][data-head="2"]')
    seen.page.wait_for_selector('.grid button[data-layer="1"][data-head="2"][aria-pressed="true"]')
    compare(seen)
    wanted = (edited["blocks.1.attention.pattern"] - clean["blocks.1.attention.pattern"])[0, 2]
    most = float(wanted.half().abs().max())
    for row in range(1, wanted.shape[0], 3):
        for column in range(0, row, 2):
            value, lowest, highest = seen.cell(HEAT, row, column)
            assert -lowest == highest == pytest.approx(most)
            assert abs(value - float(wanted[row, column])) <= 2 * most / 255 + 1e-4, (row, column)
    moved = difference(clean, edited)
    told = seen.page.locator('[data-lab="kl"]:not(:empty)').inner_text()
    assert f"{float(moved.kl_BL[0, -1]):.4g}"[:5] in told
    seen.view("logits")
    shown = float(seen.page.locator("[data-kl]").get_attribute("data-kl"))
    assert shown == pytest.approx(float(moved.kl_BL[0, -1]), rel=1e-9)
    seen.accessible()


@pytest.mark.parametrize("view", ["attention", "heads", "residual", "lens", "logits", "neurons", "saliency"])
def test_every_view_that_can_be_compared_is_drawn_so(seen, view):
    ablate(seen)
    seen.press("d")
    seen.page.wait_for_selector('[data-lab="difference"]:checked')
    seen.ready()
    if view != "attention":
        seen.view(view)
    seen.ready()


def test_an_edit_that_changes_nothing_is_zero_everywhere(seen):
    seen.page.evaluate("window.orrery.lab.add({ at: 'blocks.0.attention.mixed', op: 'scale', scale: 1 })")
    settled(seen, "1 of 1")
    compare(seen)
    for view in ("attention", "residual", "lens"):
        if view != "attention":
            seen.view(view)
        for place in range(seen.page.locator(HEAT).count()):
            zero = seen.page.evaluate(ZERO, [HEAT, place])
            assert zero, (view, place)


ZERO = """async ([selector, place]) => {
  const { palette, place: at, scheme } = await import("#see/palette.js");
  const canvas = document.querySelectorAll(selector)[place];
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const middle = 3 * at(0, -1, 1);
  const [r, g, b] = palette("signed", scheme()).subarray(middle, middle + 3);
  for (let i = 0; i < data.length; i += 4) if (data[i] !== r || data[i + 1] !== g || data[i + 2] !== b) return false;
  return true;
}"""


def test_edits_are_switched_off_undone_and_in_the_address(browser, seen):
    ablate(seen)
    seen.page.dblclick('.strip .token[data-place="3"]')
    settled(seen, "2 of 2")
    assert seen.page.locator(".token.hidden").get_attribute("data-place") == "3"
    seen.page.uncheck('[data-edit="0"]')
    settled(seen, "1 of 2")
    address = seen.page.evaluate("location.href")
    edits = json.loads(unquote(address.split("edits=")[1].split("&")[0]).replace("+", " "))
    assert edits[0] == {**EDIT, "off": True}
    assert edits[1]["op"] == "mask"
    assert edits[1]["key"] == 3
    again = Seen(browser).open(address).ready()
    assert focus(again, "edits") == edits
    assert again.page.evaluate("window.orrery.pass.id") == seen.page.evaluate("window.orrery.pass.id")
    again.quiet()
    again.close()
    for key, told in (("z", "2 of 2"), ("z", "1 of 1"), ("z", 0), ("Shift+Z", "1 of 1"), ("Shift+Z", "2 of 2")):
        seen.press(key)
        settled(seen, told)
    seen.click('.edits button[aria-label="Remove 1"]')
    settled(seen, "1 of 1")


def test_the_python_gives_the_same_numbers(seen, toy):
    """Every kind of edit of the drawer, one of them from another text, copied and executed: equal bit for bit."""
    seen.press("x")
    settled(seen, "1 of 1")
    page = seen.page
    page.click("#lab details.more summary")
    page.select_option(".lab-form [name=op]", "patch")
    page.fill(".lab-form [name=at]", "blocks.0.resid_post")
    page.fill(".lab-form [name=from]", 'a dog "ran"')
    page.fill(".lab-form [name=position]", "4")
    page.fill(".lab-form [name=from_position]", "2")
    page.fill(".lab-form [name=head]", "")
    page.click('[data-lab="add"]')
    settled(seen, "2 of 2")
    page.select_option(".lab-form [name=op]", "replace")
    page.fill(".lab-form [name=position]", "1")
    page.fill(".lab-form [name=token]", "7")
    page.click('[data-lab="add"]')
    settled(seen, "3 of 3")
    more = [
        {"at": "blocks.1.resid_pre", "op": "add", "from": "B", "from_position": 1, "scale": -0.25},
        {"at": "blocks.0.feed_forward.hidden", "op": "mean", "channel": [3, 4]},
        {"at": "blocks.1.attention.scores", "op": "mask", "position": 6, "key": [2, 3], "head": 0},
        {"at": "blocks.1.feed_forward.added", "op": "scale", "scale": 0.3},
    ]
    for n, edit in enumerate(more):
        page.evaluate("(edit) => window.orrery.lab.add(edit)", edit)
        settled(seen, f"{n + 4} of {n + 4}")
    page.click('[data-lab="copy"]')
    code = page.locator("#lab pre.code").inner_text()
    made = {}
    exec(code, made)
    id = page.evaluate("window.orrery.pass.id")
    shown = toy.served.passes._held[id].first
    assert torch.equal(made["edited"].logits, shown.logits)
    assert all(torch.equal(made["edited"][key], shown[key]) for key in shown)
    assert torch.equal(made["inside"].logits, toy.served.lm.trace(TEXT).logits)
    assert not torch.equal(made["inside"].logits, made["edited"].logits)
    seen.page.wait_for_selector('#lab:has-text("a dog")')


def test_what_cannot_be_carried_out_is_told_and_changes_nothing(seen):
    seen.page.evaluate("window.orrery.lab.add({ at: 'blocks.9.nothing', op: 'zero' })")
    seen.page.wait_for_selector('#lab .failure:has-text("nothing is called")')
    assert not focus(seen, "edits")
    seen.said.clear()  # the browser itself writes of an answer of 400


def test_keys_choose_the_measure_and_cutting_edges_is_measured(seen, runs):
    seen.click('.strip .token[data-place="5"]')
    seen.press("c")
    seen.page.wait_for_selector('.view th:has-text("KL when cut")')
    edits = runs[0].edit().mask("blocks.1.attention.scores", head=2, position=5, key=0)
    wanted = float(difference(runs[0], edits.run()).kl_BL[0, 5])
    seen.page.wait_for_selector(".view .side > div:last-child tbody tr")
    values = [
        float(text.replace("\u2212", "-").replace("\u2013", "nan"))
        for text in seen.page.locator(".view .side > div:last-child tbody tr td:last-child").all_inner_texts()
    ]
    assert any(value == pytest.approx(wanted, rel=2e-3) for value in values), (wanted, values)
    assert values[0] == max(value for value in values if value == value)
    seen.press("v")
    seen.page.wait_for_selector('[data-choice="measure"]')
    assert seen.page.locator('[data-choice="measure"]').input_value() == "value"
    seen.press("a")
    seen.page.wait_for_selector('[data-choice="measure"] option[value="weight"]:checked', state="attached")


def test_a_saved_page_has_the_edits_that_it_was_saved_with(browser, toy, runs, tmp_path):
    clean, edited = runs
    other = {"at": "blocks.1.attention.mixed", "op": "zero", "head": 0}
    file = orrery.see(toy.served.lm, TEXT, edits=[[EDIT], [EDIT, other]]).save(tmp_path / "page.html")
    visit = Seen(browser).open(f"{file.as_uri()}#layer=1&head=2&lab=true").ready()
    ablate(visit)
    compare(visit)
    visit.click('.grid button[data-layer="1"][data-head="2"]')
    visit.page.wait_for_selector('.grid button[data-layer="1"][data-head="2"][aria-pressed="true"]')
    wanted = (edited["blocks.1.attention.pattern"] - clean["blocks.1.attention.pattern"])[0, 2]
    value, lowest, highest = visit.cell(HEAT, 6, 2)
    assert abs(value - float(wanted[6, 2])) <= (highest - lowest) / 255
    visit.page.dblclick('.grid button[data-layer="1"][data-head="0"]')
    settled(visit, "2 of 2")
    assert visit.page.locator('[data-edit="0"]').is_disabled()  # the second alone was not saved
    assert visit.page.locator('[data-edit="1"]').is_enabled()
    visit.page.dblclick('.grid button[data-layer="1"][data-head="3"]')
    visit.page.wait_for_selector('#lab:has-text("saved without these edits")')
    code = visit.page.locator("#lab pre.code").inner_text()
    made = {}
    exec(code.replace(f"orrery.load({toy.served.lm.stored.name!r})", "lm"), {"lm": toy.served.lm}, made)
    wanted = clean.edit([EDIT, other, {**other, "head": 3}]).run()
    assert torch.equal(made["edited"].logits, wanted.logits)
    settled(visit, "2 of 2")
    visit.click('[data-saved="0"]')  # what was saved can be chosen from a list
    settled(visit, "1 of 1")
    assert visit.page.locator('[data-saved="0"]').get_attribute("aria-pressed") == "true"
    visit.click('[data-saved="1"]')
    settled(visit, "2 of 2")
    visit.accessible()
    assert [url for url in visit.asked if not url.startswith("data:")] == [file.as_uri()]
    assert visit.said == []
    visit.close()
