"""What the page is told of a number: its formula, its operands, and the check that both agree."""

import math

import pytest

from orrery.errors import UsageError
from orrery.page.views._payload import to_json
from orrery.page.views._view import find, shown
from views_toy import subject_of


@pytest.fixture(scope="module")
def gpt2():
    return subject_of("gpt2")


@pytest.fixture(scope="module")
def bart():
    return subject_of("bart")


def test_without_a_key_the_likeliest_next_token_is_explained(gpt2):
    payload = shown("explain", gpt2, {})
    logits = gpt2.seen.first.logits[0]
    assert payload.facts["key"] == "logits"
    assert payload.facts["index"] == (len(logits) - 1, int(logits[-1].argmax()))
    assert payload.facts["recorded"] == float(logits[-1].max())
    assert payload.checks[0].passed


def test_a_sum_adds_up_to_the_number(gpt2):
    facts = shown("explain", gpt2, {"key": "blocks.1.attention.mixed", "index": "1,3,2", "most": 2}).facts
    assert len(facts["terms"]) == 2
    total = sum(term["value"] for term in facts["terms"]) + facts["others_sum"]
    assert math.isclose(total, facts["recorded"], rel_tol=1e-4)
    for term in facts["terms"]:
        assert math.isclose(term["value"], math.prod(one["value"] for one in term["factors"]), rel_tol=1e-5)


def test_an_operand_can_be_asked_for_as_it_is_named(gpt2):
    facts = shown("explain", gpt2, {"key": "blocks.0.feed_forward.hidden", "index": "3,5"}).facts
    (one,) = facts["terms"][0]["factors"]
    below = shown("explain", gpt2, {"key": one["key"], "index": ",".join(map(str, one["index"]))}).facts
    assert below["recorded"] == one["value"]


def test_a_place_is_told_with_its_token(bart):
    tokens, source = bart.seen.tokens, bart.seen.source_tokens
    axes = shown("explain", bart, {"key": "blocks.0.cross.pattern", "index": "1,1,2"}).facts["axes"]
    assert [one["place"] for one in axes] == [1, 1, 2]
    assert (axes[1]["text"], axes[2]["text"]) == (tokens[1], source[2])
    assert shown("explain", bart, {"key": "encoder.final", "index": "2,0"}).facts["axes"][0]["text"] == source[2]


def test_a_hidden_score_reads_as_minus_infinity_in_a_browser(gpt2):
    facts = shown("explain", gpt2, {"key": "blocks.0.attention.scores", "index": "0,1,3"}).facts
    assert facts["recorded"] == "-Infinity"
    assert '"-Infinity"' in to_json(facts)


def test_a_saved_page_holds_the_default_and_what_stands_below_it(gpt2):
    saved = list(find("explain").saved(gpt2))
    assert saved[0].key is None
    assert 20 < len(saved) <= 61
    assert len({(one.key, one.index) for one in saved}) == len(saved)
    assert {"blocks.1.attention.added", "final"} & {one.key for one in saved}


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"key": "final", "index": "a,b"}, "is no index"),
        ({"key": "final"}, "is no index"),
        ({"key": "final", "index": "99,0"}, "no number at"),
        ({"key": "finale", "index": "0,0"}, "nothing is called"),
    ],
)
def test_what_cannot_be_explained_is_refused(gpt2, asked, says):
    with pytest.raises(UsageError, match=says):
        shown("explain", gpt2, asked)
