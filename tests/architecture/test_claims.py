"""Every number of a measurement in a text stands on a record, on code that runs, or on a reason that is said."""

import re

import pytest
from tests.architecture import claims

from pages import ROOT, module, pages


def test_every_measured_number_stands_on_something():
    assert list(claims.unbacked()) == []


def test_no_reason_is_kept_for_a_sentence_that_is_gone():
    for key in claims.BACKED:
        page, _, text = key.partition(": ")
        assert text in " ".join((ROOT / page).read_text(encoding="utf-8").split()), key


def test_every_expression_of_a_page_finds_its_record():
    shown, seen = module("_benchmarks"), 0
    for page in pages():
        for code in re.findall(r"\{recorded\}`([^`]+)`", page.read_text(encoding="utf-8")):
            assert shown.recorded(code), code
            seen += 1
    assert seen > 20


@pytest.mark.parametrize(
    "sentence",
    [
        "A step takes 2.96 times as long with transformers.",
        "It is measured at 31 tokens a second.",
        "DPO is 2.03x faster than trl.",
        "The first token comes in under half of the time, and faster than before.",
        "Its memory is 145 MB in the place of 180.",
    ],
)
def test_a_number_that_stands_on_nothing_is_found(sentence):
    assert claims.is_measured(sentence)
    assert not claims.is_backed("README.md", sentence)


def test_numbers_that_are_read_from_records_and_plain_settings_are_no_fault():
    assert claims.is_backed("README.md", "It is {recorded}`f'{training}'` times as fast as transformers.")
    assert not claims.is_measured("A request waits 30 s at most.")
