import json
import re
from html.parser import HTMLParser

import pytest

from demo_toy import findings
from orrery.demo.page import page

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
    text = page(findings())
    found = Balanced(text)
    assert found.open == []
    assert found.seen.count("svg") == 4
    assert found.seen.count("blockquote") == 2
    assert text == page(findings())
    assert "Every check below passed." in text


def test_nothing_from_outside_becomes_markup_or_a_request() -> None:
    text = page(findings(NASTY))
    found = Balanced(text)
    assert not {"script", "img", "iframe", "object"} & set(found.seen)
    assert "\x1b" not in text
    assert "\x00" not in text
    assert re.findall(r'(?:src|href)="(?!data:,"|inside\.html")', text) == []


@pytest.mark.parametrize(("bits", "failed"), [(1.99, []), (2.0, ["below xz"]), (2.5, ["below xz"]), (float("nan"), 1)])
def test_the_model_must_be_below_each_floor(bits: float, failed: list[str] | int) -> None:
    names = [check.name for check in findings(bits_per_byte=bits).failed]
    assert names == failed or len(names) == failed


def test_a_failed_check_is_said_at_the_top() -> None:
    text = page(findings(bits_per_byte=2.5))
    assert "1 of the checks failed." in text
    assert "FAILED" in text


def test_findings_are_json() -> None:
    read = json.loads(json.dumps(findings().as_json()))
    assert read["passed"] is True
    assert read["checks"][0]["passed"] is True
    assert read["run"]["records"][1]["val/bpb"] == 3.0
