"""Seconds and points of a curve from lines of metrics, the table's row, and a page that nothing from outside breaks."""

import json
import xml.etree.ElementTree as ET

import pytest

from orrery.compare.findings import COLUMNS, Comparison, Entry, Point, entry_from, points
from orrery.compare.page import by_seconds, by_tokens, page

RECORDS = [
    {"step": 1, "tokens": 100, "tokens_per_second": 50.0},
    {"step": 2, "tokens": 200, "tokens_per_second": 100.0, "val/bpb": 4.0},
    {"step": 3, "tokens": 200, "tokens_per_second": 0.0, "val/bpb": None},
    {"step": 4, "tokens": 400, "tokens_per_second": 50.0, "val/bpb": 3.0},
]


def comparison(text="<b>&\x1b"):
    settings = {"steps": 4, "minutes": None, "seed": 7}
    corpus = dict.fromkeys(("train_bytes", "train_tokens", "held_back_bytes", "held_back_tokens", "vocabulary"), 10)
    trained = Entry("lstm", text, 1000, 4000, 400, 7.0, 3.0, 8.0, 4, points(RECORDS))
    counted = Entry("ngram", text, 50, 900, 400, 0.1, 2.5, 6.0)
    return Comparison(settings, {**corpus, "source": text, "fingerprint": "0" * 64}, [trained, counted])


def test_seconds_are_those_of_training():
    assert points(RECORDS) == (Point(2, 200, 3.0, 4.0), Point(4, 400, 7.0, 3.0))


def test_a_line_without_a_speed_came_as_fast_as_its_neighbours():
    stopped = [{**RECORDS[1], "tokens_per_second": 0.0}, *RECORDS[2:]]
    assert points(stopped) == (Point(2, 200, 4.0, 4.0), Point(4, 400, 8.0, 3.0))
    assert points([RECORDS[0], *stopped])[0] == Point(2, 200, 4.0, 4.0)


def test_the_table_ranks_and_says_what_was_counted():
    ranked = comparison().ranked
    assert [entry.name for entry in ranked] == ["ngram", "lstm"]
    assert ranked[0].row[1] == "50 n-grams"
    assert len(ranked[0].row) == len(COLUMNS)


def test_json_gives_the_models_back():
    found = comparison()
    again = [entry_from(values) for values in json.loads(json.dumps(found.as_json()))["models"]]
    assert again == found.entries


def test_the_page_escapes_and_draws_both_figures():
    made = page(comparison())
    assert "<b>&\x1b" not in made
    assert "&lt;b&gt;&amp;" in made
    assert made.count("<svg") == 3
    assert page(comparison()) == made


@pytest.mark.parametrize("figure", [by_seconds, by_tokens])
def test_what_was_counted_is_a_level_line(figure):
    lines = [line for line in ET.fromstring(figure(comparison())).iter() if line.tag.endswith("polyline")]
    assert len(lines) == 2
    heights = {place.split(",")[1] for place in lines[1].get("points").split()}
    assert len(heights) == 1


def test_a_comparison_of_counts_alone_has_no_curves():
    found = comparison("text")
    found.entries = found.entries[1:]
    assert "None of them learned step by step" in page(found)
