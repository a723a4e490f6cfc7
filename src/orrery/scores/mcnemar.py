r"""McNemar's exact test: whether two systems differ in how often they are right on the same examples."""

from collections.abc import Sequence
from math import comb

from orrery.scores.resampled import same_length
from orrery.scores.resampling import Compared
from orrery.scores.signature import signature


def mcnemar(ours: Sequence[bool], theirs: Sequence[bool]) -> Compared:
    r"""Return the difference of two accuracies and its p-value from the examples that one system alone has right.

    With ``b`` right for the first alone and ``c`` for the second alone, :math:`p = \min(1, 2 P(X \le \min(b, c)))` for
    :math:`X \sim \text{Binomial}(b + c, 1/2)`. Paper: McNemar 1947; the exact form is a sign test.

    Raises:
        DataError: no examples, or different numbers of them.
    """
    same_length(ours, theirs)
    b = sum(bool(one) and not other for one, other in zip(ours, theirs, strict=True))
    c = sum(bool(other) and not one for one, other in zip(ours, theirs, strict=True))
    tail = sum(comb(b + c, k) for k in range(min(b, c) + 1))
    p = min(1.0, 2 * tail / 2 ** (b + c))
    facts = signature(test="mcnemar", n=len(ours), alone=f"{b}/{c}", sides=2)
    return Compared("accuracy", (b - c) / len(ours), p, float("nan"), facts)
