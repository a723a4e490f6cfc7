"""Entities of tags, valid and not, against seqeval in both of its modes."""

import warnings

import numpy as np
import pytest

from orrery.errors import DataError
from orrery.scores import entities
from orrery.scores.entities import SCHEMES, by_type, entity_f1, spans
from orrery.scores.precision_recall import AVERAGES

pytest.importorskip("seqeval")
from seqeval import scheme as schemes
from seqeval.metrics.sequence_labeling import precision_recall_fscore_support as mended
from seqeval.metrics.v1 import precision_recall_fscore_support as strict


def random_tags(rng, letters, rows=6):
    kinds = ["O", *(f"{letter}-{kind}" for letter in letters for kind in ("PER", "LOC", "a-b"))]
    weights = np.array([2, *[1] * (len(kinds) - 1)]) / (len(kinds) + 1)
    return [rng.choice(kinds, size=int(rng.integers(1, 9)), p=weights).tolist() for _ in range(rows)]


def pair(seed, letters):
    rng = np.random.default_rng(seed)
    theirs = random_tags(rng, letters)
    ours = [[tag if rng.random() < 0.7 else random_tags(rng, letters, 1)[0][0] for tag in tags] for tags in theirs]
    return ours, theirs


def expected(ours, theirs, scheme, average):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if scheme == "conlleval":
            return mended(theirs, ours, average=average, zero_division=0)
        return strict(theirs, ours, average=average, zero_division=0, scheme=getattr(schemes, scheme))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("seed", range(40))
def test_every_number_agrees_with_seqeval(seed, scheme):
    ours, theirs = pair(seed, SCHEMES[scheme][0])
    table = by_type(ours, theirs, scheme)
    each = expected(ours, theirs, scheme, None)
    types = len(each[0])
    assert len(table) == types + 3
    for place, key in enumerate(("precision", "recall", "f1", "support")):
        assert [getattr(line, key) for line in table[:types]] == pytest.approx(list(each[place]), abs=1e-12)
    for place, average in enumerate(AVERAGES):
        wanted = expected(ours, theirs, scheme, average) if types else (0, 0, 0)
        line = table[types + place]
        assert (line.precision, line.recall, line.f1) == pytest.approx(tuple(map(float, wanted[:3])), abs=1e-12)
        assert entity_f1(ours, theirs, average, scheme).score == pytest.approx(float(wanted[2]), abs=1e-12)


def test_the_comparison_sees_another_rule(monkeypatch):
    monkeypatch.setitem(SCHEMES, "conlleval", ("BIES", "BI*E?|S"))  # an I alone no longer begins an entity
    scores = [entity_f1(*pair(seed, "BIES")).score for seed in range(10)]
    wanted = [float(expected(*pair(seed, "BIES"), "conlleval", "micro")[2]) for seed in range(10)]
    assert scores != pytest.approx(wanted, abs=1e-6)


def test_invalid_tags_are_mended_or_left_out():
    tags = ["I-PER", "I-PER", "B-PER", "I-LOC", "O", "I"]
    assert spans(tags) == [("PER", 0, 2), ("PER", 2, 3), ("LOC", 3, 4), ("_", 5, 6)]
    assert spans(tags, "IOB2") == [("PER", 2, 3)]
    assert spans(["S-X", "B-X", "I-X", "E-X", "B-X"], "IOBES") == [("X", 0, 1), ("X", 1, 4)]


def test_nothing_marked_is_no_entity():
    assert entity_f1([["O"]], [["O"]]).score == 0
    assert "types:0" in entity_f1([["O"]], [["O"]]).signature
    assert "scheme:IOB2" in entity_f1([["B-X"]], [["B-X"]], scheme="IOB2").signature


@pytest.mark.parametrize(
    ("ours", "theirs", "scheme", "text"),
    [
        ([], [], "conlleval", "0 predicted sentences"),
        ([["O"]], [["O"], ["O"]], "conlleval", "1 predicted sentences, 2 right ones"),
        ([["O"]], [["O", "O"]], "conlleval", "sentence 1: 1 predicted tags, 2 right ones"),
        ([["PER"]], [["O"]], "conlleval", "word 1: 'PER' is no tag"),
        ([[""]], [["O"]], "conlleval", "word 1: '' is no tag"),
        ([["E-X"]], [["O"]], "IOB2", "word 1: 'E-X' is no tag of IOB2"),
    ],
)
def test_what_is_no_tagging(ours, theirs, scheme, text):
    with pytest.raises(DataError, match=text):
        entity_f1(ours, theirs, scheme=scheme)


def test_counts_of_a_sentence_add_up():
    ours, theirs = pair(3, "BI")
    types = ("LOC", "PER", "a-b")
    total = sum(entities.entity_counts(a, b, types) for a, b in zip(ours, theirs, strict=True))
    assert total[:, 1].tolist() == by_counts(ours, theirs, "PER")


def by_counts(ours, theirs, kind):
    marked = [[{span for span in spans(tags) if span[0] == kind} for tags in side] for side in (ours, theirs)]
    both = sum(len(a & b) for a, b in zip(*marked, strict=True))
    return [both, *(sum(map(len, side)) for side in marked)]


def test_bilou_is_iobes_under_other_letters():
    tags = ["U-PER", "O", "B-LOC", "I-LOC", "L-LOC", "U-LOC", "L-LOC", "B-ORG", "L-ORG"]
    other = [{"L": "E", "U": "S"}.get(tag[0], tag[0]) + tag[1:] for tag in tags]
    for scheme in ("conlleval", "IOBES"):
        assert spans(tags, scheme) == spans(other, scheme)
    assert spans(tags[:5]) == [("PER", 0, 1), ("LOC", 2, 5)]
