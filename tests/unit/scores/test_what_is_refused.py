"""What cannot be scored is refused by every measure: what is wrong, and what to do about it."""

import numpy as np
import pytest

from orrery.errors import DataError, UsageError
from orrery.scores import (
    answers,
    calibration,
    choices,
    classification,
    entities,
    pass_at_k,
    programs,
    regression,
    resampled,
    resampling,
    retrieval,
    translation,
)

HALVES = [[0.5, 0.5]] * 2


def scores(count):
    return resampled.mean_of("score", "facts", [float(n) for n in range(count)])


def compared(measure):
    """Mix two systems whose sums count different labels."""
    ours, theirs = (measure(gold, gold) for gold in (["a", "b"], ["b", "c"]))
    return ours.of_mixed(theirs, np.zeros((1, 2), bool))


REFUSED = {
    "one answer in place of a list": (
        lambda: answers.exact_match(["a"], ["a"]), DataError,
        "the right answers of a question are a list", "give [answer], or [] where there is none"),
    "one answer among lists": (
        lambda: answers.exact_match(["a", "b"], [["a"], "b"]), DataError,
        "the right answers of a question are a list", "give [answer], or [] where there is none"),
    "no bins": (lambda: calibration.calibration_error(HALVES, [0, 1], 0), DataError, "0 bins", "give one or more"),
    "rows of unequal lengths": (
        lambda: calibration.negative_log_likelihood([[1.0], [0.5, 0.5]], [0, 1]), DataError,
        "rows of probabilities of unequal lengths", "give one number for each label in every row"),
    "no probabilities": (
        lambda: calibration.negative_log_likelihood([[0.5, 0.5], [0.5, 0.6]], [0, 1]), DataError,
        "row 2 is no probabilities: [0.5, 0.6]", "they are >= 0 and add to 1"),
    "a label beyond the columns": (
        lambda: calibration.negative_log_likelihood(HALVES, [0, 2]), DataError,
        "labels from 0 to 2, 2 columns", "labels count from 0"),
    "a label below 0": (
        lambda: calibration.negative_log_likelihood(HALVES, [-1, 1]), DataError,
        "labels from -1 to 1, 2 columns", "labels count from 0"),
    "no questions": (lambda: choices.accuracy([], "none"), DataError, "there are no questions", "give at least one"),
    "accuracy of sets": (
        lambda: classification.matthews([{"a"}, {"b"}], [{"a"}, {"b"}]), DataError,
        " of texts with several labels", "give one label a text, or take F1"),
    "sets beside labels": (
        lambda: classification.f1(["a", {"b"}], ["a", "b"]), DataError,
        "one label for some texts, sets of labels for others", "give all as sets, or none"),
    "a label that is a number with a fraction": (
        lambda: classification.f1([0.5], [0.5]), DataError,
        "a label is a word or a whole number, not 0.5", "see `orrery.scores.regression`"),
    "no label on either side": (
        lambda: classification.f1([set()], [set()]), DataError,
        "no text has a label on either side", "give at least one label"),
    "a tag of another scheme": (
        lambda: entities.entity_f1([["B-X", "PER"]], [["O", "O"]]), DataError,
        "word 2: 'PER' is no tag of conlleval", "tags are O, or one of "),
    "more passed than there are": (
        lambda: pass_at_k.estimate(3, 4, 1), UsageError,
        "pass@1 from 3 samples of which 4 passed", "draw at least k samples"),
    "fewer samples than k": (
        lambda: pass_at_k.estimate(3, 1, 4), UsageError,
        "pass@4 from 3 samples of which 1 passed", "draw at least k samples"),
    "none for a pass": (
        lambda: pass_at_k.estimate(3, 1, 0), UsageError, "pass@0 from 3 samples", "draw at least k samples"),
    "no problems": (lambda: pass_at_k.pass_at(1, [], 3), DataError, "there are no problems", "give at least one"),
    "a prompt of another function": (
        lambda: programs.helpers("def g(x):\n", "f"), DataError,
        "a prompt that does not define 'f'", "give the code up to the function's first line"),
    "right code that is no Python": (
        lambda: programs.mbpp_exam("", [], "def f(:"), DataError,
        "the right code is no Python: ", "look at its column `code`"),
    "right code that defines nothing": (
        lambda: programs.mbpp_exam("", [], "x = 1"), DataError,
        "the right code defines no function or class", "look at its column `code`"),
    "a number that is none": (
        lambda: regression.squared_error([1.0, np.nan], [1.0, 2.0]), DataError,
        "predicted number 2 is nan", "leave it out on both sides, or mend it"),
    "a correlation of one": (
        lambda: regression.spearman([1.0], [1.0]), DataError,
        "a correlation of 1 with 1 values", "give 2 or more"),
    "nothing to score": (
        lambda: regression.squared_error([], []), DataError,
        "0 predicted numbers, 0 right ones", "give at least one, and one prediction for each"),
    "sums of other labels": (
        lambda: compared(classification.f1), DataError,
        ": the sums of the two systems do not count the same", "give both the same `labels`, `types` or `centre`"),
    "an interval of everything": (
        lambda: resampling.interval(scores(3), level=1.0), UsageError,
        "an interval of level 1.0", "give a share between 0 and 1, such as 0.95"),
    "an interval of nothing": (
        lambda: resampling.interval(scores(3), level=0.0), UsageError,
        "an interval of level 0.0", "give a share between 0 and 1, such as 0.95"),
    "one example": (
        lambda: resampling.interval(scores(1)), DataError,
        "1 example cannot be drawn again", "give two or more"),
    "one sample": (
        lambda: resampling.interval(scores(3), samples=1), UsageError,
        "1 samples", "give two or more; 1,000 are usual"),
    "systems on other examples": (
        lambda: resampling.paired_bootstrap(scores(3), scores(4)), DataError,
        "3 examples of one system, 4 of the other", "a paired test needs both systems' outputs for the same examples"),
    "the first none of a ranking": (
        lambda: retrieval.recall_at(0, [["a"]], [{"a"}]), DataError, "the first 0", "k is 1 or more"),
    "gains of the first none": (
        lambda: retrieval.ndcg_at(0, [[1.0]], [[1.0]]), DataError, "the first 0", "k is 1 or more"),
    "scores without gains": (
        lambda: retrieval.ndcg_at(1, [[1.0], [1.0, 2.0]], [[1.0], [1.0]]), DataError,
        "query 2: 2 scores, 1 gains", "give one of each for every candidate"),
    "a gain below 0": (
        lambda: retrieval.ndcg_at(1, [[1.0]], [[-1.0]]), DataError,
        "query 1: a number is not finite, or a gain below 0", "mend it"),
    "a query without a right name": (
        lambda: retrieval.recall_at(1, [["a"], ["b"]], [{"a"}, set()]), DataError,
        "query 2 has no right name", "leave out queries that nothing answers"),
    "a name that is ranked twice": (
        lambda: retrieval.recall_at(1, [["a", "a"]], [{"a"}]), DataError,
        "query 1: a name is ranked twice", "rank each name once"),
    "no references": (
        lambda: translation.check_counts(["a"], []), DataError,
        "1 hypotheses, 0 references", "give at least one of each"),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_scored_is_refused_with_what_to_do(what):
    ask, kind, message, hint = REFUSED[what]
    with pytest.raises(kind) as refused:
        ask()
    assert type(refused.value) is kind
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_the_least_that_can_be_scored_is():
    assert pass_at_k.estimate(3, 3, 3) == 1.0
    assert pass_at_k.estimate(3, 0, 1) == 0.0
    assert retrieval.recall_at(1, [["a"]], [{"a"}]).score > 0
    assert resampling.interval(scores(2), samples=2).low >= 0
