import pytest

from orrery.accounting.parameters import count, parameters
from orrery.families import load_family, names
from orrery.models.assemblies import AssemblySpec

SPECS = {name: load_family(name).spec(load_family(name).TINY) for name in names()}


@pytest.mark.parametrize("family", [name for name, spec in SPECS.items() if isinstance(spec, AssemblySpec)])
def test_counting_blocks_once_gives_what_building_all_gives(family):
    spec = SPECS[family]
    built = spec.build(0)
    assert parameters(spec) == count(built)
    assert parameters(spec, trained=True) == count(built, trained=True)
