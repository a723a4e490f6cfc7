import pytest

from orrery.recipes.config import Recipe
from orrery.training.schedules import build_schedule
from training_toy import toy_recipe


def schedule(steps: int = 100, **settings):
    recipe: Recipe = toy_recipe(training__schedule=settings, training__steps=100_000)
    return build_schedule(recipe.training.schedule, steps)


@pytest.mark.parametrize(("update", "rate"), [(1, 1.746928e-7), (4000, 6.987712e-4), (100_000, 1.397542e-4)])
def test_noam_has_the_numbers_of_the_course(update: int, rate: float) -> None:
    assert schedule(kind="noam", width=512, warmup=4000)(update) == pytest.approx(rate, rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        ({"kind": "constant", "warmup": 4}, {1: 0.25, 4: 1, 100: 1}),
        ({"kind": "cosine", "warmup": 20, "final": 0.1}, {10: 0.5, 20: 1, 60: 0.55, 100: 0.1, 200: 0.1}),
        ({"kind": "linear", "warmup": 20, "final": 0.2}, {10: 0.5, 20: 1, 60: 0.6, 100: 0.2}),
        ({"kind": "wsd", "warmup": 10, "decay": 20}, {5: 0.5, 10: 1, 80: 1, 90: 0.5, 100: 0}),
        ({"kind": "cosine"}, {100: 0.1}),
    ],
)
def test_schedules_pass_through_their_corners(settings: dict, values: dict[int, float]) -> None:
    rate_at = schedule(**settings)
    assert {update: rate_at(update) for update in values} == pytest.approx(values)
