"""Seconds and points of a curve from lines of metrics, the table's row, and a page that nothing from outside breaks."""

import json
import xml.etree.ElementTree as ET

import pytest

from compare_toy import RECORDS, comparison, whole
from made_pages import MADE
from orrery.studies.compare.charts import BY_BUDGET, by_seconds, by_tokens, figures
from orrery.studies.compare.findings import (
    SWEPT,
    ComparisonEntry,
    Point,
    SweepResult,
    Trial,
    comparison_from,
    points,
)
from orrery.studies.compare.page import page
from orrery.studies.compare.probes.table import PROBES
from orrery.studies.compare.summary import COLUMNS, table
from page_tables import tables


def test_seconds_are_those_of_training():
    assert points(RECORDS) == (Point(2, 200, 3.0, 4.0), Point(4, 400, 7.0, 3.0))


def test_a_line_without_a_speed_came_as_fast_as_its_neighbours():
    stopped = [{**RECORDS[1], "tokens_per_second": 0.0}, *RECORDS[2:]]
    assert points(stopped) == (Point(2, 200, 4.0, 4.0), Point(4, 400, 8.0, 3.0))
    assert points([RECORDS[0], *stopped])[0] == Point(2, 200, 4.0, 4.0)


def test_the_table_ranks_and_says_what_was_counted():
    rows = table(comparison())
    assert [row[0] for row in rows] == ["ngram", "lstm"]
    assert rows[0][2] == "50 n-grams"
    assert {len(row) for row in rows} == {len(COLUMNS)}


@pytest.mark.parametrize("filled", [comparison(), whole()], ids=["one budget", "everything"])
def test_json_gives_everything_back(filled):
    assert comparison_from(json.loads(json.dumps(filled.as_json()))) == filled


def test_the_report_has_every_figure_and_says_how_all_was_found():
    filled = whole()
    drawn, made = figures(filled), page(filled, MADE)
    assert {BY_BUDGET, "sweep", "loss-by-seconds", "loss-by-tokens", *PROBES} == set(drawn)
    assert all(svg in made for svg in drawn.values())
    assert made.count("<svg") == len(drawn) + 1
    for said in ("came apart", "chosen", "kept for choosing", "gained by the sweep", "is ahead of", "±"):
        assert said in made


@pytest.mark.parametrize(
    ("rates", "losses", "chosen"),
    [
        ((0.1, 0.03, 0.3), (1.0, 2.0, 3.0), ["chosen", "", ""]),
        ((0.1, 0.03, 0.3), (2.0, 3.0, 1.0), ["", "", "chosen, at the edge"]),
        ((0.1, 0.03, 0.3), (2.0, 1.0, None), ["", "chosen, at the edge", ""]),
        ((0.1,), (2.0,), ["chosen"]),
    ],
)
def test_every_trial_of_a_sweep_has_a_row_and_the_chosen_one_says_so(rates, losses, chosen):
    compared = comparison("text")
    trials = [Trial(rate, 0.05, 1200, 2, 0.5, loss) for rate, loss in zip(rates, losses, strict=True)]
    compared.sweeps["lstm"] = SweepResult(trials)
    (rows,) = [rows for heads, rows in tables(page(compared, MADE)) if heads[:2] == ["model", "trial"]]
    assert rows == [
        ["lstm", str(n), f"{rate:g}", "5%", "1,200", "came apart" if loss is None else f"{loss:.3f}", said]
        for n, (rate, loss, said) in enumerate(zip(rates, losses, chosen, strict=True), start=1)
    ]


def test_models_of_one_hue_differ_in_their_dashes():
    compared = comparison("text")
    compared.entries = [
        ComparisonEntry(f"m{i}", "", 1, 1, 1, 1.0, 3.0, 8.0, 4, points(RECORDS), 4, 7, SWEPT, 0.1, 0) for i in range(14)
    ]
    lines = [line for line in ET.fromstring(by_tokens(compared)).iter() if line.tag.endswith("polyline")]
    assert len({(line.get("class"), line.get("stroke-dasharray")) for line in lines}) == 14


def test_the_page_escapes_and_draws_both_figures():
    made = page(comparison(), MADE)
    assert "<b>&\x1b" not in made
    assert "&lt;b&gt;&amp;" in made
    assert made.count("<svg") == 3
    assert page(comparison(), MADE) == made


@pytest.mark.parametrize("figure", [by_seconds, by_tokens])
def test_what_was_counted_is_a_level_line(figure):
    lines = [line for line in ET.fromstring(figure(comparison())).iter() if line.tag.endswith("polyline")]
    assert len(lines) == 2
    heights = {place.split(",")[1] for place in lines[1].get("points").split()}
    assert len(heights) == 1


def test_a_comparison_of_counts_alone_has_no_curves():
    compared = comparison("text")
    compared.entries = compared.entries[1:]
    assert "None of them learned step by step" in page(compared, MADE)


def test_its_models_are_rows_of_a_table_of_pandas():
    pytest.importorskip("pandas")
    made = comparison()
    frame = made.to_pandas()
    assert frame["name"].tolist() == [entry.name for entry in made.entries]
    assert frame["bits_per_byte"].tolist() == [entry.bits_per_byte for entry in made.entries]
    assert "curve" not in frame.columns
