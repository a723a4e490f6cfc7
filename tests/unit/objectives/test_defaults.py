"""What an objective is where neither a recipe nor Python says: the same in both."""

import pytest

from orrery.objectives import OBJECTIVES
from orrery.schema.registry import settings_of

NEEDED = {"distillation": {"teacher": "a model"}}
"""What has no default."""


def told(part):
    """Return what an object holds, and of its parts the same."""
    if type(part).__module__.startswith("orrery."):
        return {"is": type(part), **{name: told(value) for name, value in vars(part).items()}}
    return part


@pytest.mark.parametrize("name", OBJECTIVES.names())
def test_an_objective_that_a_recipe_only_names_is_the_one_without_arguments(name):
    objective, needed = OBJECTIVES.find(name), NEEDED.get(name, {})
    settings = settings_of(objective).model_validate({"kind": name, **needed})
    assert told(objective.of(settings)) == told(objective(**needed))
