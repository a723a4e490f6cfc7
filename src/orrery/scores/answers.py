r"""Scores of short answers to questions: exact match and the overlap of words, as in SQuAD.

Of several right answers the best one counts. A question with no right answer asks for none: the empty answer is then
right and every other one wrong. Words are compared in small letters, without ASCII punctuation and without a, an, the.

Paper: Rajpurkar et al. 2016 (SQuAD); Rajpurkar, Jia and Liang 2018 (SQuAD 2: no answer), whose script decides the
corners: an empty answer matches only an empty one.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from orrery.errors import DataError
from orrery.scores.resampled import AdditiveScore, mean_of, same_length
from orrery.scores.signature import signature

_ARTICLE = re.compile(r"\b(a|an|the)\b", re.UNICODE)
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(answer: str) -> str:
    """Return an answer as it is compared.

    >>> normalised("The  Eiffel-Tower!")
    'eiffeltower'
    """
    return " ".join(_ARTICLE.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact(predicted: str, right: str) -> float:
    """Return 1 where both are the same, normalised, else 0."""
    return float(normalised(predicted) == normalised(right))


def overlap(predicted: str, right: str) -> float:
    r"""Return :math:`2c/(p+g)` with ``c`` common words, each as often as both have it, of ``p`` and ``g`` words."""
    ours, theirs = normalised(predicted).split(), normalised(right).split()
    if not ours or not theirs:
        return float(ours == theirs)
    return 2 * (Counter(ours) & Counter(theirs)).total() / (len(ours) + len(theirs))


def exact_match(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> AdditiveScore:
    """Return the per cent of answers that are a right one; ``gold`` has the right answers of each question, or none."""
    return _best("exact-match", exact, predicted, gold)


def answer_f1(predicted: Sequence[str], gold: Sequence[Sequence[str]]) -> AdditiveScore:
    """Return the mean overlap with the best right answer, in per cent; arguments as in `exact_match`."""
    return _best("answer-F1", overlap, predicted, gold)


def _best(
    name: str, compare: Callable[[str, str], float], predicted: Sequence[str], gold: Sequence[Sequence[str]]
) -> AdditiveScore:
    same_length(predicted, gold, "answers")
    if any(isinstance(answers, str) for answers in gold):
        raise DataError("the right answers of a question are a list", "give [answer], or [] where there is none")
    kept = [[answer for answer in answers if normalised(answer)] or [""] for answers in gold]
    best = [100 * max(compare(own, answer) for answer in answers) for own, answers in zip(predicted, kept, strict=True)]
    facts = signature(n=len(best), none=kept.count([""]), norm="squad", references="best")
    return mean_of(name, facts, best, digits=2)
