"""An absent key of ``config.json`` means what it means to transformers."""

import pytest

from orrery.errors import ModelFileError
from orrery.families import load_family
from tests.parity.oracle import REFERENCED
from tests.parity.stand_ins import class_of

NO_DEFAULT = {"vision_encoder_decoder"}
"""Families that transformers has without a default."""


def meaning(family, config):
    """Return the architecture, or why there is none."""
    try:
        return family.spec({**config, "architectures": [family.ARCHITECTURE]})
    except ModelFileError as error:
        return str(error)


@pytest.mark.each_family
@pytest.mark.parametrize("name", sorted(REFERENCED - NO_DEFAULT))
def test_an_empty_configuration_is_the_default_of_the_reference(name):
    family = load_family(name)
    written = class_of(family.ARCHITECTURE).config_class().to_dict()
    assert meaning(family, {}) == meaning(family, written)
