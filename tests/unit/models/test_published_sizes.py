"""Every published size, as soon as its family is there: the table is that of ``orrery verify``."""

import pytest

from orrery.accounting.parameters import parameters
from orrery.accounting.presets import preset
from orrery.accounting.published.sizes import PRESETS
from orrery.laws.sizes import counted, known


@pytest.mark.parametrize("size", known(), ids=lambda size: size.name)
def test_a_published_model_has_its_parameters(size):
    assert counted(size) == size.parameters + size.beside


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_has_its_parameters(name):
    assert parameters(preset(name)) == PRESETS[name]
