"""Exact sizes of published mixtures, counted from their configurations on the meta device."""

import pytest

from orrery.families import load_family, names
from orrery.planning.parameters import Parameters, counts, parameters


def size(family, config):
    return counts(load_family(family).spec(config))


def test_mixtral_8x7b():
    assert size("mixtral", {}) == Parameters(46_702_792_704, 0, 12_879_925_248)


def test_deepseek_v3():
    """Without the extra prediction module; 58 layers of 256 routing corrections; active with both tables."""
    assert size("deepseek_v3", {}) == Parameters(671_026_404_352, 14_848, 37_552_297_472)


def test_a_dense_model_is_active_as_a_whole():
    family = load_family("llama")
    counted_parameters = counts(family.spec(family.TINY))
    assert (counted_parameters.active, counted_parameters.fixed) == (counted_parameters.trained, 0)


def test_active_parameters_by_hand():
    """Three of four experts, each 3 x 16 x 8 numbers, are counted, and all of everything else."""
    family = load_family("olmoe")
    counted_parameters = counts(family.spec({**family.TINY, "num_experts": 4, "num_hidden_layers": 1}))
    assert counted_parameters.trained - counted_parameters.active == 3 * 16 * 8


@pytest.mark.parametrize("name", names())
def test_equals_the_count_over_a_built_model(name):
    spec = load_family(name).spec(load_family(name).TINY)
    whole = list(spec.build(0).parameters())
    assert parameters(spec) == sum(parameter.numel() for parameter in whole)
    counted_parameters = counts(spec)
    assert counted_parameters.trained == sum(parameter.numel() for parameter in whole if parameter.requires_grad)
    assert counted_parameters.fixed == sum(parameter.numel() for parameter in whole if not parameter.requires_grad)
    assert counted_parameters.active <= counted_parameters.trained + counted_parameters.fixed
