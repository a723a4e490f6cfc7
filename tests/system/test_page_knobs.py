"""What can be turned beside the views: the shown head answers from its queries and keys, the whole pass follows."""

import pytest
import torch

from browser import Seen
from serving_toy import chat_model, running
from tiny_models import saved

pytestmark = pytest.mark.slow
TEXT = "the cat sat on the mat, the dog"
HEAT = ".view .heat canvas"
SCALED = {"at": "blocks.*.attention", "op": "rescale", "scale": 2.5}
TURNED = {"at": "positions.rotary", "op": "rebase", "value": 100}
_TURN = """([name, value, let]) => {
  const range = document.querySelector(`[data-knob="${name}"]`);
  range.value = value;
  range.dispatchEvent(new Event("input"));
  if (let) range.dispatchEvent(new Event("change"));
}"""

_LOGITS = """async () => {
  const { tensors } = await window.orrery.source.get("logits", { position: 12 });
  return [Array.from(tensors.id.data), Array.from(tensors.logit.data)];
}"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    with running(chat_model(tmp_path_factory.mktemp("toy") / "model"), "float32") as server:
        yield server


@pytest.fixture
def seen(browser, toy):
    visit = Seen(browser).open(f"{toy.url}/#screen=%22inside%22&layer=0&head=2").look(TEXT)
    yield visit
    visit.quiet()
    visit.close()


def drawn(seen, pattern):
    """Say whether the cells of the heat map are the numbers of a pattern, to half a colour."""
    size = pattern.shape[0]
    cells = [(row, column) for row in range(1, size, 3) for column in range(0, row, 2)]
    return all(abs(seen.cell(HEAT, *cell)[0] - float(pattern[cell])) <= 0.5 / 255 + 1e-3 for cell in cells)


def settled(seen, said):
    seen.page.wait_for_selector(f'#lab summary:has-text("{said}")')
    seen.page.wait_for_function("() => window.orrery.focus.get('overTurned') === null")
    seen.ready()


@pytest.mark.parametrize(("name", "value", "edit"), [("scale", "2.5", SCALED), ("positions.rotary", "2", TURNED)])
def test_the_shown_head_answers_at_once_and_the_pass_follows(seen, toy, name, value, edit):
    inside = toy.served.lm.trace(TEXT)
    edited = inside.edit([edit]).run()
    before, after = (run["blocks.0.attention.pattern"][0, 2] for run in (inside, edited))
    assert drawn(seen, before)
    assert not drawn(seen, after)
    held, free = [], []  # until it is free no pass runs: the head is asked alone
    seen.page.route("**/inspect/traces", lambda route: route.continue_() if free else held.append(route))
    with seen.page.expect_response("**/attention?*factor=*"):
        seen.page.evaluate(_TURN, [name, value, False])
    seen.frame().frame()
    assert drawn(seen, after)  # what enters the first block is what it was
    seen.page.wait_for_timeout(400)
    assert held
    free.append(True)
    for route in held:
        route.continue_()
    settled(seen, "1 of 1 edits act")
    assert seen.page.evaluate("window.orrery.pass.edits") == [edit]
    seen.click('.grid button[data-layer="1"][data-head="2"]')
    assert drawn(seen, edited["blocks.1.attention.pattern"][0, 2])


def test_many_movements_are_one_step_back(seen, toy):
    for value in ("0.5", "1.5", "2.5"):
        seen.page.evaluate(_TURN, ["scale", value, False])
    seen.page.evaluate(_TURN, ["scale", "2.5", True])
    settled(seen, "1 of 1 edits act")
    seen.page.evaluate(_TURN, ["positions.rotary", "2", True])
    settled(seen, "2 of 2 edits act")
    edited = toy.served.lm.trace(TEXT).edit([SCALED, TURNED]).run()
    assert drawn(seen, edited["blocks.0.attention.pattern"][0, 2])
    assert "2.5" in seen.page.locator(".knobs output").first.inner_text()
    assert '.rescale("blocks.*.attention", scale=2.5)' in seen.page.evaluate(
        "window.orrery.python(window.orrery.pass.edits)"
    )
    seen.press("z")
    settled(seen, "1 of 1 edits act")
    assert seen.page.evaluate("window.orrery.pass.edits") == [SCALED]
    seen.press("z")
    settled(seen, "no edits")
    assert " 1 = 0.354" in seen.page.locator(".knobs output").first.inner_text()
    assert drawn(seen, toy.served.lm.trace(TEXT)["blocks.0.attention.pattern"][0, 2])


def test_a_head_and_a_cell_are_put_off_and_on(seen, toy):
    inside = toy.served.lm.trace(TEXT)
    size = inside["blocks.0.attention.pattern"].shape[-1]
    box = seen.page.locator(HEAT).bounding_box()
    query, key = 5, 3
    at = {"x": (key + 0.5) * box["width"] / size, "y": (query + 0.5) * box["height"] / size}
    seen.page.dblclick(HEAT, position=at)
    settled(seen, "1 of 1 edits act")
    masked = inside.edit().mask("blocks.0.attention.scores", key=key, position=query, head=2).run()
    pattern = masked["blocks.0.attention.pattern"][0, 2]
    assert pattern[query, key] == 0
    assert drawn(seen, pattern)
    switch = f'.knobs [data-switch="edge"][aria-pressed="{{}}"]:has-text("{query} → {key}")'
    seen.page.wait_for_selector(switch.format("true"))
    seen.click(switch.format("true"))
    settled(seen, "no edits")
    seen.page.wait_for_selector(switch.format("false"))
    seen.click('.knobs [data-switch="head"]')
    settled(seen, "1 of 1 edits act")
    off = inside.edit().zero("blocks.0.attention.mixed", head=2).run()
    ids, logits = seen.page.evaluate(_LOGITS)
    assert torch.allclose(torch.tensor(logits), off.logits[0, 12, ids], atol=1e-4)
    assert not torch.allclose(torch.tensor(logits), inside.logits[0, 12, ids], atol=1e-4)
    seen.page.wait_for_selector('.knobs [data-switch="head"][aria-pressed="true"]')


def test_what_a_model_lacks_is_told(browser, tmp_path):
    with running(saved(tmp_path / "gpt2", "gpt2"), "float32") as server:
        visit = Seen(browser).open(f"{server.url}/#screen=%22inside%22&language=%22de%22").look("the cat sat")
        assert visit.page.locator("[data-knob]").count() == 1
        assert "Seine Positionen drehen nicht" in visit.page.locator(".knobs [data-none]").inner_text()
        visit.accessible()
        visit.quiet()
        visit.close()
