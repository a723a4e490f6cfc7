"""The models of a comparison have the size that was asked for, or are refused."""

import pytest

from orrery.errors import UsageError
from orrery.families import load_family
from orrery.studies.compare.models import KINDS, MODELS, fitted, largest, parameters_of, recipe_of, refuse_unknown
from training_toy import toy_recipe


@pytest.mark.parametrize(("parameters", "vocabulary"), [(60_000, 65), (300_000, 512), (1_000_000, 65)])
@pytest.mark.parametrize("name", KINDS)
def test_every_model_has_the_parameters_asked_for(name, parameters, vocabulary):
    base = toy_recipe(batches__length=128)
    made = recipe_of(name, base, vocabulary, parameters)
    assert (made.data, made.batches, made.seed) == (base.data, base.batches, base.seed)
    family = load_family(made.model.family)
    built = family.spec({"vocab_size": vocabulary, **made.model.config}).build(0)
    assert abs(sum(p.numel() for p in built.parameters()) - parameters) <= 0.02 * parameters


def test_a_size_that_no_width_comes_near_is_refused():
    with pytest.raises(UsageError, match="no lstm has 300 parameters"):
        recipe_of("lstm", toy_recipe(), 65, 300)


@pytest.mark.parametrize("name", KINDS)
def test_the_size_may_be_off_by_the_tolerance_and_no_more(name):
    kind, shared = KINDS[name], {"vocab_size": 65, "max_position_embeddings": 16}
    exact = parameters_of(kind.family, {**shared, **fitted(kind, shared, 60_000)})
    assert parameters_of(kind.family, {**shared, **fitted(kind, shared, exact, tolerance=0.0)}) == exact
    with pytest.raises(UsageError) as refused:
        fitted(kind, shared, exact + 1, tolerance=0.0)
    assert f"no {kind.family} has {exact + 1:,} parameters to within 0 %: the nearest has {exact:,}" in str(refused)
    assert "ask for more --parameters" in refused.value.hint


@pytest.mark.parametrize("names", [["lstm", "lstm"], ["bert"], [""]])
def test_what_is_no_model_is_refused_with_the_list(names):
    with pytest.raises(UsageError) as caught:
        refuse_unknown(names)
    assert all(name in caught.value.hint for name in MODELS)


@pytest.mark.parametrize("bound", [0, 1, 2, 7, 8, 100])
def test_largest_finds_the_bound(bound):
    assert largest(lambda n: n <= bound) == bound
