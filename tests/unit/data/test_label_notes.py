"""What is said of labels: their counts on both sides, those on one alone, and those that are nearly equal."""

import pytest

from orrery.data.rows.label_notes import label_notes, near

NEAR = [
    ("Billing", "billing"), ("shiping", "shipping"), ("refund", "refunds"), ("bug-report", "bug report"),
    ("recieve", "receive"), ("neutral", "neutral "), ("1", "1.0"), ("\u00c4rger", "\u00e4rger"), ("quality", "qualtiy"),
    ("card_payment", "CardPayment"), ("e-mail", "email"), ("cancelled", "canceled"), ("\uff42illing", "\uff22illing"),
]  # fmt: skip
FAR = [
    ("positive", "negative"), ("class_a", "class_b"), ("level1", "level2"), ("10", "100"), ("cat", "cats"),
    ("LABEL_1", "LABEL_2"), ("B-LOC", "I-LOC"), ("B-PERSON", "I-PERSON"), ("PROPN", "PRON"), ("NNP", "NNPS"),
    ("+", "-"), ("1.0", "10"), ("-1", "1"), ("-1", "-10"),
    ("entailment", "not_entailment"), ("food", "foot"), ("1", "l"), ("step 12", "step 13"), ("", "a"),
]  # fmt: skip


@pytest.mark.parametrize("pair", NEAR)
def test_labels_that_hardly_differ_are_flagged(pair: tuple[str, str]) -> None:
    assert near(["other", *pair, "else"]) == [pair]
    (note,) = label_notes({pair[0]: 3, "other": 5, pair[1]: 2}, {}, "rows", "mend it")[1:]
    assert note.startswith(f"warning: the labels {pair[0]!r} (3) and {pair[1]!r} (2) are nearly equal")
    assert note.endswith("mend it")


@pytest.mark.parametrize("pair", FAR)
def test_labels_that_are_meant_to_differ_are_not(pair: tuple[str, str]) -> None:
    assert near(pair) == []


def test_labels_are_told_with_their_counts_on_both_sides() -> None:
    told, alone = label_notes({"a": 1200, "b": 9, "c": 1, "d": 1}, {"a": 120, "b": 1}, "rows", "")
    assert told == "4 labels, rows trained on + held back: a 1,200+120, b 9+1, c 1+0, d 1+0"
    assert alone == "labels c 1, d 1 are trained on and not held back: nothing is scored of them"
    assert label_notes({"a": 3}, {}, "words", "") == ["1 label, words trained on: a 3"]
    assert label_notes({}, {}, "rows", "") == []
    many = label_notes({f"name{n:03}": 1 for n in range(700)}, {}, "rows", "")
    assert many[0].endswith("name019 1 and 680 more")
    assert len(many) == 1
