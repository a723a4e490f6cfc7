"""The screen of a run in a real browser, while the run learns: curves that grow, checkpoints that are looked into."""

import contextlib
import json
import time
from functools import partial

import pytest
import torch

import orrery
import programs
from browser import Seen
from live_run import command, learning
from made_once import made_once
from orrery.checkpoints.store import CheckpointStore
from orrery.language_model.load import load
from orrery.serving.background import serving

Error = pytest.importorskip("playwright.sync_api").Error
pytestmark = pytest.mark.slow
TEXT = "The ring: abc"
LOSS = '[data-chart="train/loss"]'


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made_once(tmp_path_factory, "ring", learned) / "run"


def learned(folder):
    folder.mkdir()
    programs.run(command(folder, steps=150), cwd=folder, check=True, capture_output=True)


def opened(run):
    return serving(load(run, "cpu", "float32", say=lambda line: None), grace=5)


@pytest.fixture(scope="module")
def served(run):
    with opened(run) as server:
        yield server


@pytest.fixture
def seen(browser, served):
    visit = Seen(browser).open(f"{served.url}/#screen=%22train%22", "train")
    yield visit
    visit.quiet()
    visit.close()


def records(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


HEAT = ".view[data-view=attention] .heat canvas"
CELLS = ((5, 2), (9, 4), (12, 12), (7, 1))


def shows(seen, pattern):
    values = [seen.cell(HEAT, *cell)[0] for cell in CELLS]
    return all(abs(value - float(pattern[cell])) <= 0.5 / 255 + 1e-3 for value, cell in zip(values, CELLS, strict=True))


def eventually(holds, what):
    end = time.monotonic() + 10
    while True:
        with contextlib.suppress(Error):  # what was read is being drawn again
            if holds():
                return
        assert time.monotonic() < end, what
        time.sleep(0.1)


def points(seen):
    return int(seen.page.locator(LOSS).get_attribute("data-points"))


def test_curves_grow_while_a_run_learns(browser, tmp_path):
    with learning(tmp_path, steps=4000) as run, opened(run) as server:
        seen = Seen(browser).open(f"{server.url}/#screen=%22train%22", "train")
        seen.page.wait_for_selector('[data-live]:has-text("live")')
        before, began = points(seen), len(records(run))
        end = time.monotonic() + 60
        while points(seen) < before + 20:
            assert time.monotonic() < end, f"{before} points, then {points(seen)}"
            seen.page.wait_for_timeout(100)
        assert len(records(run)) > began
        marks = seen.page.locator("input[name=checkpoint]")
        most = int(marks.get_attribute("max"))
        seen.page.wait_for_selector(f'input[name=checkpoint]:not([max="{most}"])', timeout=180_000)
        assert int(marks.get_attribute("max")) > most
        seen.quiet()
        seen.close()
        assert server.served.followers in (0, 1)  # it notices within a moment that the page is closed


def test_what_is_drawn_is_what_the_run_wrote(seen, run):
    path = seen.page.locator(f'{LOSS} path[data-series="train/loss"]').get_attribute("d")
    drawn = [tuple(map(float, pair.split())) for pair in path[1:].split("L")]
    losses = [(record["step"], record["train/loss"]) for record in records(run)]
    assert len(drawn) == len(losses)
    steps, values = zip(*losses, strict=True)
    every = [*values, *(record["val/loss"] for record in records(run) if "val/loss" in record)]
    low, high = min(every), max(every)
    for (x, y), (step, value) in zip(drawn, losses, strict=True):
        assert x == pytest.approx(64 + (step - steps[0]) / (steps[-1] - steps[0]) * 484, abs=0.06)
        assert y == pytest.approx(10 + (high - value) / (high - low) * 156, abs=0.06)
    assert "150 of 150" in seen.page.locator("[data-progress]").inner_text()
    assert "The ring:" in seen.page.locator('[aria-label="What it wrote meanwhile"]').inner_text()


def test_the_slider_opens_the_pass_at_a_checkpoint(seen, served, run):
    seen.look(TEXT)
    store = CheckpointStore(run / "checkpoints")
    steps = sorted(store.steps())
    assert {50, 100, 150} <= set(steps)
    pictures = {}
    for place, step in enumerate(steps):
        slider = seen.page.locator("input[name=checkpoint]")
        slider.focus()
        seen.press("Home")
        for _ in range(place):
            seen.press("ArrowRight")
        seen.page.wait_for_selector(f'#said:has-text("step {step}")', state="attached")
        seen.page.wait_for_selector(".view[data-view=attention][data-ready]")
        pattern = load(store.path(step), "cpu", "float32", say=lambda line: None).trace(TEXT)[
            "blocks.0.attention.pattern"
        ][0, 0]
        eventually(partial(shows, seen, pattern), f"step {step}")
        pictures[step] = pattern
    assert not torch.equal(pictures[50], pictures[150])
    address = seen.page.evaluate("location.href")
    assert "checkpoint=150" in address
    assert seen.page.locator(f"{LOSS} .now").count() == 1  # the curves mark the step that is looked at
    models = served.served.passes._models
    assert len(models._held) <= 2


def test_a_click_into_a_curve_goes_to_the_nearest_checkpoint(seen):
    seen.look(TEXT)
    curve = seen.page.locator(f"{LOSS} svg.chart")
    curve.scroll_into_view_if_needed()
    box = curve.bounding_box()
    curve.click(position={"x": box["width"] * (64 + 484 * 0.62) / 560, "y": box["height"] / 2})
    seen.page.wait_for_selector('[data-checkpoint]:has-text("step 100")')
    seen.page.wait_for_selector('#said:has-text("step 100")', state="attached")


def test_checkpoints_are_played_one_after_the_other(seen):
    seen.look(TEXT)
    seen.page.click("[data-do=play]")
    for step in (50, 100, 150):
        seen.page.wait_for_selector(f'[data-checkpoint]:has-text("step {step}")')
    seen.page.wait_for_selector('[data-checkpoint]:has-text("as it is served")')


def test_the_slider_stands_on_the_screen_inside_too(browser, served):
    visit = Seen(browser).open(f"{served.url}/#screen=%22inside%22&checkpoint=50").look(TEXT)
    visit.page.wait_for_selector('[data-checkpoint]:has-text("step 50")')
    assert visit.page.evaluate("window.orrery.pass.model").endswith("step-000050")
    visit.quiet()
    visit.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_a_small_window_shows_all(browser, served, scheme):
    visit = Seen(browser, width=390, scheme=scheme).open(f"{served.url}/#screen=%22train%22", "train").look(TEXT)
    visit.click("details summary:has-text('What else')")
    visit.accessible()
    visit.narrow()
    visit.quiet()
    visit.close()


def test_heads_are_measured_at_every_checkpoint(browser, run, served):
    seen = Seen(browser).open(f"{served.url}/#screen=%22train%22", "train").look("abcd abcd abcd")
    seen.click("[data-do=forming]")
    seen.page.wait_for_selector('[data-forming="induction"]')
    store = CheckpointStore(run / "checkpoints")
    steps = sorted(store.steps())
    for row in seen.page.locator("[data-forming] [data-head]").all():
        layer, head = map(int, row.get_attribute("data-head").split("."))
        for step, told in zip(steps, row.locator("td").all_inner_texts(), strict=True):
            lm = load(store.path(step), "cpu", "float32", say=lambda line: None)
            wanted = float(lm.trace("abcd abcd abcd").head_roles()["induction"][layer, head])
            assert float(told.replace("\N{MINUS SIGN}", "-")) == pytest.approx(wanted, rel=6e-3, abs=1e-6)
    seen.page.locator("[data-forming] [data-head] button").first.click()
    seen.page.wait_for_selector(f'[data-checkpoint]:has-text("step {steps[0]}")')
    seen.accessible()
    seen.quiet()
    seen.close()


def test_a_saved_page_has_the_curves_and_the_architecture(browser, served, run, tmp_path):
    file = orrery.see(served.served.lm, TEXT).save(tmp_path / "page.html")
    seen = Seen(browser).open(f"{file.as_uri()}#screen=%22train%22", "train")
    assert points(seen) == len(records(run))
    assert seen.page.locator("[data-do=forming], input[name=checkpoint]").count() == 0
    seen.accessible()
    seen.click("[data-screen=model]")
    seen.page.wait_for_selector("main[data-ready=model]")
    seen.view("architecture")
    assert seen.page.locator(".drawing .part").count() > 10
    seen.view("compare")
    seen.choose("select[name=other]", "gpt2")
    seen.page.wait_for_selector("[data-path]")
    assert seen.said == []
    seen.close()
