"""BLEU and chrF against the scores that the reference scorer gave."""

import json

import pytest

from orrery.errors import DataError
from orrery.scores.translation import bleu, chrf

SETTINGS = {
    "bleu tok=13a": (bleu, {}),
    "bleu tok=intl": (bleu, {"tokenize": "intl"}),
    "bleu tok=none": (bleu, {"tokenize": "none"}),
    "bleu tok=char": (bleu, {"tokenize": "char"}),
    "bleu lc": (bleu, {"lowercase": True}),
    "bleu smooth=floor": (bleu, {"smooth_method": "floor"}),
    "bleu order=2": (bleu, {"max_ngram_order": 2}),
    "chrf": (chrf, {}),
    "chrf++": (chrf, {"word_order": 2}),
}


def test_every_reference_score_is_met(data_set):
    reference = json.loads((data_set("metric-reference") / "mt_corpus.json").read_text(encoding="utf-8"))
    compared = 0
    for line in reference["corpus"]:
        if line["metric"] not in SETTINGS:
            continue
        metric, settings = SETTINGS[line["metric"]]
        references = [reference["references"], reference["references2"]][: int(line["refs"][0])]
        scored = metric(reference["hypotheses"], *references, **settings)
        assert scored.score == pytest.approx(line["score"], abs=1e-6)
        assert scored.signature == line["signature"]
        if metric is bleu:
            counts = [line["sys_len"], line["ref_len"], *line["counts"], *line["totals"]]
            assert scored.sums.sum(0).tolist() == counts
        compared += 1
    assert compared == 18


def test_the_score_says_how_it_was_computed():
    scored = bleu(["the cat sat on the mat ."], ["the cat sat on the mat ."])
    assert scored.score == pytest.approx(100)
    assert "tok:13a" in str(scored)


def test_what_cannot_be_scored():
    with pytest.raises(DataError, match="2 hypotheses for 1 references"):
        bleu(["a", "b"], ["a"])
    with pytest.raises(DataError, match="0 hypotheses"):
        bleu([], [])
