"""Compute-optimal sizes against a search over sizes, the numbers of the paper, and refusals of what is no budget."""

import math

import numpy as np
import pytest

from orrery.errors import UsageError
from orrery.planning.compute_optimal import CHINCHILLA, CHINCHILLA_UNROUNDED, REFITTED, LossLaw, PowerLaw, through
from orrery.planning.training_compute import PETAFLOP_DAY, attention_flops, petaflop_days, training_flops
from orrery_course.papers.chinchilla import APPROACHES, GOPHER_BUDGET, LAWS, budget_rows, count, law


def searched(one: LossLaw, flops: float) -> float:
    """Return the best number of parameters by trying a hundred thousand."""
    sizes = np.geomspace(1e5, 1e14, 100_001)
    tokens = flops / 6 / sizes
    losses = one.irreducible + one.size_scale / sizes**one.size_exponent + one.data_scale / tokens**one.data_exponent
    return float(sizes[losses.argmin()])


@pytest.mark.parametrize("flops", [1e17, GOPHER_BUDGET, 1e27])
@pytest.mark.parametrize("one", [CHINCHILLA, CHINCHILLA_UNROUNDED, REFITTED, LossLaw(0.7, 30.0, 0.5, 8.0, 0.2)])
def test_the_closed_form_is_the_least_of_a_search(one: LossLaw, flops: float) -> None:
    best = one.best(flops)
    assert best.parameters == pytest.approx(searched(one, flops), rel=2e-4)
    assert 6 * best.parameters * best.tokens == pytest.approx(flops, rel=1e-12)


def test_a_search_tells_a_wrong_exponent() -> None:
    wrong = LossLaw(1.69, 406.4, 0.35, 410.7, 0.28)
    assert wrong.best(1e21).parameters != pytest.approx(searched(CHINCHILLA, 1e21), rel=0.05)


@pytest.mark.parametrize("one", LAWS.values(), ids=LAWS)
def test_the_best_for_a_size_and_for_an_amount_of_text_are_on_the_same_line(one: LossLaw | PowerLaw) -> None:
    best = one.best(1e22)
    for again in (one.best_tokens(best.parameters), one.best_parameters(best.tokens)):
        assert (again.flops, again.parameters, again.tokens) == pytest.approx((1e22, best.parameters, best.tokens))


def test_the_approaches_say_what_the_paper_prints() -> None:
    for approach in (1, 2):
        for row in APPROACHES[approach]:
            best = law(approach).best_tokens(count(row.parameters))
            assert best.tokens == pytest.approx(count(row.tokens), rel=0.06) or not row.agrees
    # Hoffmann et al. 2022, appendix D.4: 2.86 billion by approach 1 at 1e21; Table 2: 0.50 and 0.49.
    assert f"{law(1).best(1e21).parameters / 1e9:.2f}" == "2.86"
    assert f"{law(1).exponent:.2f} {law(2).exponent:.2f}" == "0.50 0.49"
    assert f"{CHINCHILLA_UNROUNDED.exponent:.2f}" == "0.46"
    assert f"{CHINCHILLA_UNROUNDED.best(GOPHER_BUDGET).parameters / 1e9:.0f}" == "40"
    for row in APPROACHES[3]:
        size, tokens = count(row.parameters), count(row.tokens)
        assert CHINCHILLA_UNROUNDED.best_tokens(size).tokens == pytest.approx(tokens, rel=0.2)
        assert 1.5 < CHINCHILLA.best_tokens(size).tokens / tokens < 2.3
    assert f"{REFITTED.exponent:.4f}" == "0.5126"  # Besiroglu et al. 2024


def test_a_loss_of_the_printed_law() -> None:
    assert CHINCHILLA.loss(70e9, 1.4e12) == pytest.approx(1.69 + 406.4 / 70e9**0.34 + 410.7 / 1.4e12**0.28, rel=1e-15)
    assert f"{CHINCHILLA.loss(280e9, 300e9) - CHINCHILLA.loss(70e9, 1.4e12):.3f}" == "0.057"  # Gopher's is higher


def test_formulas_of_compute() -> None:
    assert PETAFLOP_DAY == 8.64e19
    assert training_flops(175e9, 300e9) == 3.15e23
    assert training_flops(60e6, 1e12, each=3) == 1.8e20
    assert attention_flops(118, 48, 256, 2048) == 12 * 118 * 48 * 256 * 2048
    assert petaflop_days(8.64e19) == 1


def test_a_straight_line_is_found_exactly() -> None:
    line = through([(3.0 * flops**0.4, flops) for flops in (1e18, 1e20, 1e25)])
    assert (line.scale, line.exponent) == pytest.approx((3.0, 0.4))


BAD = (0, -3, math.inf, math.nan)


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("budget of operations", CHINCHILLA.best),
        ("budget of operations", law(1).best),
        ("budget of operations", budget_rows),
        ("parameters", CHINCHILLA.best_tokens),
        ("parameters", law(1).best_tokens),
        ("training tokens", CHINCHILLA.best_parameters),
        ("training tokens", law(1).best_parameters),
        ("training tokens", lambda tokens: CHINCHILLA.loss(1e9, tokens)),
        ("parameters", lambda parameters: CHINCHILLA.loss(parameters, 1e9)),
        ("parameters", lambda parameters: training_flops(parameters, 1e9)),
        ("training tokens", lambda tokens: training_flops(1e9, tokens)),
        ("operations", petaflop_days),
    ],
)
def test_what_is_no_number_of_something_is_refused(name, ask, value) -> None:
    with pytest.raises(UsageError, match=f"^{name}: .*not a positive finite number.*hint: give a number such as"):
        ask(value)


def test_a_model_without_layers_has_no_attention() -> None:
    with pytest.raises(UsageError, match="layers: 0 is not a positive finite number"):
        attention_flops(0, 1, 1, 1)


@pytest.mark.parametrize(
    ("name", "place"),
    [("scale of the size", 1), ("exponent of the size", 2), ("scale of the data", 3), ("exponent of the data", 4)],
)
def test_a_law_that_does_not_fall_has_no_best_size(name: str, place: int) -> None:
    numbers = [1.0, 400.0, 0.3, 400.0, 0.3]
    numbers[place] *= -1
    for ask in (LossLaw(*numbers).best, LossLaw(*numbers).best_tokens, LossLaw(*numbers).best_parameters):
        with pytest.raises(
            UsageError, match=f"^{name}: .*not a positive finite number.*hint: give a number such as [04]"
        ):
            ask(1e20)
