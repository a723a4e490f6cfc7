"""Every family keeps every law: numbers alone, so that make runs it without type checks."""

import pytest

from orrery.families import names
from orrery.laws import registry


@pytest.mark.parametrize("family", names())
def test_every_family_keeps_every_law(family):
    assert [evidence for evidence in registry.verify(family).checks if not evidence.passed] == []
