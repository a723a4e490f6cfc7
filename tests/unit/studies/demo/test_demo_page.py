import json
import re
from html.parser import HTMLParser

import pytest

from demo_toy import findings
from made_pages import MADE
from orrery.studies.demo.page import page
from page_tables import tables

NASTY = "</pre><script>alert('&\"')</script>\x1b\x00<img src=http://example.org/x>"
VOID = {"meta", "link", "br", "img"}


class Balanced(HTMLParser):
    """Counts elements and holds that every one that opens closes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_the_same_for_the_same_findings() -> None:
    text = page(findings(), MADE)
    parsed = Balanced(text)
    assert parsed.open == []
    assert parsed.seen.count("svg") == 4
    assert parsed.seen.count("blockquote") == 2
    assert text == page(findings(), MADE)
    assert "Every check below passed." in text


def test_nothing_from_outside_becomes_markup_or_a_request() -> None:
    text = page(findings(NASTY), MADE)
    parsed = Balanced(text)
    assert not {"script", "img", "iframe", "object"} & set(parsed.seen)
    assert "\x1b" not in text
    assert "\x00" not in text
    assert re.findall(r'(?:src|href)="(?!data:,"|inside\.html")', text) == []


@pytest.mark.parametrize(("bits", "failed"), [(1.99, []), (2.0, ["below xz"]), (2.5, ["below xz"]), (float("nan"), 1)])
def test_the_model_must_be_below_each_floor(bits: float, failed: list[str] | int) -> None:
    names = [check.name for check in findings(bits_per_byte=bits).failed]
    assert names == failed or len(names) == failed


def test_a_failed_check_is_said_at_the_top() -> None:
    text = page(findings(bits_per_byte=2.5), MADE)
    assert "1 of the checks failed." in text
    assert "FAILED" in text


@pytest.mark.parametrize(("bits", "said"), [(1.8, "passed"), (2.5, "FAILED")])
def test_each_check_has_its_number_and_its_bound(bits: float, said: str) -> None:
    made = findings(bits_per_byte=bits)
    (rows,) = [rows for heads, rows in tables(page(made, MADE)) if heads == ["", "check", "number", "at most"]]
    assert rows == [
        [said, "below xz", f"{bits:g}", "2"],
        ["passed", "looking changes no number", "0", "0"],
    ]


def test_measures_stand_best_first_with_what_they_are_for() -> None:
    (rows,) = [rows for heads, rows in tables(page(findings(), MADE)) if heads == ["", "bits per byte", ""]]
    assert rows == [
        ["token trigram", "1.700", "a number to aim at"],
        ["this model", "1.800", ""],
        ["xz", "2.000", "must be above the model"],
    ]


def test_findings_are_json() -> None:
    read = json.loads(json.dumps(findings().as_json()))
    assert read["passed"] is True
    assert read["checks"][0]["passed"] is True
    assert read["run"]["records"][1]["val/bpb"] == 3.0
