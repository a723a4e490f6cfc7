"""What looking costs: the memory of a long text, the size of the page, and no answer that differs where nobody looks.

How fast it is stands in the benchmarks: a machine that does other work meanwhile fails no test.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from browser import Seen, chromium
from serving_toy import chat_model, running

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def run(tmp_path):
    def result_of(name, *words):
        file = tmp_path / "record.json"
        command = [sys.executable, str(BENCHMARKS / name), *words, "--output", str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode in (0, 1), done.stdout + done.stderr  # 1: a bar of the benchmark is missed
        return json.loads(file.read_text(encoding="utf-8"))["found"]

    return result_of


@pytest.mark.slow
def test_8192_tokens_take_no_more_than_was_stated(run):
    numbers = run("long_text.py")
    assert numbers["tokens"] == 8192
    assert numbers["passed"]
    assert numbers["measured"] <= numbers["stated"] <= 4 * numbers["measured"]
    assert numbers["stated"] < numbers["patterns"] / 5


@pytest.mark.slow
@pytest.mark.alone
def test_the_page_is_small_at_512_tokens_of_12_layers_with_12_heads(run):
    with chromium():
        pass  # skips where there is none
    numbers = run("page_speed.py", "--rounds", "1")
    assert numbers["first_picture_s"] > 0
    assert numbers["hover_ms"] > 0
    assert numbers["working_ms"] > 0
    assert numbers["slider_ms"] > 0
    assert numbers["frames_per_s"] > 0
    assert numbers["turned_parameters"] > 9_000_000
    assert numbers["code_bytes"] < 400_000
    assert numbers["json_bytes"] < 200_000


@pytest.mark.slow
def test_a_long_text_is_drawn_by_an_overview_and_tiles(tmp_path):
    with running(chat_model(tmp_path / "m", context=2400), "float32") as toy, chromium() as browser:
        visit = Seen(browser).open(f"{toy.url}/#screen=%22inside%22&layer=1&head=2")
        visit.page.evaluate("(ids) => window.orrery.look({ ids })", [40 + n * 37 % 200 for n in range(2200)])
        visit.page.wait_for_selector("[data-tiles] .heat canvas")
        (inside,) = toy.served.passes._held.values()
        key = "blocks.1.attention.pattern"
        overview = visit.page.locator("[data-overview] .heat canvas")
        box = overview.bounding_box()
        overview.click(position={"x": box["width"] * 0.3, "y": box["height"] * 0.9})
        visit.page.wait_for_selector('h3 + p:has-text("Below queries 1792")')
        visit.ready()
        value, lowest, highest = visit.cell("[data-tiles] .heat canvas", 100, 30)
        wanted = float(inside.rows(key, 2, slice(1892, 1893))[0, 512 + 30])
        most = float(inside.rows(key, 2, slice(1792, 2048))[:, 512:768].max())
        assert lowest == 0
        assert highest == pytest.approx(most, rel=1e-3)
        assert abs(value - wanted) <= highest / 255
        visit.quiet()
        visit.close()


@pytest.mark.slow
@pytest.mark.alone
def test_a_server_that_can_be_looked_into_writes_the_same(run):
    numbers = run("looking_cost.py", "--rounds", "4")
    assert numbers["different"] == 0
    assert numbers["answers"] == 24
    assert all(one["median"] > 0 for one in numbers["ratios"].values())
