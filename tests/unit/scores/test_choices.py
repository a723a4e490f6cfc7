"""Multiple choice and pass@k from numbers alone."""

from itertools import combinations
from math import comb

import numpy as np
import pytest

from orrery.errors import DataError, UsageError
from orrery.scores import final_number
from orrery.scores.choices import Choices, accuracy, accuracy_of_groups, by_group
from orrery.scores.pass_at_k import estimate, pass_at
from orrery.scores.programs import code_of, helpers, humaneval_exam, mbpp_exam
from orrery.scores.resampling import interval

SHORT_WINS = Choices((-4.0, -5.0), (1, 10), (1, 4), 0, "a")
LONG_WINS = Choices((-4.0, -5.0), (1, 10), (1, 4), 1, "b")


def test_what_a_likelihood_is_divided_by_decides() -> None:
    assert [SHORT_WINS.chosen(name) for name in ("none", "characters", "tokens")] == [0, 1, 1]
    assert accuracy([SHORT_WINS, LONG_WINS], "none").score == 0.5
    assert accuracy([LONG_WINS], "characters").score == 1.0


def test_of_equal_likelihoods_the_first_is_chosen() -> None:
    assert Choices((-1.0, -1.0), (1, 1), (1, 1), 1).chosen("none") == 0


def test_the_mean_over_groups_is_not_that_over_questions() -> None:
    questions = [SHORT_WINS, *[LONG_WINS] * 3]
    assert accuracy(questions, "none").score == 0.25
    score = accuracy_of_groups(questions, "none", task="blimp")
    assert score.score == 0.5
    assert by_group(questions, "none") == {"a": (1.0, 1), "b": (0.0, 3)}
    assert "mean:over 2 groups" in score.signature
    assert score.signature.startswith("task:blimp|normalisation:none|")
    bounds = interval(score, samples=200)
    assert 0 <= bounds.low <= bounds.high <= 1


def test_no_questions_are_refused() -> None:
    with pytest.raises(DataError, match="no questions"):
        accuracy([], "none")


@pytest.mark.parametrize(("n", "c", "k"), [(5, 2, 1), (5, 2, 3), (6, 1, 6), (4, 0, 2), (4, 4, 2), (200, 3, 100)])
def test_pass_at_k_is_the_share_of_subsets_that_hold_a_right_program(n: int, c: int, k: int) -> None:
    assert estimate(n, c, k) == pytest.approx(1 - comb(n - c, k) / comb(n, k), abs=1e-12)
    if n < 10:
        right = [any(one < c for one in chosen) for chosen in combinations(range(n), k)]
        assert estimate(n, c, k) == pytest.approx(np.mean(right), abs=1e-12)


def test_the_biased_estimate_is_another_one() -> None:
    assert estimate(5, 2, 3) != pytest.approx(1 - (1 - 2 / 5) ** 3, abs=1e-3)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 1, 4), (3, 4, 1), (3, 1, 0)])
def test_impossible_counts_are_refused(n: int, c: int, k: int) -> None:
    with pytest.raises(UsageError):
        estimate(n, c, k)


def test_pass_at_k_of_problems_is_their_mean() -> None:
    score = pass_at(1, [0, 5, 10], 10, task="mbpp")
    assert score.score == pytest.approx(0.5)
    assert score.name == "pass@1"
    assert "samples:10|estimator:Chen et al. 2021" in score.signature


@pytest.mark.parametrize(
    ("text", "strict", "flexible"),
    [
        ("So it is 18.\n#### 18", "18", "18"),
        ("#### 1,234.50 dollars", "1,234.50", "1,234.50"),
        ("#### -7", "-7", "-7"),
        ("The answer is $70,000.", final_number.INVALID, "$70,000."),
        ("3 apples and 4 pears", final_number.INVALID, "4"),
        ("none", final_number.INVALID, final_number.INVALID),
        ("#### x", final_number.INVALID, final_number.INVALID),
        ("#### 5 #### 6", "5", "6"),
    ],
)
def test_the_final_number(text: str, strict: str, flexible: str) -> None:
    assert (final_number.strict(text), final_number.flexible(text)) == (strict, flexible)


def test_numbers_are_equal_as_lm_eval_has_them() -> None:
    answer = "He has 70,000.\n#### 70,000"
    assert final_number.equal("$70,000.", answer)
    assert final_number.equal("70000", answer)
    assert not final_number.equal("7000", answer)
    assert not final_number.equal(final_number.INVALID, answer)
    assert not final_number.equal("70000.0", answer)  # as lm_eval: texts are compared, not numbers


def test_a_humaneval_program_gets_helpers_that_it_cannot_change() -> None:
    prompt = "import math\n\ndef help(x):\n    return x\n\ndef f(x):\n    '''Double.'''\n"
    assert "def f" not in helpers(prompt, "f")
    exam = humaneval_exam(prompt, "    return 2 * x\n", "def check(c):\n    assert c(2) == help(4)\n", "f")
    assert exam.names == ("f",)
    assert "def help" in exam.tests
    with pytest.raises(DataError, match="does not define 'g'"):
        helpers(prompt, "g")


def test_an_mbpp_program_is_asked_for_what_the_right_code_defines() -> None:
    exam = mbpp_exam("x", ["assert sum(1, 2) == 3"], "import math\ndef sum(a, b):\n  return a + b\nclass P: pass")
    assert exam.names == ("sum", "P")
    assert exam.tests.startswith("import math\n")
    for code in ("def f(", "x = 1"):
        with pytest.raises(DataError):
            mbpp_exam("x", [], code)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("def f(): pass", "def f(): pass"),
        ("Here:\n```python\ndef f(): pass\n```\nDone", "def f(): pass\n"),
        ("```\nx\n```", "x\n"),
        ("```python\nx", "x"),
    ],
)
def test_the_code_of_an_answer(answer: str, code: str) -> None:
    assert code_of(answer) == code
