"""BLEU, chrF, TER and ROUGE without any data set: scores that the reference gave, and texts one can count by hand."""

import json
from pathlib import Path

import pytest

from orrery.errors import DataError
from orrery.scores.porter import porter_stem
from orrery.scores.rouge import KINDS, corpus_rouge, rouge
from orrery.scores.translation import bleu, chrf, ter

METRICS = {"BLEU": bleu, "CHRF": chrf, "TER": ter}
CASES = json.loads(Path(__file__).with_name("reference_scores.json").read_text(encoding="utf-8"))["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['metric']}-{case['signature']}")
def test_a_shipped_score_is_met(case):
    scored = METRICS[case["metric"]](case["hypotheses"], *case["references"], **case["settings"])
    assert scored.score == pytest.approx(case["score"], abs=1e-6)
    assert scored.signature.split("|version")[0] == case["signature"].split("|version")[0]


def test_a_wrong_metric_misses_the_shipped_scores():
    """The cases tell settings, references and directions apart: each of these changes moves a score."""
    train, two, garden, lists = CASES[0], CASES[1], CASES[5], CASES[8]
    for case, other in (
        (train, bleu(train["hypotheses"], train["references"][0])),
        (two, bleu(two["references"][0], two["hypotheses"])),
        (train, bleu(train["hypotheses"], *train["references"], lowercase=True)),
        (lists, bleu(lists["hypotheses"], *lists["references"], smooth_method="floor")),
        (garden, bleu(garden["hypotheses"][:2], garden["references"][0][:2])),
        (CASES[16], chrf(garden["hypotheses"], *garden["references"], word_order=2)),
    ):
        assert abs(other.score - case["score"]) > 0.1


def test_rouge_meets_the_reference(data_set):
    names = dict(zip(("rouge1", "rouge2", "rougeL", "rougeLsum"), KINDS, strict=True))
    lines = (data_set("metric-reference") / "rouge.jsonl").read_text(encoding="utf-8").splitlines()
    for line in map(json.loads, lines):
        for key, stemmed in (("nostem", False), ("stem", True)):
            scored = rouge(line["hyp"], line["ref"], stemmed)
            for name, expected in line[key].items():
                overlap = scored[names[name]]
                assert (overlap.precision, overlap.recall, overlap.f1) == pytest.approx(expected, abs=1e-6)


def test_sentence_scores_meet_the_reference(data_set):
    """One sentence alone is a corpus of one: BLEU with effective order, chrF; the first 200 sentences."""
    reference = json.loads((data_set("metric-reference") / "mt_corpus.json").read_text(encoding="utf-8"))
    for key, metric, settings in (
        ("sentence_bleu_first200", bleu, {"effective_order": True}),
        ("sentence_chrf_first200", chrf, {}),
    ):
        pairs = zip(reference["hypotheses"][:200], reference["references"], strict=False)
        scores = [metric([ours], [theirs], **settings).score for ours, theirs in pairs]
        assert scores == pytest.approx(reference[key], abs=1e-6)
        assert len(scores) == 200


def test_ter_meets_the_reference(data_set):
    reference = json.loads((data_set("metric-reference") / "mt_corpus.json").read_text(encoding="utf-8"))
    lines = [line for line in reference["corpus"] if line["metric"] == "ter"]
    for line in lines:
        references = [reference["references"], reference["references2"]][: int(line["refs"][0])]
        scored = ter(reference["hypotheses"], *references)
        assert scored.score == pytest.approx(line["score"], abs=1e-6)
        assert scored.signature == line["signature"]
    assert len(lines) == 2


def test_rouge_can_be_counted_by_hand():
    scored = rouge("the cat sat on the mat", "The cat is on the mat, it is.")
    # 5 of 6 words, of which the reference has 8; 3 pairs of 5 and 7; "the cat on the mat" in order.
    assert (scored["ROUGE-1"].precision, scored["ROUGE-1"].recall) == (5 / 6, 5 / 8)
    assert (scored["ROUGE-2"].precision, scored["ROUGE-2"].recall) == (3 / 5, 3 / 7)
    assert (scored["ROUGE-L"].precision, scored["ROUGE-L"].recall) == (5 / 6, 5 / 8)
    turned = rouge("b c\na", "a\nb c")
    assert turned["ROUGE-L"].f1 == pytest.approx(2 / 3)
    assert turned["ROUGE-Lsum"].f1 == 1
    assert rouge("", "a")["ROUGE-Lsum"].f1 == rouge("a", "")["ROUGE-2"].f1 == rouge("é", "ü")["ROUGE-1"].f1 == 0


def test_rouge_of_a_corpus_is_the_mean_of_the_best():
    assert corpus_rouge(["a b", "c"], ["a b", "d"])["ROUGE-1"].score == 50
    assert corpus_rouge(["a b", "c"], ["a b", "d"], ["x", "c"])["ROUGE-1"].score == 100
    assert corpus_rouge(["connected"], ["connections"])["ROUGE-1"].score == 0
    assert corpus_rouge(["connected"], ["connections"], stemmed=True)["ROUGE-1"].score == 100
    with pytest.raises(DataError, match="1 hypotheses for 2 references"):
        corpus_rouge(["a"], ["a", "b"])


STEMS = "caresses caress, ponies poni, ties tie, cats cat, feed feed, agreed agre, plastered plaster, bled bled, "
STEMS += "motoring motor, sing sing, conflated conflat, troubled troubl, sized size, hopping hop, falling fall, "
STEMS += "hissing hiss, filing file, happy happi, sky sky, skies sky, relational relat, conditional condit, "
STEMS += "rational ration, digitizer digit, conformably conform, triplicate triplic, formalize formal, hopeful hope, "
STEMS += "revival reviv, adjustment adjust, adoption adopt, communism commun, probate probat, rate rate, cease ceas, "
STEMS += "controlling control, rolling roll, geology geolog, dying die, cried cri, died die, by by, enjoy enjoy"


def test_words_have_the_stems_of_the_paper():
    pairs = [pair.split() for pair in STEMS.split(", ")]
    assert [(word, porter_stem(word)) for word, _ in pairs] == [tuple(pair) for pair in pairs]
