"""The page of a ladder and its figures: band, prediction, what was measured, and nothing that text can break."""

from xml.etree import ElementTree

import pytest

from ladder_toy import followed
from made_pages import MADE
from orrery.reports.page import MAKING, visible
from orrery.studies.ladder.charts import FITTED, MEASURED, figures
from orrery.studies.ladder.findings import LadderRun
from orrery.studies.ladder.forecast import LEVEL, forecasts
from orrery.studies.ladder.page import facts, page
from orrery.studies.ladder.summary import (
    LAWS,
    SIZES,
    law_rows,
    outcome,
    planned,
    planned_minutes,
    planned_rows,
    repeats,
    size_rows,
)


def law(x):
    return 1.2 + 30 / x**0.35


@pytest.mark.parametrize("measured", [False, True])
def test_every_training_is_a_dot_and_the_law_has_a_band(measured):
    ladder = followed(law)
    if measured:
        ladder.runs.append(LadderRun(640_000, 1, 1.5, 2.0, 60.0))
    for svg in figures(ladder, forecasts(ladder)).values():
        names = [node.tag.rpartition("}")[2] for node in ElementTree.fromstring(svg).iter()]
        legend = 2 + measured  # one circle each for what is fitted, predicted, measured
        assert names.count("circle") == 15 + 1 + measured + legend
        assert names.count("polygon") == names.count("polyline") == 1
        assert FITTED in svg
        assert (MEASURED in svg) == measured


def test_the_page_says_the_miss_and_escapes_the_text():
    ladder = followed(law)
    ladder.runs.append(LadderRun(640_000, 1, forecasts(ladder)["parameters"].told / 1.01, 2.0, 60.0))
    told = forecasts(ladder)
    said = page(ladder, told, MADE)
    assert "a miss of +1.00%" in outcome(ladder, told)
    assert "a miss of +1.00%" in said
    assert "<text>" not in said.partition("<h2>Facts")[2]
    assert "hidden_size 6" in said
    assert said == page(ladder, told, MADE)


def test_each_part_of_the_page_has_its_table_under_its_name():
    ladder = followed(law)
    told = forecasts(ladder)
    parts = dict(part.split("</h2>", 1) for part in page(ladder, told, MADE).split("<h2>")[1:])
    assert list(parts) == ["The law", "What it tells", "The sizes", "Facts", MAKING]
    assert parts["The law"].count("<svg") == parts["The law"].count("<figcaption>") == len(figures(ladder, told))
    tables = {
        "What it tells": (LAWS, law_rows(told)),
        "The sizes": (SIZES, size_rows(ladder)),
        "Facts": (None, facts(ladder)),
    }
    for name, (heads, rows) in tables.items():
        assert "".join(f'<th scope="col">{visible(head)}</th>' for head in heads or ()) in parts[name]
        assert parts[name].count("<tr>") == len(rows) + bool(heads)
        assert all(f"<td>{visible(cell)}</td>" in parts[name] for row in rows for cell in row)
    assert f"{LEVEL:.0%} intervals" in parts["What it tells"]
    assert "Parameters are those of the blocks" in parts["The sizes"]


def test_a_text_that_repeats_is_told():
    ladder = followed(law)
    ladder.corpus = {**ladder.corpus, "train_tokens": 20 * 640_000}
    assert repeats(ladder) == ""
    assert "1.00 times those of the text" in page(ladder, forecasts(ladder), MADE)
    ladder.corpus = {**ladder.corpus, "train_tokens": 5 * 640_000}
    assert "reads 12,800,000 tokens of a text that has 3,200,000" in planned(ladder)
    assert "4.00 times those of the text" in page(ladder, forecasts(ladder), MADE)


def test_the_plan_counts_every_training():
    ladder = followed(law)
    assert planned_minutes(ladder) == pytest.approx((3 * (20 + 40 + 80 + 160 + 320) + 640) / 60)
    assert [row[-2] for row in planned_rows(ladder)] == ["3"] * 5 + ["1"]
    assert size_rows(ladder)[0][-1].endswith(" \u00b1 0.0021")
