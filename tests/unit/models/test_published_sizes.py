"""Every published size, as soon as its family is there: the table is that of ``orrery verify``."""

import pytest

from orrery.laws.sizes import counted, known
from orrery.planning.parameters import parameters
from orrery.planning.presets import preset
from orrery.planning.published.sizes import PRESETS


@pytest.mark.parametrize("size", known(), ids=lambda size: size.name)
def test_a_published_model_has_its_parameters(size):
    assert counted(size) == size.parameters + size.beside


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_its_parameters(name):
    assert parameters(preset(name)) == PRESETS[name]
